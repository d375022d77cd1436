"""Schemas of the registry: names, references, and what readers are made of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from lakeingest.decode.avro.schema import END, AvroSchema, reader_schema
from tests.decode.avro import envelope_schema

ID = {"name": "id", "type": "long"}


def parsed(schema: Any) -> AvroSchema:
    return AvroSchema.parse(json.dumps(schema))


def test_a_named_type_is_found_by_its_full_name_wherever_it_is_referred_to() -> None:
    schema = parsed(envelope_schema(ID))
    after = schema.fields(schema.tree)["after"]
    assert after["type"] == ["null", "shop.public.orders.Value"]
    assert [*schema.fields(after["type"])] == ["id"]


def test_a_type_that_nothing_defines_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shop\.Missing"):
        parsed(
            {
                "type": "record",
                "name": "E",
                "namespace": "shop",
                "fields": [{"name": "a", "type": "Missing"}],
            }
        )


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
    row = StructType([StructField("id", LongType())])
    found = json.loads(
        reader_schema(parsed(envelope_schema(ID)), StructType([StructField("after", row)]))
    )
    (after, *_) = found["fields"]
    assert after["type"][1]["name"] == "shop.public.orders.Value"
    assert [field["name"] for field in after["type"][1]["fields"]] == ["id"]


def test_fields_that_a_writer_lacks_are_null_to_the_reader() -> None:
    wanted = StructType(
        [
            StructField("gone", StructType([StructField("deep", IntegerType())])),
            StructField("op", StringType()),
        ]
    )
    gone, op, *_ = json.loads(reader_schema(parsed(envelope_schema(ID)), wanted))["fields"]
    assert (gone["default"], gone["type"][0], gone["type"][1]["type"]) == (None, "null", "record")
    assert op == {"name": "op", "type": ["null", "string"], "default": None}


def test_the_schema_that_spark_reads_with_has_structure_only() -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    field = {"name": "n", "type": [decimal, "null"], "default": "}", "doc": "x"}
    row = json.loads(parsed({"type": "record", "name": "R", "fields": [field]}).text)
    number, end = row["fields"]
    assert number == {"name": "n", "type": ["bytes", "null"]}
    assert end["name"] == END


def test_a_record_that_holds_itself_has_no_mark_behind_it() -> None:
    inner = {"name": "next", "type": ["null", "R"]}
    text = parsed({"type": "record", "name": "R", "fields": [inner]}).text
    assert [field["name"] for field in json.loads(text)["fields"]] == ["next"]


def test_an_empty_namespace_is_one_and_a_short_name_may_mean_it() -> None:
    address = {"type": "record", "name": "Address", "namespace": "", "fields": [ID]}
    fields = [{"name": "home", "type": address}, {"name": "work", "type": "Address"}]
    customer = {"type": "record", "name": "Customer", "namespace": "shop", "fields": fields}
    schema = parsed(customer)
    assert [*schema.names] == ["shop.Customer", "Address"]
    assert [*schema.fields(schema.fields(schema.tree)["work"]["type"])] == ["id"]
