"""Wire values for the decoder's tests: many that fit in one job, many that do not by one plan."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, TimestampNTZType, TimestampType

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.row import RowSpec, with_row
from lakeingest.decode.types.logical_type import LogicalType


def minimal_width(number: int) -> int:
    """Octets of Java's ``BigInteger.toByteArray``."""
    return (number if number >= 0 else ~number).bit_length() // 8 + 1


def unscaled(number: int, width: int | None = None) -> str:
    """Return Connect's ``Decimal`` bytes of an unscaled value in base64."""
    octets = number.to_bytes(width or minimal_width(number), "big", signed=True)
    return base64.b64encode(octets).decode()


def event(after: Mapping[str, Any]) -> str:
    """Return the JSON text of a change event, as JsonConverter without schemas writes it."""
    return json.dumps({"before": None, "after": after, "op": "c"}, separators=(",", ":"))


def decode_texts(
    spark: SparkSession,
    columns: Sequence[SourceColumn],
    texts: Sequence[str],
    encodings: Encodings | None = None,
) -> list[dict[str, Any]]:
    """Decode events in one job, in their order; zoned timestamps come back as microseconds.

    Timestamps are shown as text or numbers, so that Python's own time zone has no say, and so that
    years beyond 9999 can be seen.
    """
    numbered = spark.createDataFrame(
        [(index, text.encode()) for index, text in enumerate(texts)], "_index bigint, value binary"
    ).coalesce(1)
    rows = _decoded(numbered, columns, encodings).orderBy("_index").collect()
    return [
        {name: value for name, value in row.asDict().items() if name != "_index"} for row in rows
    ]


def failures(
    spark: SparkSession, columns: Sequence[SourceColumn], texts: Sequence[str]
) -> list[str | None]:
    """Decode each event in a job of its own; return why it failed, or None.

    Spark plans all of them once: each is a partition of one frame.
    """
    context: Any = spark.sparkContext
    # One more, which has no value and therefore nothing that could fail.
    events = [*texts, event({})]
    value = F.array(*map(F.lit, events))[F.col("id")].cast("binary")
    each = spark.range(0, len(events), 1, len(events)).select(value.alias("value"))
    decoded: Any = _decoded(each, columns)
    partitions = decoded._jdf.queryExecution().toRdd().toJavaRDD()

    def failure(number: int) -> str | None:
        chosen = context._gateway.new_array(context._jvm.int, 1)
        chosen[0] = number
        try:
            (rows,) = partitions.collectPartitions(chosen)
        except Py4JJavaError as error:
            return str(error)
        assert len(rows) == 1
        return None

    *reasons, of_nothing = map(failure, range(len(events)))
    assert of_nothing is None
    return reasons


def _decoded(
    frame: DataFrame, columns: Sequence[SourceColumn], encodings: Encodings | None = None
) -> DataFrame:
    rows = with_row(frame, RowSpec(columns, encodings or Encodings(), JsonRows()), masked=False)
    shown = [_shown(column).alias(column.name) for column in columns]
    return rows.select(*(name for name in frame.columns if name != "value"), *shown)


def _shown(column: SourceColumn) -> Column:
    value = F.col("row").getField(column.name)
    if isinstance(column.type.spark, TimestampType):
        return F.unix_micros(value)
    if isinstance(column.type.spark, TimestampNTZType):
        return value.cast("string")
    if isinstance(column.type.spark, BinaryType):
        return F.hex(value)
    return value


Cases = Mapping[str, tuple[LogicalType, Sequence[tuple[Any, Any]]]]
"""Column name -> its type and pairs of wire value and expected value."""


def decode_cases(
    spark: SparkSession, cases: Cases, encodings: Encodings | None = None
) -> list[tuple[str, Any, Any]]:
    """Decode all cases in one job; return (column and wire value, decoded, expected)."""
    columns = [SourceColumn(name, kind) for name, (kind, _) in cases.items()]
    texts = [
        event({name: pairs[n][0] for name, (_, pairs) in cases.items() if n < len(pairs)})
        for n in range(max(len(pairs) for _, pairs in cases.values()))
    ]
    decoded = decode_texts(spark, columns, texts, encodings)
    return [
        (f"{name} {wire!r}", decoded[n][name], expected)
        for name, (_, pairs) in cases.items()
        for n, (wire, expected) in enumerate(pairs)
    ]
