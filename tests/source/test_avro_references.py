from __future__ import annotations

import json
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession

from lakeingest.source.registry.references import with_references

COUNTRY: dict[str, Any] = {
    "type": "enum",
    "name": "Country",
    "namespace": "geo",
    "symbols": ["DE", "FR"],
}
ADDRESS: dict[str, Any] = {
    "type": "record",
    "name": "Address",
    "namespace": "shop",
    "fields": [
        {"name": "country", "type": "geo.Country"},
        {"name": "lines", "type": {"type": "array", "items": "string"}},
        {"name": "before", "type": ["null", "Address"], "default": None},
    ],
}
# Without a namespace, in the midst of a record that has one.
NOTE: dict[str, Any] = {
    "type": "record",
    "name": "Note",
    "fields": [{"name": "kind", "type": {"type": "fixed", "name": "Kind", "size": 1}}],
}
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "shop.orders.Order",
    "fields": [
        {"name": "id", "type": {"type": "long", "connect.default": 0}, "default": 0},
        {"name": "from", "type": ["null", "shop.Address"], "default": None},
        {"name": "to", "type": "shop.Address"},
        {"name": "via", "type": {"type": "map", "values": "geo.Country"}},
        {"name": "note", "type": ["null", "Note"], "default": None},
        {"name": "kind", "type": ["null", "Kind"], "default": None},
        {"name": "next", "type": ["null", "Order"], "default": None},
    ],
}
VALUE: dict[str, Any] = {
    "id": 1,
    "from": None,
    "to": {"country": "FR", "lines": ["a"], "before": None},
    "via": {"x": "DE"},
    "next": None,
}


def whole(schema: Any, *others: Any) -> Any:
    return json.loads(with_references(json.dumps(schema), [json.dumps(other) for other in others]))


def test_a_schema_that_refers_to_none_stays_as_it_is_letter_by_letter() -> None:
    text = '{"type": "long" , "connect.version":1}'
    assert with_references(text, []) == text


def test_a_definition_stands_where_its_type_is_first_used_and_then_its_name() -> None:
    fields = whole(ORDER, ADDRESS, COUNTRY, NOTE)["fields"]
    assert fields[1]["type"][1]["name"] == "Address"
    assert fields[1]["type"][1]["fields"][0]["type"] == COUNTRY
    assert fields[2]["type"] == "shop.Address"
    assert fields[3]["type"] == {"type": "map", "values": "geo.Country"}
    assert fields[0] == ORDER["fields"][0]
    assert fields[6]["type"] == ["null", "shop.orders.Order"]


@pytest.mark.parametrize("others", [(ADDRESS, COUNTRY, NOTE), (NOTE, COUNTRY, ADDRESS)])
def test_the_whole_schema_means_the_same_to_another_reader(others: tuple[Any, ...]) -> None:
    # Avro's specification has no way to name a type without a namespace from within one; Java has.
    fields = [field for field in ORDER["fields"] if field["name"] not in ("note", "kind")]
    parsed = fastavro.parse_schema(whole({**ORDER, "fields": fields}, *others))
    assert fastavro.validate(VALUE, parsed)
    wrong = {**VALUE, "to": {**VALUE["to"], "country": "X"}}
    assert not fastavro.validate(wrong, parsed, raise_errors=False)


def test_the_whole_schema_is_one_to_javas_parser(spark: SparkSession) -> None:
    assert spark._jvm is not None
    text = json.dumps(whole(ORDER, NOTE, ADDRESS, COUNTRY))
    parsed = spark._jvm.org.apache.avro.Schema.Parser().parse(text)
    assert parsed.getFullName() == "shop.orders.Order"
    note = parsed.getField("note").schema().getTypes().get(1)
    assert note.getFullName() == "Note"
    assert note.getField("kind").schema().getFullName() == "Kind"


def test_a_nested_type_that_was_used_before_its_outer_one_is_defined_once() -> None:
    outer = {
        "type": "record",
        "name": "a.Outer",
        "fields": [{"name": "inner", "type": {"type": "enum", "name": "Inner", "symbols": ["X"]}}],
    }
    user = {
        "type": "record",
        "name": "a.User",
        "fields": [{"name": "one", "type": "Inner"}, {"name": "two", "type": "Outer"}],
    }
    one, two = whole(user, outer)["fields"]
    assert one["type"]["symbols"] == ["X"]
    assert two["type"]["fields"][0]["type"] == "a.Inner"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array", "items": "shop.Nowhere"}, "shop.Nowhere"),
        ({"type": "array"}, "no Avro type"),
        ({"type": "map", "values": 7}, "no Avro type"),
    ],
)
def test_what_is_no_schema_says_why(schema: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        whole(schema, COUNTRY)
