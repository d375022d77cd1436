"""Where a table's columns come from: a declared schema, a Connect schema, a sample."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakeingest.decode.columns import (
    Encodings,
    declared,
    from_connect,
    of_json,
)
from lakeingest.decode.json_format import envelope_columns
from lakeingest.decode.logical import JSON
from lakeingest.errors import ConfigError

DECIMAL = "org.apache.kafka.connect.data.Decimal"


def connect(**fields: Any) -> str:
    row = {
        "field": "after",
        "type": "struct",
        "fields": [{"field": n} | f for n, f in fields.items()],
    }
    return json.dumps({"type": "struct", "fields": [row | {"field": "before"}, row]})


def test_a_connect_schema_gives_the_sources_types() -> None:
    parameters = {"scale": "2", "connect.decimal.precision": "10"}
    schema = connect(
        id={"type": "int64"},
        small={"type": "int16"},
        n={"type": "bytes", "name": DECIMAL, "parameters": parameters},
        wide={"type": "bytes", "name": DECIMAL, "parameters": {"scale": "0"}},
        huge={
            "type": "bytes",
            "name": DECIMAL,
            "parameters": {"scale": "5", "connect.decimal.precision": "65"},
        },
        day={"type": "int32", "name": "io.debezium.time.Date"},
        at={"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        zoned={"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
        doc={"type": "string", "name": "io.debezium.data.Json"},
        raw={"type": "bytes"},
        tags={"type": "array", "items": {"type": "string", "name": "io.debezium.data.Uuid"}},
        attributes={"type": "map", "keys": {"type": "string"}, "values": {"type": "string"}},
        point={"type": "struct", "fields": [{"field": "x", "type": "int32"}]},
    )
    assert {column.name: column.type.spark for column in envelope_columns(schema)} == {
        "id": LongType(),
        "small": ShortType(),
        "n": DecimalType(10, 2),
        "wide": DecimalType(38, 0),
        "huge": DecimalType(38, 5),
        "day": DateType(),
        "at": TimestampNTZType(),
        "zoned": TimestampType(),
        "doc": StringType(),
        "raw": BinaryType(),
        "tags": ArrayType(StringType()),
        "attributes": MapType(StringType(), StringType()),
        "point": StructType([StructField("x", IntegerType())]),
    }


def test_fields_of_a_schema_give_columns_in_order() -> None:
    fields = [{"field": "b", "type": "int32"}, {"field": "a", "type": "string"}]
    found = from_connect(fields, JSON)
    assert [(column.name, column.type.spark) for column in found] == [
        ("b", IntegerType()),
        ("a", StringType()),
    ]


def test_a_comment_names_the_semantic_type_of_a_declared_column() -> None:
    plain = StructType([StructField("at", TimestampNTZType())])
    named = StructType(
        [StructField("at", TimestampNTZType(), metadata={"comment": "io.debezium.time.Timestamp"})]
    )
    assert declared(plain, Encodings())[0].type.name == "timestamp"
    assert declared(named, Encodings())[0].type != declared(plain, Encodings())[0].type or (
        declared(named, Encodings())[0].type.convert
        is not declared(plain, Encodings())[0].type.convert
    )


def test_a_comment_that_contradicts_the_declared_type_is_refused() -> None:
    field = StructField("at", DateType(), metadata={"comment": "io.debezium.time.Timestamp"})
    with pytest.raises(ConfigError, match="Column 'at' is declared date"):
        declared(StructType([field]), Encodings())


def test_a_type_that_events_cannot_carry_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="Column 'c' is declared void"):
        declared(StructType([StructField("c", ArrayType(NullType()))]), Encodings())


def test_inferred_kinds_become_columns_in_their_order() -> None:
    found = of_json({"b": "int64", "a": "string", "c": "float64", "d": "boolean"})
    assert [(column.name, column.type.name) for column in found] == [
        ("b", "int64"),
        ("a", "string"),
        ("c", "double"),
        ("d", "boolean"),
    ]
