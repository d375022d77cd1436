"""Schemas that show where a converter may have written a default for NULL."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakeingest.decode.avro.format import AvroFormat
from lakeingest.decode.flattened.json_format import FlattenedFormat
from lakeingest.decode.json.format import JsonFormat
from lakeingest.decode.replaced_nulls import replaced_nulls_warning
from lakeingest.decode.types.logical import JSON
from tests.decode.avro import envelope_schema, field, optional, parsed, tag

FIELDS = [
    {"field": "id", "type": "int32", "optional": False, "default": 0},
    {"field": "k", "type": "int32", "optional": True, "default": 5},
    {"field": "n", "type": "int32", "optional": True},
    {"field": "flag", "type": "boolean", "optional": True, "default": False},
]


ADDED = {"field": "__op", "type": "string", "optional": True, "default": "c"}
ROW = {"type": "struct", "fields": [*FIELDS, ADDED]}
ENVELOPE = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": FIELDS}]}


@pytest.mark.parametrize(("form", "schema"), [(JsonFormat, ENVELOPE), (FlattenedFormat, ROW)])
def test_a_nullable_column_with_a_default_is_named_in_json(
    form: type[JsonFormat], schema: dict[str, Any]
) -> None:
    more = {"type": "int32", "optional": True, "default": 1}
    other = {"fields": [{"field": name, **more} for name in ("k", "z")]}
    other = other if form is FlattenedFormat else {"fields": [{"field": "before", **other}]}
    texts = {b"1": schema, b"2": other, b"3": {"type": "struct", "fields": []}}
    schemas = {tag: form().carried_schema(0, json.dumps(one), JSON) for tag, one in texts.items()}
    assert form(schemas).nullable_defaults({b"1"}) == ("k", "flag")
    assert form(schemas).nullable_defaults({*schemas, b"unknown"}) == ("k", "flag", "z")
    assert form(schemas).nullable_defaults({b"3"}) == ()


def test_a_nullable_column_with_a_default_is_named_in_avro() -> None:
    schema = envelope_schema(
        field("id", "int", default=0),
        field("k", ["int", "null"], default=5),
        optional("n", "int"),
        field("flag", ["boolean", "null"], default=False),
    )
    assert AvroFormat(parsed({3: schema})).nullable_defaults({tag(3)}) == ("k", "flag")


def test_the_warning_names_table_columns_and_setting() -> None:
    text = replaced_nulls_warning("public.t", ("k", "flag"))
    assert "Table 'public.t': k, flag may be NULL" in text
    assert "value.converter.replace.null.with.default=false" in text
