"""A column of a database's catalogue is declared as Debezium writes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.decode.catalogue_types import declaration
from lakeingest.decode.columns import SourceColumn, declared_columns, from_connect
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.types.logical import JSON
from tests.decode.connect import (
    DATE,
    MICRO_TIME,
    MICROS,
    MILLIS,
    VARIABLE,
    ZONED,
    array,
    decimal,
    semantic,
)

BITS = semantic("bytes", "data.Bits")

Spelled = Sequence[tuple[dict[str, Any], Sequence[str]]]
"""What a schema says of a column, and the catalogue's types of which it says so."""

POSTGRESQL: Spelled = (
    ({"type": "boolean"}, ["boolean", "bit(1)", "bit varying(1)"]),
    ({"type": "int16"}, ["smallint"]),
    ({"type": "int32"}, ["integer"]),
    ({"type": "int64"}, ["bigint"]),
    ({"type": "float"}, ["real"]),
    ({"type": "double"}, ["double precision"]),
    ({"type": "string"}, ["character varying(20)", "enum", "extensions.citext", "jsonb", "uuid"]),
    ({"type": "string"}, ["time with time zone"]),
    ({"type": "bytes"}, ["bytea"]),
    (BITS, ["bit(10)", "bit varying"]),
    (decimal(10, 2), ["numeric(10,2)"]),
    (decimal(38, 0), ["numeric(38,0)"]),
    (decimal(50, 40), ["numeric(50,40)"]),
    (decimal(3, 5), ["numeric(3,5)"]),
    (decimal(5, -2), ["numeric(5,-2)"]),
    (VARIABLE, ["numeric"]),
    (decimal(19, 2), ["money"]),
    (DATE, ["date"]),
    (MICRO_TIME, ["time without time zone"]),
    (semantic("int32", "time.Time"), ["time(0) without time zone"]),
    (MICROS, ["timestamp without time zone", "timestamp(6) without time zone"]),
    (MILLIS, ["timestamp(3) without time zone"]),
    (ZONED, ["timestamp with time zone", "timestamp(3) with time zone"]),
    (array({"type": "int32"}), ["integer[]"]),
    (array(DATE), ["date[]"]),
    (array(decimal(10, 2)), ["numeric(10,2)[]"]),
    (array({"type": "string"}), ["text[]"]),
)

MYSQL: Spelled = (
    ({"type": "int16"}, ["tinyint(1)"]),
    ({"type": "int32"}, ["smallint(5) unsigned", "mediumint(8) unsigned", "int(11)"]),
    ({"type": "int64"}, ["int unsigned", "int(10) unsigned zerofill", "bigint(20)"]),
    ({"type": "float"}, ["float unsigned"]),
    ({"type": "double"}, ["double"]),
    (decimal(10, 2), ["decimal(10,2)"]),
    (decimal(10, 0), ["decimal(10,0) unsigned"]),
    (decimal(65, 30), ["decimal(65,30)"]),
    ({"type": "string"}, ["varchar(20)", "enum('a(1)','b')", "set('a','b')", "json"]),
    ({"type": "bytes"}, ["varbinary(16)", "longblob"]),
    ({"type": "boolean"}, ["bit(1)"]),
    (BITS, ["bit(8)"]),
    (semantic("int32", "time.Year"), ["year(4)"]),
    (DATE, ["date"]),
    (MICRO_TIME, ["time", "time(6)"]),
    (MILLIS, ["datetime", "datetime(3)"]),
    (MICROS, ["datetime(6)"]),
    (ZONED, ["timestamp"]),
)


@pytest.mark.parametrize(("family", "types"), [("postgresql", POSTGRESQL), ("mysql", MYSQL)])
def test_its_declaration_reads_what_a_schema_would_say(
    spark: SparkSession, family: str, types: Spelled
) -> None:
    encodings = Encodings()
    fields = [{**spec, "field": type_} for spec, spelled in types for type_ in spelled]
    names = [field["field"] for field in fields]
    declarations = [f"`{name}` {declaration(family, name, encodings, None)}" for name in names]
    schema = spark.createDataFrame([], ", ".join(declarations)).schema
    carried = from_connect(fields, JSON.with_policy("string"))

    def facts(columns: tuple[SourceColumn, ...]) -> list[object]:
        return [(each.name, each.type.wire, each.type.spark, each.type.form) for each in columns]

    assert facts(declared_columns(schema, encodings)) == facts(carried)


@pytest.mark.parametrize(
    ("family", "type_", "seen", "text"),
    [
        ("mysql", "tinyint(1)", "boolean", "BOOLEAN"),
        ("mysql", "bigint(20) unsigned", "int64", "DECIMAL(20,0) COMMENT 'bigint unsigned'"),
        ("mysql", "bigint unsigned", "string", "DECIMAL(20,0)"),
        ("mysql", "bigint unsigned", None, "DECIMAL(20,0) COMMENT 'bigint unsigned'"),
        # The connector's mode decides how it is written, and the values do not show it.
        ("postgresql", "interval", "int64", None),
        ("postgresql", "time without time zone[]", None, None),
        ("postgresql", "public.geometry(Point,4326)", "string", None),
        ("mysql", "point", None, None),
    ],
)
def test_values_decide_between_two_ways_of_writing_and_other_types_are_left_to_the_user(
    family: str, type_: str, seen: str | None, text: str | None
) -> None:
    assert declaration(family, type_, Encodings(), seen) == text


@pytest.mark.parametrize(
    ("modes", "type_", "text"),
    [
        (Encodings(decimal="string"), "numeric", "STRING"),
        (Encodings(decimal="double"), "numeric", "DOUBLE"),
        (Encodings(decimal="string"), "numeric(50,1)", "STRING"),
        (Encodings(decimal="string"), "numeric(10,2)", "DECIMAL(10,2)"),
        (Encodings(decimal_format="NUMERIC"), "numeric(50,1)", None),
        (Encodings(time="connect"), "timestamp(3) without time zone", "TIMESTAMP_NTZ"),
        (Encodings(time="connect"), "time without time zone", None),
        (
            Encodings(time="adaptive_time_microseconds"),
            "time(0) without time zone",
            "STRING COMMENT 'io.debezium.time.MicroTime'",
        ),
        (Encodings(time="structured"), "time with time zone", None),
        (Encodings(binary="hex"), "bit(10)", "BINARY COMMENT 'io.debezium.data.Bits'"),
    ],
)
def test_the_connectors_modes_are_respected(modes: Encodings, type_: str, text: str | None) -> None:
    assert declaration("postgresql", type_, modes, None) == text
