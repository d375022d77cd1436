"""Rows that Debezium's ``ExtractNewRecordState`` took out of their envelopes, put back into one.

The transform leaves the row and, of the envelope, what its ``add.fields`` names. A position and a
transaction need ``source.*`` and ``transaction.*``; a row without them is refused, because a
pipeline that guesses an order from arrival would be right until the first restart. Around the text
of the row an envelope is written again, so that all that follows has one form to read; the fields
of the transform are in it still, under names that no column has.

A delete must be a row with ``__deleted`` (``delete.tombstone.handling.mode=rewrite``); the other
modes leave no trace of it but a null record, and Debezium has counted it: its transaction never
becomes whole, and the run says so.

Only JSON: Avro's records have the same fields, but another record schema for each set of them.

Source: Debezium's ``ExtractNewRecordState`` and ``ExtractNewRecordStateConfigDefinition``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from lakeingest.decode.header import envelope_header
from lakeingest.decode.json_envelope import parsed, tagged, unwrapped
from lakeingest.decode.json_format import ADDED, JsonFormat
from lakeingest.shape import SOURCE

FIELDS = (
    "op,source.ts_ms,source.snapshot,source.db,source.schema,source.table,source.sequence,"
    "source.lsn,transaction.id,transaction.total_order"
)
"""``add.fields`` of a PostgreSQL connector; MySQL's and MariaDB's have ``source.gtid``, ``.file``,
``.pos`` and ``.row`` for ``.schema``, ``.sequence`` and ``.lsn``."""


class FlattenedFormat(JsonFormat):
    """Reads JSON rows with the transform's added fields."""

    def envelopes(
        self, records: DataFrame, *, event: bool = False, source: StructType = SOURCE
    ) -> DataFrame:
        """See ``WireFormat``."""
        payload, schema = unwrapped(F.col("value"))
        key, _ = unwrapped(F.col("key"))
        bare = records.select(
            "topic",
            "partition",
            "offset",
            "timestamp",
            "headers",
            key.alias("key"),
            payload.alias("value"),
            schema.alias("_schema"),
        )
        header = envelope_header(event=event, source=source)
        read = parsed(bare, StructType([*_flat(header), header["op"]]))
        side = F.when(F.col(f"{ADDED}op") == "d", "before").otherwise("after")
        row = F.concat(F.lit('{"'), side, F.lit('":'), F.col("value").cast("string"), F.lit("}"))
        whole = tagged(row, F.col("_schema")).cast("binary")
        # The transform leaves what is no envelope of a row as it is: logical messages.
        untouched = F.col(f"{ADDED}op").isNull() & (F.col("op") == "m")
        row_is_there = F.col("value").isNotNull() & ~F.coalesce(untouched, F.lit(False))
        broken = F.col("malformed") | (row_is_there & _says_too_little(header))
        return read.select(
            "topic",
            "partition",
            "offset",
            "timestamp",
            "headers",
            "key",
            F.when(F.col("value").isNotNull(), whole).alias("value"),
            F.when(untouched, F.col("op")).otherwise(F.col(f"{ADDED}op")).alias("op"),
            *(_field(item).alias(item.name) for item in header if item.name != "op"),
            F.coalesce(broken, F.lit(False)).alias("malformed"),
        )

    def row_fields(self, value: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the row's own fields."""
        row = super().row_fields(value)
        return tuple(name for name in row if not name.startswith(ADDED))


_PLACES = ("sequence", "commit_lsn", "gtid", "file", "commit_scn", "commit_time")
"""Fields of a source block one of which orders transactions; an LSN alone does not."""


def _says_too_little(header: StructType) -> Column:
    """Condition: a row that could be any change, or could stand anywhere: broken, not foreign."""
    source = header["source"].dataType
    names = source.fieldNames() if isinstance(source, StructType) else []
    places = [F.col(f"{ADDED}source_{name}").cast("string") for name in _PLACES if name in names]
    streamed = F.col(f"{ADDED}transaction_id").isNotNull()
    return F.col(f"{ADDED}op").isNull() | (streamed & F.coalesce(*places).isNull())


def _flat(header: StructType) -> StructType:
    """Return the fields that the transform makes of an envelope's header."""
    fields: list[StructField] = []
    for item in header:
        if isinstance(item.dataType, StructType):
            fields += [_added(f"{item.name}_{part.name}", part.dataType) for part in item.dataType]
        else:
            fields.append(_added(item.name, item.dataType))
    return StructType(fields)


def _added(name: str, kind: DataType) -> StructField:
    return StructField(f"{ADDED}{name}", kind)


def _field(item: StructField) -> Column:
    if not isinstance(item.dataType, StructType):
        return F.col(f"{ADDED}{item.name}")
    parts = [F.col(f"{ADDED}{item.name}_{part.name}").alias(part.name) for part in item.dataType]
    block = F.struct(*parts)
    if item.name != "transaction":
        return block
    # Rows of a snapshot are in none.
    return F.when(F.col(f"{ADDED}transaction_id").isNotNull(), block)
