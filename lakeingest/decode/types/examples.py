"""One value of every type that Debezium writes, on the wire and in the lake.

``lakeingest types`` prints them. The converter that reads such a record gives the Spark type. The
value in the lake is declared here, and a test converts all of them to it. Rejected: to convert them
when the command runs. It takes a Spark session, ten seconds and a JVM, to print what never changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakeingest.decode.columns import SourceColumn, from_connect
from lakeingest.decode.types.logical import DECIMAL, JSON, Form
from lakeingest.decode.types.logical_type import LogicalType

_TIME = "io.debezium.time."
_DATA = "io.debezium.data."
_CONNECT = "org.apache.kafka.connect.data."

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Example:
    """One value of a type.

    Attributes:
        source: The databases' types that are written like this, or the connector's mode.
        schema: Connect's schema as JsonConverter writes it.
        wire: The value in JSON.
        lake: The value in the lake, as Spark shows it: octets in hexadecimal, composed types as
            JSON.
        form: The form of the wire under the settings of the example.
    """

    source: str
    schema: Schema
    wire: Any
    lake: str
    form: Form = field(default=JSON, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Return Debezium's or Connect's name of the type, or Connect's primitive type."""
        return str(self.schema.get("name") or self.schema["type"])

    @property
    def type(self) -> LogicalType:
        """Return the logical type that a column with this schema gets."""
        (column,) = from_connect([{"field": "value", **self.schema}], self.form)
        return column.type

    @property
    def wire_text(self) -> str:
        """Return the value as a JSON record has it."""
        return json.dumps(self.wire, separators=(",", ":"), ensure_ascii=False)


def _named(kind: str, name: str, **more: Any) -> Schema:
    return {"type": kind, "name": name, **more}


def _decimal(precision: int, scale: int) -> Schema:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return _named("bytes", DECIMAL, parameters=parameters)


def _struct(name: str, **fields: Any) -> Schema:
    described = [
        {"field": key, **(kind if isinstance(kind, dict) else {"type": kind})}
        for key, kind in fields.items()
    ]
    return _named("struct", name, fields=described)


def _array(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


_CLOCK = {"hour": "int8", "minute": "int8", "second": "int8", "nanos": "int32"}
_DAY = {"year": "int32", "month": "int8", "day": "int8"}
_NOON = {"hour": 12, "minute": 30, "second": 0, "nanos": 500_000_000}
_TODAY = {"year": 2026, "month": 1, "day": 2}
_POINT = {"x": "double", "y": "double", "wkb": "bytes", "srid": "int32"}
_WKB = "AQEAAAAAAAAAAADwPwAAAAAAAABA"

PRIMITIVE = (
    Example("boolean, bit(1), tinyint(1) by converter", {"type": "boolean"}, True, "true"),
    Example("MySQL tinyint (Debezium 3.7)", {"type": "int8"}, -128, "-128"),
    Example("smallint; MySQL tinyint before 3.7", {"type": "int16"}, 32767, "32767"),
    Example("int", {"type": "int32"}, 2147483647, "2147483647"),
    Example("bigint, oid", {"type": "int64"}, -9223372036854775808, "-9223372036854775808"),
    Example("real, float4", {"type": "float"}, 0.5, "0.5"),
    Example("double precision, float8; decimals in mode double", {"type": "double"}, "NaN", "NaN"),
    Example("text, varchar, char, citext, inet, …", {"type": "string"}, "ä", "ä"),
    Example("decimals in mode string", {"type": "string"}, "-0.50", "-0.50"),
    Example("bytea, blob, binary in mode bytes", {"type": "bytes"}, "AP8=", "00FF"),
    Example("bytea, blob in modes base64, hex", {"type": "string"}, "00ff", "00ff"),
)

NUMBERS = (
    Example("numeric(10,2), decimal", _decimal(10, 2), "AJY=", "1.50"),
    Example(
        "bigint unsigned in mode precise", _decimal(20, 0), "AP//////////", "18446744073709551615"
    ),
    Example("Oracle NUMBER(5,-2)", _decimal(5, -2), "MDk=", "1234500"),
    Example("NUMBER(3,5), numeric(3,5)", _decimal(3, 5), "ew==", "0.00123"),
    Example(
        "numeric(50,40), default",
        _decimal(50, 40),
        "B4XuENXaRtkA9DagAAAAAA==",
        "0.00100000000000000000000000000000000000",
    ),
    Example(
        "decimal(65,30), default", _decimal(65, 30), "DJ8snNBGdO3qQAAAAQ==", "1." + "0" * 29 + "1"
    ),
    Example(
        "decimal(65,30), lakeingest.decimal.too.large=string",
        _decimal(65, 30),
        "HgK8HpeFi9xsuVBY80JL7lFv9beQAXhAAAAF",
        "12345678901234567890123456789012345.000000000000000000000000000005",
        JSON.with_policy("string"),
    ),
    Example(
        "numeric without precision",
        _struct(_DATA + "VariableScaleDecimal", scale="int32", value="bytes"),
        {"scale": 3, "value": "AQA="},
        "0.256",
    ),
)

TIMES = (
    Example("date", _named("int32", _TIME + "Date"), 20455, "2026-01-02"),
    Example("time, p ≤ 3", _named("int32", _TIME + "Time"), 45_000_500, "12:30:00.500000"),
    Example("time", _named("int64", _TIME + "MicroTime"), 45_000_500_000, "12:30:00.500000"),
    Example(
        "time(7)", _named("int64", _TIME + "NanoTime"), 45_000_500_000_100, "12:30:00.500000100"
    ),
    Example(
        "timestamp, datetime, p ≤ 3",
        _named("int64", _TIME + "Timestamp"),
        1767357000500,
        "2026-01-02 12:30:00.5",
    ),
    Example(
        "timestamp, datetime(6)",
        _named("int64", _TIME + "MicroTimestamp"),
        1767357000500000,
        "2026-01-02 12:30:00.5",
    ),
    Example(
        "datetime2(7); mode nanoseconds",
        _named("int64", _TIME + "NanoTimestamp"),
        1767357000500000999,
        "2026-01-02 12:30:00.5",
    ),
    Example(
        "timestamptz; MySQL timestamp",
        _named("string", _TIME + "ZonedTimestamp"),
        "2026-01-02T12:30:00.500000Z",
        "2026-01-02 12:30:00.5",
    ),
    Example("timetz", _named("string", _TIME + "ZonedTime"), "12:30:00.5Z", "12:30:00.5Z"),
    Example("MySQL year", _named("int32", _TIME + "Year"), 2026, "2026"),
    Example(
        "interval in mode numeric",
        _named("int64", _TIME + "MicroDuration"),
        2629800000000,
        "2629800000000",
    ),
    Example("interval, Oracle", _named("int64", _TIME + "NanoDuration"), 1, "1"),
    Example(
        "interval in mode string",
        _named("string", _TIME + "Interval"),
        "P1Y2M3DT4H5M6.78S",
        "P1Y2M3DT4H5M6.78S",
    ),
    Example("date, mode connect", _named("int32", _CONNECT + "Date"), 20455, "2026-01-02"),
    Example(
        "time, mode connect", _named("int32", _CONNECT + "Time"), 45_000_500, "12:30:00.500000"
    ),
    Example(
        "timestamp, mode connect",
        _named("int64", _CONNECT + "Timestamp"),
        1767357000500,
        "2026-01-02 12:30:00.5",
    ),
    Example(
        "date, mode isostring", _named("string", _TIME + "IsoDate"), "2026-01-02Z", "2026-01-02"
    ),
    Example(
        "time, mode isostring",
        _named("string", _TIME + "IsoTime"),
        "12:30:00.5Z",
        "12:30:00.500000",
    ),
    Example(
        "timestamp, mode isostring",
        _named("string", _TIME + "IsoTimestamp"),
        "2026-01-02T12:30:00.5Z",
        "2026-01-02 12:30:00.5",
    ),
    Example(
        "date, mode structured",
        _struct(_TIME + "StructuredDate", **_DAY, specialValue="string"),
        _TODAY,
        "2026-01-02",
    ),
    Example(
        "time, mode structured",
        _struct(_TIME + "StructuredTime", **_CLOCK, precision="int32"),
        _NOON,
        "12:30:00.500000",
    ),
    Example(
        "timestamp, mode structured",
        _struct(_TIME + "StructuredTimestamp", **_DAY, **_CLOCK, specialValue="string"),
        {**_TODAY, **_NOON},
        "2026-01-02 12:30:00.5",
    ),
    Example(
        "timestamptz, mode structured",
        _struct(
            _TIME + "StructuredZonedTimestamp",
            **_DAY,
            **_CLOCK,
            offsetSeconds="int32",
            specialValue="string",
        ),
        {**_TODAY, **_NOON, "offsetSeconds": 3600},
        "2026-01-02 11:30:00.5",
    ),
    Example(
        "timetz, mode structured",
        _struct(_TIME + "StructuredZonedTime", **_CLOCK, offsetSeconds="int32"),
        {**_NOON, "offsetSeconds": 3600},
        "12:30:00.500000+01:00",
    ),
    Example(
        "interval, mode structured",
        _struct(
            _TIME + "StructuredDuration",
            years="int32",
            months="int32",
            days="int32",
            hours="int32",
            minutes="int32",
            seconds="int64",
            nanos="int32",
        ),
        {"years": 1, "months": 2, "days": 3, "hours": 4, "minutes": 5, "seconds": 6, "nanos": 0},
        "P1Y2M3DT4H5M6S",
    ),
)

OTHERS = (
    Example("json, jsonb", _named("string", _DATA + "Json"), '{"a":1}', '{"a":1}'),
    Example("xml", _named("string", _DATA + "Xml"), "<a/>", "<a/>"),
    Example(
        "uuid",
        _named("string", _DATA + "Uuid"),
        "b68a35a7-17ad-35b3-af2a-ae46edb4545a",
        "b68a35a7-17ad-35b3-af2a-ae46edb4545a",
    ),
    Example("enum", _named("string", _DATA + "Enum", parameters={"allowed": "on,off"}), "on", "on"),
    Example("MySQL set", _named("string", _DATA + "EnumSet"), "a,b", "a,b"),
    Example("ltree", _named("string", _DATA + "Ltree"), "top.sub", "top.sub"),
    Example("tsvector", _named("string", _DATA + "Tsvector"), "'a':1", "'a':1"),
    Example(
        "bit(n): octets, the lowest bits first",
        _named("bytes", _DATA + "Bits", parameters={"length": "10"}),
        "BQE=",
        "0501",
    ),
    Example("text[], uuid[], inet[], …", _array({"type": "string"}), ["a", None], '["a",null]'),
    Example(
        "date[] and arrays of arrays",
        _array(_array(_named("int32", _TIME + "Date"))),
        [[20455], None],
        '[["2026-01-02"],null]',
    ),
    Example("hstore in mode json", _named("string", _DATA + "Json"), '{"a":"1"}', '{"a":"1"}'),
    Example(
        "hstore in mode map",
        {"type": "map", "keys": {"type": "string"}, "values": {"type": "string"}},
        {"a": "1"},
        '{"a":"1"}',
    ),
    Example(
        "vector", _array({"type": "double"}, name=_DATA + "DoubleVector"), [1, 0.5], "[1.0,0.5]"
    ),
    Example(
        "halfvec", _array({"type": "float"}, name=_DATA + "FloatVector"), [1, 0.5], "[1.0,0.5]"
    ),
    Example(
        "sparsevec",
        _struct(
            _DATA + "SparseDoubleVector",
            dimensions="int16",
            vector={"type": "map", "keys": {"type": "int16"}, "values": {"type": "double"}},
        ),
        {"dimensions": 25, "vector": [[11, 0.5]]},
        '{"dimensions":25,"vector":{"11":0.5}}',
    ),
    Example(
        "point",
        _struct(_DATA + "geometry.Point", **_POINT),
        {"x": 1, "y": 2, "wkb": _WKB, "srid": None},
        f'{{"x":1.0,"y":2.0,"wkb":"{_WKB}","srid":null}}',
    ),
    *(
        Example(
            kind.lower(),
            _struct(f"{_DATA}geometry.{kind}", wkb="bytes", srid="int32"),
            {"wkb": _WKB, "srid": 4326},
            f'{{"wkb":"{_WKB}","srid":4326}}',
        )
        for kind in ("Geometry", "Geography")
    ),
    Example(
        "circle",
        _struct(
            _DATA + "geometry.Circle",
            center=_struct(_DATA + "geometry.Point", **_POINT),
            radius="double",
        ),
        {"center": {"x": 1, "y": 2, "wkb": None, "srid": None}, "radius": 3},
        '{"center":{"x":1.0,"y":2.0,"wkb":null,"srid":null},"radius":3.0}',
    ),
    Example(
        "line",
        _struct(_DATA + "geometry.Line", a="double", b="double", c="double"),
        {"a": 1, "b": 2, "c": 3},
        '{"a":1.0,"b":2.0,"c":3.0}',
    ),
)

EXAMPLES: tuple[Example, ...] = (*PRIMITIVE, *NUMBERS, *TIMES, *OTHERS)
"""Every type, in the order in which ``lakeingest types`` lists them."""


def columns() -> Iterator[SourceColumn]:
    """Yield a column per example; its name is its place."""
    for index, example in enumerate(EXAMPLES):
        yield SourceColumn(f"c{index}", example.type)
