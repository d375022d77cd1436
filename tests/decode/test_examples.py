"""The examples that ``lakeingest types`` prints are what the converters make, in both forms.

So are the first and last values of the sources' types (``ranges.py``).
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StructType

from lakeingest.cli.main import execute
from lakeingest.cli.type_examples import EXAMPLES, Schema
from lakeingest.decode.avro.columns import side_columns
from lakeingest.decode.avro.rows import AvroRows
from lakeingest.decode.avro.schema import AvroSchema
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.row import RowSpec, with_row
from lakeingest.decode.types.logical import AVRO, DECIMAL, PRIMITIVES, SEMANTIC
from lakeingest.decode.wire import RowReader
from tests.decode.avro import envelope_schema, event, record, tag
from tests.decode.ranges import RANGES

CHECKED = (*EXAMPLES, *RANGES)
NAMES = [f"c{index}" for index in range(len(CHECKED))]


def shown(value: Column, kind: DataType) -> Column:
    if isinstance(kind, BinaryType):
        return F.hex(value)
    if isinstance(kind, ArrayType | MapType | StructType):
        return F.to_json(value, {"ignoreNullFields": "false"})
    return value.cast("string")


def in_the_lake(
    spark: SparkSession, octets: bytes, columns: tuple[SourceColumn, ...], reader: RowReader
) -> list[str]:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    frame = session.createDataFrame([(octets,)], "value binary")
    rows = with_row(frame, RowSpec(columns, Encodings(), reader), masked=False)
    values = [shown(F.col(f"row.{column.name}"), column.type.spark) for column in columns]
    (row,) = rows.select(*values).collect()
    return list(row)


def test_every_example_and_range_is_what_json_becomes(spark: SparkSession) -> None:
    after = {name: each.wire for name, each in zip(NAMES, CHECKED, strict=True)}
    columns = tuple(
        SourceColumn(name, each.type) for name, each in zip(NAMES, CHECKED, strict=True)
    )
    octets = json.dumps({"after": after}).encode()
    assert in_the_lake(spark, octets, columns, JsonRows()) == [each.lake for each in CHECKED]


def test_every_example_and_range_is_what_avro_becomes(spark: SparkSession) -> None:
    fields = [
        {"name": name, "type": ["null", avro(each.schema, name)]}
        for name, each in zip(NAMES, CHECKED, strict=True)
    ]
    schema = envelope_schema(*fields)
    values = {name: written(e.schema, e.wire) for name, e in zip(NAMES, CHECKED, strict=True)}
    parsed = AvroSchema.parse(json.dumps(schema))
    columns = [
        next(c for c in side_columns(parsed, AVRO.with_policy(each.form.too_large)) if c.name == n)
        for n, each in zip(NAMES, CHECKED, strict=True)
    ]
    octets = record(3, schema, event(values))
    lake_values = in_the_lake(spark, octets, tuple(columns), AvroRows({tag(3): parsed}, {}))
    assert lake_values == [each.lake for each in CHECKED]
    assert [c.type.spark for c in columns] == [each.type.spark for each in CHECKED]


CONNECT = {
    "int8": {"type": "int", "connect.type": "int8"},
    "int16": {"type": "int", "connect.type": "int16"},
    "int32": "int",
    "int64": "long",
    "float": "float",
    "double": "double",
}


def avro(schema: Schema, path: str) -> Any:
    """Return the Avro type that Confluent's ``AvroData`` makes of a Connect schema."""
    kind = schema["type"]
    extra: dict[str, Any] = {}
    if "name" in schema:
        extra = {"connect.name": schema["name"], "connect.version": 1}
    if "parameters" in schema:
        extra["connect.parameters"] = schema["parameters"]
    if kind == "array":
        return {**extra, "type": "array", "items": ["null", avro(schema["items"], f"{path}i")]}
    if kind == "map":
        values = ["null", avro(schema["values"], f"{path}v")]
        if schema["keys"]["type"] == "string":
            return {**extra, "type": "map", "values": values}
        entry = {
            "type": "record",
            "name": "MapEntry",
            "namespace": "io.confluent.connect.avro",
            "connect.internal.type": "MapEntry",
            "fields": [
                {"name": "key", "type": avro(schema["keys"], f"{path}k")},
                {"name": "value", "type": values},
            ],
        }
        return {**extra, "type": "array", "items": entry}
    if kind == "struct":
        fields = [
            {"name": part["field"], "type": ["null", avro(part, f"{path}_{part['field']}")]}
            for part in schema["fields"]
        ]
        return {**extra, "type": "record", "name": f"R{path}", "fields": fields}
    plain = CONNECT.get(kind, kind)
    described = plain if isinstance(plain, dict) else {"type": plain}
    return {**described, **extra} if extra else plain


def written(schema: Schema, wire: Any) -> Any:
    """Return what fastavro takes for a value that JSON shows so."""
    kind = schema["type"]
    if wire is None:
        return None
    if kind == "bytes":
        return base64.b64decode(wire)
    if kind in ("float", "double"):
        return float(wire)
    if kind == "array":
        return [written(schema["items"], item) for item in wire]
    if kind == "map" and schema["keys"]["type"] != "string":
        return [{"key": k, "value": written(schema["values"], v)} for k, v in wire]
    if kind == "map":
        return {k: written(schema["values"], v) for k, v in wire.items()}
    if kind == "struct":
        parts = {part["field"]: part for part in schema["fields"]}
        return {name: written(part, wire.get(name)) for name, part in parts.items()}
    return wire


def test_every_type_that_has_a_converter_has_an_example() -> None:
    shown_types = {each.name for each in EXAMPLES}
    assert {*SEMANTIC, DECIMAL, *PRIMITIVES} - {"float32", "float64"} - shown_types == set()


def test_the_command_prints_a_line_for_every_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["types", "--output", "json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["type"], line["in the lake"]) for line in lines] == [
        (each.name, each.lake) for each in EXAMPLES
    ]
    assert execute(["types"]) == 0
    table = capsys.readouterr().out
    assert "io.debezium.time.StructuredZonedTimestamp" in table
    assert len(table.splitlines()) == len(EXAMPLES) + 2
