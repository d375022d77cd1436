"""Give the rows of a table without a key a key, made from the row itself.

Two policies exist; each has a price. ``full-row``: the values of a row identify it. An update
deletes one row and creates another, and rows that are equal in every column are one row in the
lake. ``append``: the place in the log identifies a row, so equal rows stay two rows. But a later
update or delete does not say which of them it means, so it stops the run. Rejected for ``append``:
the Kafka offset as a key. After a restart the connector repeats rows at other offsets. Rows of one
COPY share a place in the log. The equal ones among them are numbered within one life of the
connector, which repeats all of them or none.

The key is a hash of the row as JSON, because a column of any type may be part of it, NULL too.
``before`` must be whole. PostgreSQL takes no update of a table without a key unless its REPLICA
IDENTITY is FULL; MySQL's and MariaDB's row images are whole by default. Where a connector leaves a
value out (Oracle's LOBs, SQL Server's ``(max)`` types), nobody knows what the row was or is.

The creates and deletes of a row in a transaction are counted; its last event alone does not decide.
``v = v + 1`` over 1 and 2 creates a 2 and then deletes a 2, and there is a 2 as before. If the last
event creates the row, the row is there. Otherwise, as many deletes as creates leave the row as it
was: a net-zero row (``payload/net_zero.py``). Rows without a transaction
(``transaction.mode=none``) are applied one by one, and such a statement loses a row there.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.cast import EXACT_JSON
from lakeingest.decode.row import RowSpec, with_row
from lakeingest.decode.types.logical_type import CONVERSION_FAILED
from lakeingest.event_columns import EVENT
from lakeingest.payload.fold import carried_event
from lakeingest.payload.net_zero import NET_ZERO
from lakeingest.plan.spec import Keyless, PipelineSpec, TableSpec

NO_ROW_BEFORE = "LAKEINGEST_NO_ROW_BEFORE"
"""Start of the message where an update or a delete does not say what the row was."""

NOT_AN_INSERT = "LAKEINGEST_NOT_AN_INSERT"
"""Start of the message where an append-only table has a change that is no insert."""

_BITS = 256


def keyless_rows(rows: DataFrame, table: TableSpec, spec: PipelineSpec) -> DataFrame:
    """Decode changes of a table without a key; columns as ``plan.table.decoded_rows``.

    Args:
        rows: ``CHANGE`` of row and snapshot changes.
        table: Its ``keyless`` is the policy.
        spec: Pipeline settings.
    """
    after = _whole_side(rows, table, spec, "after").withColumnRenamed("row", "_after")
    if table.keyless is Keyless.APPEND:
        # An incremental snapshot sends rows again that are there, at places of its own.
        is_new = ~F.coalesce(F.col("snapshot") == "incremental", F.lit(False))
        inserted = F.col("op").isin("c", "r") & is_new
        whole = F.when(inserted, F.col("_after")).otherwise(F.raise_error(F.lit(NOT_AN_INSERT)))
        inserts = after.withColumn("row", whole).drop("_after")
        key = _hash(F.col("position"), _json("row"), _number())
        return _change_columns(inserts, table, key, F.col("op"))
    sides = _whole_side(after, table, spec, "before").withColumnRenamed("row", "_before")
    # An update that changes nothing neither creates nor deletes a row.
    unchanged = (F.col("op") == "u") & F.coalesce(_json("_before") == _json("_after"), F.lit(False))
    deletion = F.when(F.col("op").isin("u", "d") & ~unchanged, _part("d", -1, _before()))
    creation = F.when(
        F.col("op") != "d",
        F.when(unchanged, _part("c", 0, F.col("_after")))
        .when(F.col("op") == "r", _part("r", 1, F.col("_after")))
        .otherwise(_part("c", 1, F.col("_after"))),
    )
    parts = F.array_compact(F.array(deletion, creation))
    split = sides.withColumn("_part", F.explode(parts))
    for name in ("op", "row", "made"):
        split = split.withColumn(name, F.col("_part").getField(name))
    within = F.coalesce("transaction_key", "position") if spec.whole else F.col("position")
    net = _net(split.withColumn("row_key", _hash(_json("row"))).withColumn("within", within))
    return _change_columns(net, table, F.col("row_key"), F.col("op"))


def _part(op: str, made: int, row: Column) -> Column:
    return F.struct(F.lit(op).alias("op"), F.lit(made).alias("made"), row.alias("row"))


def _net(changes: DataFrame) -> DataFrame:
    """Reduce the changes of each row in each transaction to one change.

    A redelivered event counts once: it has the same place and, within one life of the connector,
    the same identity.

    Args:
        changes: Changes with ``row_key`` (a hash of ``row``), ``made`` (1, 0 or -1 rows) and
            ``within``: their transaction, or their position if they are applied alone.
    """
    event = carried_event(changes)
    # Shuffle once, so that the counts below need no shuffle of their own.
    by_row = changes.repartition("row_key")
    same_event = ("within", "row_key", "position", "op", "made")
    per_incarnation = by_row.groupBy(*same_event, "incarnation").agg(
        F.size(F.collect_set("identity")).alias("times"),
        F.first(F.struct("row", *event)).alias("last"),
    )
    once = per_incarnation.groupBy(*same_event).agg(
        F.max("times").alias("times"), F.first("last").alias("last")
    )
    newest = F.struct("position", F.col("op") != "d")
    come = F.struct("op", *(F.col(f"last.{name}").alias(name) for name in event))
    counts = once.groupBy("within", "row_key").agg(
        F.sum(F.col("made") * F.col("times")).alias("made"),
        F.max_by("op", newest).alias("last_op"),
        F.max_by(come, F.when(F.col("op") != "d", F.col("position"))).alias("come"),
        F.max_by("last", newest).alias("last"),
        F.max("position").alias("position"),
    )
    row_exists = (F.col("last_op") != "d") | (F.col("made") > 0)
    op_without_row = F.when(F.col("made") < 0, F.lit("d")).otherwise(F.lit(NET_ZERO))
    op = F.when(row_exists, F.col("come.op")).otherwise(op_without_row)
    events = (
        F.when(row_exists, F.col(f"come.{name}")).otherwise(F.col(f"last.{name}")).alias(name)
        for name in event
    )
    return counts.select("row_key", op.alias("op"), "position", "last.row", *events)


def _whole_side(rows: DataFrame, table: TableSpec, spec: PipelineSpec, side: str) -> DataFrame:
    row_spec = RowSpec(table.columns, table.encodings_in(spec), table.reader)
    decoded = with_row(rows, row_spec, masked=True, sides=(side,))
    message = F.lit(NO_ROW_BEFORE) if table.reader.partial else _partial_row_message()
    missing = F.raise_error(message)
    partial = F.col("op").isin("u", "d") & F.col("unavailable").isNotNull()
    row = F.when(partial, missing).otherwise(F.col("row"))
    return decoded.withColumn("row", row).drop("unavailable")


def _partial_row_message() -> Column:
    """Return the message for a row that is not whole, in the words of ``Site.failed``."""
    column = F.get("unavailable", F.lit(0))
    before = F.lit(f"{CONVERSION_FAILED}: column '")
    return F.concat(before, column, F.lit(f"': {_PARTIAL}; {_REMEDY}"))


_PARTIAL = "a change leaves a value out, and without a key a row is all that is in it"
_REMEDY = "give the table a primary key, or leave the column out (column.exclude.list)"


def _before() -> Column:
    missing = F.raise_error(F.lit(NO_ROW_BEFORE))
    return F.when(F.col("_before").isNotNull(), F.col("_before")).otherwise(missing).alias("row")


def _change_columns(rows: DataFrame, table: TableSpec, key: Column, op: Column) -> DataFrame:
    event = (EVENT,) if EVENT in rows.columns else ()
    with_key = rows.withColumn("key_row", F.struct(key.alias(*table.key))).withColumn("op", op)
    key_type = with_key.schema["key_row"].dataType
    return with_key.select(
        "key_row",
        "op",
        "position",
        "row",
        F.lit(None).cast("array<string>").alias("unavailable"),
        F.lit(None).cast(key_type).alias("moved_from_row"),
        F.col("position").alias("below"),
        *event,
    )


def _json(row: str) -> Column:
    return F.to_json(F.col(row), EXACT_JSON)


def _hash(*parts: Column) -> Column:
    texts = (part.cast("string") for part in parts)
    return F.sha2(F.concat_ws("/", *texts), _BITS)


def _number() -> Column:
    """Number the rows that are equal and at the same place, in one life of the connector.

    Rows of an initial snapshot are in no transaction, so only their offsets differ.
    """
    by_identity = F.lpad(F.hex(F.col("identity")), 16, "0")
    by_offset = F.concat_ws(
        "/", F.col("partition"), F.lpad(F.col("offset").cast("string"), 20, "0")
    )
    order = F.when(F.col("transaction_key").isNotNull(), by_identity).otherwise(by_offset)
    equal_rows = Window.partitionBy("position", _json("row"), F.col("incarnation"))
    return F.dense_rank().over(equal_rows.orderBy(order))
