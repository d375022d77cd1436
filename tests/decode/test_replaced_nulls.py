"""Schemas that show where a converter may have written a default for NULL."""

from __future__ import annotations

import json

from lakeingest.decode.avro.format import AvroFormat
from lakeingest.decode.avro.schema import AvroSchema
from lakeingest.decode.json.format import CarriedSchema, JsonFormat
from lakeingest.decode.replaced_nulls import (
    nullable_defaults,
    nullable_defaults_in_row,
    replaced_nulls_warning,
)
from tests.decode.avro import envelope_schema, tag

FIELDS = [
    {"field": "id", "type": "int32", "optional": False, "default": 0},
    {"field": "k", "type": "int32", "optional": True, "default": 5},
    {"field": "n", "type": "int32", "optional": True},
    {"field": "flag", "type": "boolean", "optional": True, "default": False},
]


def test_a_nullable_column_with_a_default_is_named_in_json() -> None:
    schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": FIELDS}]}
    found = nullable_defaults(json.dumps(schema))
    assert found == ("k", "flag")
    form = JsonFormat({b"1": CarriedSchema(0, (), found), b"2": CarriedSchema(1, (), ("k", "z"))})
    assert form.defaulted({b"1", b"2", b"unknown"}) == ("k", "flag", "z")
    assert nullable_defaults('{"type":"struct","fields":[]}') == ()


def test_a_nullable_column_with_a_default_is_named_in_a_row_without_its_envelope() -> None:
    added = {"field": "__op", "type": "string", "optional": True, "default": "c"}
    schema = {"type": "struct", "fields": [*FIELDS, added]}
    assert nullable_defaults_in_row(json.dumps(schema)) == ("k", "flag")


def test_a_nullable_column_with_a_default_is_named_in_avro() -> None:
    schema = envelope_schema(
        {"name": "id", "type": "int", "default": 0},
        {"name": "k", "type": ["int", "null"], "default": 5},
        {"name": "n", "type": ["null", "int"], "default": None},
        {"name": "flag", "type": ["boolean", "null"], "default": False},
    )
    form = AvroFormat({tag(3): AvroSchema.parse(json.dumps(schema))})
    assert form.defaulted({tag(3)}) == ("k", "flag")


def test_the_warning_names_table_columns_and_setting() -> None:
    text = replaced_nulls_warning("public.t", ("k", "flag"))
    assert "Table 'public.t': k, flag may be NULL" in text
    assert "value.converter.replace.null.with.default=false" in text
