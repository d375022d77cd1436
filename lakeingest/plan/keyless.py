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
IDENTITY is FULL, MySQL's and MariaDB's row images are whole by default. Where a connector leaves a
value out (Oracle's LOBs, SQL Server's ``(max)`` types), nobody knows what the row was or is.

What a transaction does to a row is counted, not looked up at its last event: ``v = v + 1`` over 1
and 2 makes a 2 and then takes one away, and there is a 2 as before. Whoever made the last of them,
the row is there; else as many taken as made leave it as it was (``payload/net_zero.py``). Rows that
no transaction holds together (``transaction.mode=none``) are each on their own, and such a
statement loses a row there.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.decode.logical_type import CONVERSION_FAILED
from lakeingest.decode.row import with_row
from lakeingest.event_columns import EVENT
from lakeingest.payload.fold import carried_event
from lakeingest.payload.net_zero import KEPT
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
        rows: ``CHANGE`` of row and snapshot changes.
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
    # One that changes nothing neither makes a row nor takes one away.
    same = (F.col("op") == "u") & F.coalesce(_json("_before") == _json("_after"), F.lit(False))
    gone = F.when(F.col("op").isin("u", "d") & ~same, _part("d", -1, _before()))
    come = F.when(
        F.col("op") != "d",
        F.when(same, _part("c", 0, F.col("_after")))
        .when(F.col("op") == "r", _part("r", 1, F.col("_after")))
        .otherwise(_part("c", 1, F.col("_after"))),
    )
    parts = F.array_compact(F.array(gone, come))
    apart = both.withColumn("_part", F.explode(parts))
    for name in ("op", "row", "made"):
        apart = apart.withColumn(name, F.col("_part").getField(name))
    within = F.coalesce("transaction_key", "position") if spec.whole else F.col("position")
    net = _net(apart.withColumn("row_key", _hash(_json("row"))).withColumn("within", within))
    return _shaped(net, table, F.col("row_key"), F.col("op"))


def _part(op: str, made: int, row: Column) -> Column:
    return F.struct(F.lit(op).alias("op"), F.lit(made).alias("made"), row.alias("row"))


def _net(apart: DataFrame) -> DataFrame:
    """Keep of what a transaction does to each row one change.

    An event that came again counts once: it has the same place, and within one life of the
    connector the same identity.

    Args:
        apart: Changes with ``row_key`` (a hash of ``row``), ``made`` (1, 0 or -1 rows) and
            ``within``: what they are one with.
    """
    event = carried_event(apart)
    # The counts below need no shuffle of their own.
    together = apart.repartition("row_key")
    alike = ("within", "row_key", "position", "op", "made")
    in_one_life = together.groupBy(*alike, "incarnation").agg(
        F.size(F.collect_set("identity")).alias("times"),
        F.first(F.struct("row", *event)).alias("last"),
    )
    once = in_one_life.groupBy(*alike).agg(
        F.max("times").alias("times"), F.first("last").alias("last")
    )
    newest = F.struct("position", F.col("op") != "d")
    counted = once.groupBy("within", "row_key").agg(
        F.sum(F.col("made") * F.col("times")).alias("made"),
        F.max_by("op", newest).alias("last_op"),
        F.max_by("op", F.when(F.col("op") != "d", F.col("position"))).alias("come"),
        F.max_by("last", newest).alias("last"),
        F.max("position").alias("position"),
    )
    there = (F.col("last_op") != "d") | (F.col("made") > 0)
    gone = F.when(F.col("made") < 0, F.lit("d")).otherwise(F.lit(KEPT))
    op = F.when(there, F.col("come")).otherwise(gone)
    return counted.select("row_key", op.alias("op"), "position", "last.*")


def _decoded(rows: DataFrame, table: TableSpec, spec: PipelineSpec, side: str) -> DataFrame:
    encodings = table.encodings_in(spec)
    read = with_row(rows, table.columns, encodings, table.reader, masked=True, sides=(side,))
    missing = F.raise_error(F.lit(NO_ROW_BEFORE) if table.reader.cells else _left_out())
    partial = F.col("op").isin("u", "d") & F.col("unavailable").isNotNull()
    row = F.when(partial, missing).otherwise(F.col("row"))
    return read.withColumn("row", row).drop("unavailable")


def _left_out() -> Column:
    """Return the message of a row that is not whole, as ``Site.failed`` words it."""
    column = F.get("unavailable", F.lit(0))
    before = F.lit(f"{CONVERSION_FAILED}: column '")
    return F.concat(before, column, F.lit(f"': {_PARTIAL}; {_REMEDY}"))


_PARTIAL = "a change leaves a value out, and without a key a row is all that is in it"
_REMEDY = "give the table a primary key, or leave the column out (column.exclude.list)"


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
        F.col("position").alias("below"),
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
