"""Schemas of the registry: names, references, and what readers are made of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructType

from lakeingest.decode.avro.schema import END, AvroSchema, reader_schema
from tests.decode.avro import envelope_schema, field, record_schema

ID = field("id", "long")


def parsed(schema: Any) -> AvroSchema:
    return AvroSchema.parse(json.dumps(schema))


def test_a_named_type_is_found_by_its_full_name_wherever_it_is_referred_to() -> None:
    schema = parsed(envelope_schema(ID))
    after = schema.fields(schema.tree)["after"]
    assert after["type"] == ["null", "shop.public.orders.Value"]
    assert [*schema.fields(after["type"])] == ["id"]


def test_a_type_that_nothing_defines_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shop\.Missing"):
        parsed(record_schema("E", field("a", "Missing"), namespace="shop"))


@pytest.mark.parametrize("text", ['"text of a proxy"', "[]", "{}", '{"type": "record"}'])
def test_what_is_no_record_schema_gives_no_fields_or_is_refused(text: str) -> None:
    try:
        schema = AvroSchema.parse(text)
    except (ValueError, KeyError):
        return
    assert schema.fields(schema.tree) == {}


def test_a_reader_defines_a_type_where_it_first_stands_though_its_writer_defined_it_elsewhere() -> (
    None
):
    schema = StructType().add("after", StructType().add("id", LongType()))
    (after, *_) = json.loads(reader_schema(parsed(envelope_schema(ID)), schema))["fields"]
    assert after["type"][1]["name"] == "shop.public.orders.Value"
    assert [field["name"] for field in after["type"][1]["fields"]] == ["id"]


def test_fields_that_a_writer_lacks_are_null_to_the_reader() -> None:
    gone_too = StructType().add("deep", IntegerType())
    schema = StructType().add("gone", gone_too).add("op", StringType())
    gone, op, *_ = json.loads(reader_schema(parsed(envelope_schema(ID)), schema))["fields"]
    assert (gone["default"], gone["type"][0], gone["type"][1]["type"]) == (None, "null", "record")
    assert op == {"name": "op", "type": ["null", "string"], "default": None}


def test_the_schema_that_spark_reads_with_has_structure_only() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    number = field("n", [decimal, "null"], default="}", doc="x")
    number, end = json.loads(parsed(record_schema("R", number)).text)["fields"]
    assert number == {"name": "n", "type": ["bytes", "null"]}
    assert end["name"] == END


def test_a_record_that_holds_itself_has_no_mark_behind_it() -> None:
    text = parsed(record_schema("R", field("next", ["null", "R"]))).text
    assert [field["name"] for field in json.loads(text)["fields"]] == ["next"]


def test_an_empty_namespace_is_one_and_a_short_name_may_mean_it() -> None:
    fields = (field("home", record_schema("Address", ID, namespace="")), field("work", "Address"))
    schema = parsed(record_schema("Customer", *fields, namespace="shop"))
    assert [*schema.names] == ["shop.Customer", "Address"]
    assert [*schema.fields(schema.fields(schema.tree)["work"]["type"])] == ["id"]
