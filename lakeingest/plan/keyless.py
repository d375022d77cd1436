"""Changes of a table without a key: each row gets one, made of what it is.

Two readings, neither of them for free. ``full-row``: a row is what is in it, so an update takes one
row away and brings another, and rows that are equal in every column are one row in the lake.
``append``: a row is its place in the log, so equal rows stay two rows, but nothing says later which
of them was meant, so an update or a delete stops the run. Rejected for ``append`` is the Kafka
offset as a key: the connector repeats rows after a restart, at other offsets. Rows of one COPY
share a place in the log; those of them that are equal are numbered within one life of the
connector, which repeats all of them or none.

The key is a hash of the row as JSON, because a column of any type may be part of it, NULL too.
``before`` must be whole: PostgreSQL takes no update of a table without a key unless its REPLICA
IDENTITY is FULL, MySQL's and MariaDB's row images are whole by default.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.decode.row import with_row
from lakeingest.event_columns import EVENT
from lakeingest.plan.spec import Keyless, PipelineSpec, TableSpec

NO_ROW_BEFORE = "LAKEINGEST_NO_ROW_BEFORE"
"""Start of the message where an update or a delete does not say what the row was."""

NOT_AN_INSERT = "LAKEINGEST_NOT_AN_INSERT"
"""Start of the message where a table that is only appended to has another change."""

_BITS = 256
_EXACT = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark's own format stops at milliseconds: two rows would have one key."""


def keyless_rows(rows: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Decode changes of a table without a key; columns as ``plan.table.decoded_rows``.

    Args:
        rows: ``shape.CHANGE`` of row and snapshot changes.
        table: Its ``keyless`` says which reading.
        spec: Pipeline settings.
    """
    after = _decoded(rows, table, spec, "after").withColumnRenamed("row", "_after")
    if table.keyless is Keyless.APPEND:
        inserted = F.col("op").isin("c", "r")
        whole = F.when(inserted, F.col("_after")).otherwise(F.raise_error(F.lit(NOT_AN_INSERT)))
        placed = after.withColumn("row", whole).drop("_after")
        key = _hash(F.col("position"), _json("row"), _number())
        return _shaped(placed, table, key, F.col("op"))
    both = _decoded(after, table, spec, "before").withColumnRenamed("row", "_before")
    gone = F.when(F.col("op").isin("u", "d"), F.struct(F.lit("d").alias("op"), _before()))
    come = F.when(
        F.col("op") != "d",
        F.struct(
            F.when(F.col("op") == "r", "r").otherwise("c").alias("op"), F.col("_after").alias("row")
        ),
    )
    # An update that changes nothing would take its own row away.
    same = F.coalesce(_json("_before") == _json("_after"), F.lit(False))
    parts = F.array_compact(F.array(F.when(~same, gone), come))
    apart = both.withColumn("_part", F.explode(parts)).withColumn("row", F.col("_part.row"))
    return _shaped(apart, table, _hash(_json("row")), F.col("_part.op"))


def _decoded(rows: DataFrame, table: TableSpec, spec: PipelineSpec, side: str) -> DataFrame:
    cells = table.reader.cells
    encodings = table.encodings_in(spec)
    read = with_row(rows, table.columns, encodings, table.reader, masked=cells, sides=(side,))
    if not cells:
        return read
    missing = F.raise_error(F.lit(NO_ROW_BEFORE))
    row = F.when(F.col("unavailable").isNotNull(), missing).otherwise(F.col("row"))
    return read.withColumn("row", row).drop("unavailable")


def _before() -> Column:
    missing = F.raise_error(F.lit(NO_ROW_BEFORE))
    return F.when(F.col("_before").isNotNull(), F.col("_before")).otherwise(missing).alias("row")


def _shaped(rows: DataFrame, table: TableSpec, key: Column, op: Column) -> DataFrame:
    event = (EVENT,) if EVENT in rows.columns else ()
    keyed = rows.withColumn("key_row", F.struct(key.alias(*table.key))).withColumn("op", op)
    empty = keyed.schema["key_row"].dataType
    return keyed.select(
        "key_row",
        "op",
        "position",
        "row",
        F.lit(None).cast("array<string>").alias("unavailable"),
        F.lit(None).cast(empty).alias("moved_from_row"),
        *event,
    )


def _json(row: str) -> Column:
    return F.to_json(F.col(row), _EXACT)


def _hash(*parts: Column) -> Column:
    texts = (part.cast("string") for part in parts)
    return F.sha2(F.concat_ws("/", *texts), _BITS)


def _number() -> Column:
    """Number a row among those that are equal and at the same place, in one life of the connector.

    Rows of an initial snapshot are in no transaction, so nothing but the offset tells them apart.
    """
    streamed = F.lpad(F.hex(F.col("identity")), 16, "0")
    read = F.concat_ws("/", F.col("partition"), F.lpad(F.col("offset").cast("string"), 20, "0"))
    order = F.when(F.col("transaction_key").isNotNull(), streamed).otherwise(read)
    alike = Window.partitionBy("position", _json("row"), F.col("incarnation"))
    return F.dense_rank().over(alike.orderBy(order))
