"""A column of a database's catalogue is declared as Debezium writes it."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.decode.catalogue_types import declaration
from lakeingest.decode.columns import SourceColumn, declared_columns, from_connect
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.types.logical import JSON

DECIMAL = "org.apache.kafka.connect.data.Decimal"


def decimal(precision: int, scale: int) -> dict[str, Any]:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {"type": "bytes", "name": DECIMAL, "parameters": parameters}


def semantic(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "name": f"io.debezium.{name}"}


DATE = semantic("int32", "time.Date")
MILLIS = semantic("int64", "time.Timestamp")
MICROS = semantic("int64", "time.MicroTimestamp")
MICRO_TIME = semantic("int64", "time.MicroTime")
ZONED = semantic("string", "time.ZonedTimestamp")
VARIABLE = {
    **semantic("struct", "data.VariableScaleDecimal"),
    "fields": [{"field": "scale", "type": "int32"}, {"field": "value", "type": "bytes"}],
}

POSTGRESQL = (
    ("boolean", {"type": "boolean"}),
    ("smallint", {"type": "int16"}),
    ("integer", {"type": "int32"}),
    ("bigint", {"type": "int64"}),
    ("real", {"type": "float"}),
    ("double precision", {"type": "double"}),
    ("character varying(20)", {"type": "string"}),
    ("enum", {"type": "string"}),
    ("extensions.citext", {"type": "string"}),
    ("jsonb", {"type": "string"}),
    ("uuid", {"type": "string"}),
    ("bytea", {"type": "bytes"}),
    ("bit(1)", {"type": "boolean"}),
    ("bit(10)", semantic("bytes", "data.Bits")),
    ("bit varying(1)", {"type": "boolean"}),
    ("bit varying", semantic("bytes", "data.Bits")),
    ("numeric(10,2)", decimal(10, 2)),
    ("numeric(38,0)", decimal(38, 0)),
    ("numeric(50,40)", decimal(50, 40)),
    ("numeric(3,5)", decimal(3, 5)),
    ("numeric(5,-2)", decimal(5, -2)),
    ("numeric", VARIABLE),
    ("money", decimal(19, 2)),
    ("date", DATE),
    ("time without time zone", MICRO_TIME),
    ("time(0) without time zone", semantic("int32", "time.Time")),
    ("time with time zone", {"type": "string"}),
    ("timestamp without time zone", MICROS),
    ("timestamp(3) without time zone", MILLIS),
    ("timestamp(6) without time zone", MICROS),
    ("timestamp with time zone", ZONED),
    ("timestamp(3) with time zone", ZONED),
    ("integer[]", {"type": "array", "items": {"type": "int32"}}),
    ("date[]", {"type": "array", "items": DATE}),
    ("numeric(10,2)[]", {"type": "array", "items": decimal(10, 2)}),
    ("text[]", {"type": "array", "items": {"type": "string"}}),
)

MYSQL = (
    ("tinyint(1)", {"type": "int16"}),
    ("smallint(5) unsigned", {"type": "int32"}),
    ("mediumint(8) unsigned", {"type": "int32"}),
    ("int(11)", {"type": "int32"}),
    ("int unsigned", {"type": "int64"}),
    ("int(10) unsigned zerofill", {"type": "int64"}),
    ("bigint(20)", {"type": "int64"}),
    ("float unsigned", {"type": "float"}),
    ("double", {"type": "double"}),
    ("decimal(10,2)", decimal(10, 2)),
    ("decimal(10,0) unsigned", decimal(10, 0)),
    ("decimal(65,30)", decimal(65, 30)),
    ("varchar(20)", {"type": "string"}),
    ("enum('a(1)','b')", {"type": "string"}),
    ("set('a','b')", {"type": "string"}),
    ("json", {"type": "string"}),
    ("varbinary(16)", {"type": "bytes"}),
    ("longblob", {"type": "bytes"}),
    ("bit(1)", {"type": "boolean"}),
    ("bit(8)", semantic("bytes", "data.Bits")),
    ("year(4)", semantic("int32", "time.Year")),
    ("date", DATE),
    ("time", MICRO_TIME),
    ("time(6)", MICRO_TIME),
    ("datetime", MILLIS),
    ("datetime(3)", MILLIS),
    ("datetime(6)", MICROS),
    ("timestamp", ZONED),
)


@pytest.mark.parametrize(("family", "types"), [("postgresql", POSTGRESQL), ("mysql", MYSQL)])
def test_its_declaration_reads_what_a_schema_would_say(
    spark: SparkSession, family: str, types: tuple[tuple[str, dict[str, Any]], ...]
) -> None:
    encodings = Encodings()
    declarations = [
        f"`{type_}` {declaration(family, type_, encodings, None)}" for type_, _ in types
    ]
    schema = spark.createDataFrame([], ", ".join(declarations)).schema
    fields = [{"field": type_, **field} for type_, field in types]
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
