"""The registry's client against a real registry; what one cannot be made to say is in source/."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from lakeingest.errors import DataError, UnavailableError
from lakeingest.source.registry.confluent import ConfluentRegistry
from tests.rig.registry import SchemaRegistry

pytestmark = pytest.mark.slow

ADDRESS = {
    "type": "record",
    "name": "Address",
    "namespace": "shop",
    "fields": [{"name": "street", "type": "string"}],
}
CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "namespace": "shop",
    "fields": [{"name": "home", "type": "shop.Address"}, {"name": "work", "type": "shop.Address"}],
}


def registered(registry: SchemaRegistry, subject: str, schema: Any, **more: Any) -> int:
    """Register a schema and return its id."""
    asked = urllib.request.Request(
        f"{registry.url}/subjects/{subject}/versions",
        json.dumps({"schema": json.dumps(schema), **more}).encode(),
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(asked, timeout=10.0) as answer:
        number: int = json.load(answer)["id"]
    return number


@pytest.fixture
def client(registry: SchemaRegistry) -> Iterator[ConfluentRegistry]:
    with closing(ConfluentRegistry({"schema.registry.url": registry.url}, 5.0, 1)) as opened:
        yield opened


def test_schema_with_a_reference_comes_whole(
    registry: SchemaRegistry, client: ConfluentRegistry
) -> None:
    registered(registry, "address", ADDRESS)
    reference = {"name": "shop.Address", "subject": "address", "version": 1}
    number = registered(registry, "customer", CUSTOMER, references=[reference])
    client.check()
    home, work = json.loads(client.schema(number))["fields"]
    assert home["type"]["fields"] == ADDRESS["fields"]
    assert work["type"] == "shop.Address"


def test_unknown_id_is_an_error_of_the_data_and_a_dead_registry_is_none(
    registry: SchemaRegistry, client: ConfluentRegistry
) -> None:
    with pytest.raises(DataError, match="schema id 987654"):
        client.schema(987_654)
    registry.kill()
    try:
        with pytest.raises(UnavailableError, match="schema registry"):
            client.schema(987_655)
    finally:
        registry.start()
    client.check()
