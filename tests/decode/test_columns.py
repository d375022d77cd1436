"""Where a table's columns come from: a declared schema, a Connect schema, a sample."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
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

from lakeingest.decode.columns import columns_of_kinds, declared_columns, from_connect
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.format import JsonFormat
from lakeingest.decode.types.decimals import decimal, unsigned
from lakeingest.decode.types.logical import (
    AVRO,
    JSON,
    JSON_NUMERIC,
    PRIMITIVES,
    SEMANTIC,
    Form,
    as_declared,
)
from lakeingest.errors import ConfigError
from tests.decode.connect import DATE, DECIMAL, MICROS, ZONED, array, semantic
from tests.decode.connect import decimal as connect_decimal


def connect(**fields: Any) -> str:
    row = [{"field": name} | spec for name, spec in fields.items()]
    sides = [{"field": side, "type": "struct", "fields": row} for side in ("before", "after")]
    return json.dumps({"type": "struct", "fields": sides})


def test_a_connect_schema_gives_the_sources_types() -> None:
    schema = connect(
        id={"type": "int64"},
        small={"type": "int16"},
        n=connect_decimal(10, 2),
        wide={"type": "bytes", "name": DECIMAL, "parameters": {"scale": "0"}},
        huge=connect_decimal(65, 5),
        day=DATE,
        at=MICROS,
        zoned=ZONED,
        doc=semantic("string", "data.Json"),
        raw={"type": "bytes"},
        tags=array(semantic("string", "data.Uuid")),
        attributes={"type": "map", "keys": {"type": "string"}, "values": {"type": "string"}},
        point={"type": "struct", "fields": [{"field": "x", "type": "int32"}]},
    )
    columns = JsonFormat().carried_schema(0, schema, JSON).columns
    assert {column.name: column.type.spark for column in columns} == {
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
    kinds = [(column.name, column.type.spark) for column in from_connect(fields, JSON)]
    assert kinds == [("b", IntegerType()), ("a", StringType())]


def test_a_comment_names_the_semantic_type_of_a_declared_column() -> None:
    at = StructField("at", TimestampNTZType())
    named = StructField("at", at.dataType, metadata={"comment": "io.debezium.time.Timestamp"})
    (of_plain,) = declared_columns(StructType([at]), Encodings())
    (of_named,) = declared_columns(StructType([named]), Encodings())
    assert of_plain.type.name == "timestamp"
    assert of_named.type != of_plain.type or of_named.type.convert is not of_plain.type.convert


def test_a_comment_that_contradicts_the_declared_type_is_refused() -> None:
    field = StructField("at", DateType(), metadata={"comment": "io.debezium.time.Timestamp"})
    with pytest.raises(ConfigError, match="Column 'at' is declared date"):
        declared_columns(StructType([field]), Encodings())


def test_a_type_that_events_cannot_carry_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="Column 'c' is declared void"):
        declared_columns(StructType([StructField("c", ArrayType(NullType()))]), Encodings())


def test_inferred_kinds_become_columns_in_their_order() -> None:
    columns = columns_of_kinds({"b": "int64", "a": "string", "c": "float64", "d": "boolean"})
    kinds = [(column.name, column.type.name) for column in columns]
    assert kinds == [("b", "int64"), ("a", "string"), ("c", "double"), ("d", "boolean")]


TIME = "io.debezium.time."
BY_MODE = {
    "adaptive": ("Date", "MicroTimestamp", "ZonedTimestamp"),
    "adaptive_time_microseconds": ("Date", "MicroTimestamp", "ZonedTimestamp"),
    "microseconds": ("Date", "MicroTimestamp", "ZonedTimestamp"),
    "nanoseconds": ("Date", "NanoTimestamp", "ZonedTimestamp"),
    "connect": ("Date", "Timestamp", "ZonedTimestamp"),
    "isostring": ("IsoDate", "IsoTimestamp", "ZonedTimestamp"),
    "structured": ("StructuredDate", "StructuredTimestamp", "StructuredZonedTimestamp"),
}


@pytest.mark.parametrize("mode", BY_MODE)
def test_declared_times_are_read_as_the_connectors_mode_writes_them(mode: str) -> None:
    kinds = (DateType(), TimestampNTZType(), TimestampType())
    schema = StructType([StructField(f"c{at}", kind) for at, kind in enumerate(kinds)])
    logical_types = [column.type for column in declared_columns(schema, Encodings(time=mode))]
    expected = [SEMANTIC[TIME + name] for name in BY_MODE[mode]]
    assert all(one is other for one, other in zip(logical_types, expected, strict=True))


VARIABLE = "io.debezium.data.VariableScaleDecimal"
OF_VARIABLE = SEMANTIC[VARIABLE].wire
COMMENTED: dict[str, tuple[DataType, str, DataType]] = {
    "an unconstrained numeric as text": (StringType(), VARIABLE, OF_VARIABLE),
    "an unconstrained numeric as a decimal": (DecimalType(20, 4), VARIABLE, OF_VARIABLE),
    "an unsigned bigint": (DecimalType(20, 0), "bigint unsigned", LongType()),
    "a decimal of 65 digits": (StringType(), DECIMAL + "(65, 30)", StringType()),
}


@pytest.mark.parametrize("name", COMMENTED)
def test_a_comment_says_what_a_declared_number_is_on_the_wire(name: str) -> None:
    spark, comment, wire = COMMENTED[name]
    field = StructField("n", spark, metadata={"comment": comment})
    (column,) = declared_columns(StructType([field]), Encodings())
    assert (column.type.spark, column.type.wire) == (spark, wire)
    assert column.type.convert is not PRIMITIVES["string"].convert


def test_decimals_of_the_converters_numeric_format_are_numbers() -> None:
    (column,) = from_connect([connect_decimal(10, 2, field="n")], JSON_NUMERIC)
    assert column.type.wire == column.type.spark == DecimalType(10, 2)
    declared = StructType().add("n", DecimalType(10, 2))
    (plain,) = declared_columns(declared, Encodings(decimal_format="NUMERIC"))
    assert plain.type.spark == column.type.spark
    # No schema promises the scale: the digits that rounding would drop are read, too.
    assert plain.type.wire == DecimalType(38, 30)


@pytest.mark.parametrize("form", [JSON, AVRO], ids=["json", "avro"])
def test_a_carried_decimal_is_stored_as_a_ddl_declares_it(form: Form) -> None:
    variable = form.semantic[VARIABLE]
    number = form.decimal(38, 4)
    plain, digits = PRIMITIVES["string"], decimal(20, 4)
    as_number, as_text = as_declared(variable, digits), as_declared(number, plain)
    assert as_number is not None
    assert as_text is not None
    assert (as_number.wire, as_number.spark) == (variable.wire, DecimalType(20, 4))
    assert (as_text.wire, as_text.spark) == (number.wire, StringType())
    assert as_text != plain
    assert as_declared(variable, plain) is None
    assert as_declared(PRIMITIVES["int64"], unsigned()) == unsigned()
    assert as_declared(PRIMITIVES["int64"], decimal(20, 0)) is None
