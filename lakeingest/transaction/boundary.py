"""BEGIN and END records to transaction boundaries, in commit order.

Commit order is the order of END on the one-partition transaction topic. What the topic holds
beside one BEGIN and one END per transaction, and what is made of it:

* *Repeated END* (a restarted connector sends whole transactions again): the first one counts; the
  rows that come again have the same identity and position, so they change nothing.
* *Repeated BEGIN*: a connector before 3.7.0 that was killed in mid-transaction counts only the
  tail in END. ``begins`` tells the completeness check that the count alone proves nothing.
* *BEGIN without END*, then the BEGIN of a **later** transaction: over where the connector writes
  such (MariaDB's TRUNCATE and DDL). If the next BEGIN is of the same or an earlier transaction the
  connector went back, and the first one will come again; taking it as over would publish half of
  it (recorded: ``mariadb-kill-replay``, BEGIN 8274 followed by BEGIN 8074).
* *Any other BEGIN without END* is ``open``. It comes again, or its END does, before the first END
  of any later transaction: a connector goes back to transactions whose ENDs it wrote before, never
  past one that it had begun. So an END that is new and stands behind an open BEGIN shows that
  records are lost (``cut.first_passing``). Positions are not compared: a BEGIN of PostgreSQL names
  the place where its transaction began to write, which may lie below earlier commits.
* *Foreign messages* have neither status: ignored, counted by the caller.
* *Unreadable ones* (broken JSON, a BEGIN or END whose id gives no position) become a boundary with
  the empty position, which lies below all: dropping them would lose a transaction in silence.

The rejected way is to order by ``ts_ms`` or by the id: the first is the same for many, the second
is not ordered on every connector.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.frame_schemas import BOUNDARY


def boundaries(
    metadata: DataFrame,
    transaction_key: Column,
    end_position: Column,
    implied_end: bool,
) -> DataFrame:
    """Find the transactions that are over in a slice of the transaction topic.

    Args:
        metadata: ``decode_transaction_metadata``'s columns, one partition.
        transaction_key: The connector family's key, over column ``id``.
        end_position: The family's end position, over column ``id``.
        implied_end: Whether a BEGIN without END is over at a later transaction's BEGIN.

    Returns:
        ``BOUNDARY``, one row per transaction; ``end_offset`` is the offset of its END (of
        its BEGIN where the end is implied), or of the last BEGIN of one that is open.
    """
    by_key = Window.partitionBy("transaction_key").orderBy("offset")
    whole = by_key.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    is_end = F.col("status") == "END"
    told = F.coalesce(F.col("status").isin("BEGIN", "END"), F.lit(False))
    readable = told & ~F.col("malformed") & end_position.isNotNull()
    unreadable = F.col("malformed") | (told & end_position.isNull())
    # One sort serves all of it: the windows share their partitioning and order.
    earlier = by_key.rowsBetween(Window.unboundedPreceding, -1)
    known = metadata.where(readable).withColumn("end_position", end_position)
    overtaken = _overtaken(is_end) if implied_end else F.lit(False)
    marked = (
        known.withColumn("_overtaken", overtaken)
        .withColumn("transaction_key", transaction_key)
        .withColumn("begins", F.sum((~is_end).cast("bigint")).over(by_key))
        .withColumn("begun", F.min(F.when(~is_end, F.col("offset"))).over(by_key))
        .withColumn("_ends", F.sum(is_end.cast("bigint")).over(whole))
        .withColumn("_ended_at", F.last(F.when(is_end, F.col("end_position")), True).over(earlier))
        .withColumn("_passed", F.sum(F.col("_overtaken").cast("bigint")).over(earlier))
        .withColumn("_passes", F.max("_overtaken").over(whole))
        .withColumn("_last", F.max("offset").over(whole))
    )
    # An xid may come again with another END (PostgreSQL); the same END again is a repetition.
    repeated = F.coalesce(F.col("_ended_at") == F.col("end_position"), F.lit(False))
    unended = F.col("_ends") == 0
    implied = unended & F.col("_overtaken") & (F.coalesce("_passed", F.lit(0)) == 0)
    opened = unended & ~F.col("_passes") & (F.col("offset") == F.col("_last"))
    over = (
        marked.withColumn("implied", F.coalesce(implied, F.lit(False)))
        .withColumn("open", F.coalesce(opened, F.lit(False)))
        .where((is_end & ~repeated) | F.col("implied") | F.col("open"))
    )
    broken = metadata.where(unreadable).withColumn("implied", F.lit(False))
    broken = broken.withColumn("open", F.lit(False)).withColumn(
        "data_collections", F.lit(None).cast(over.schema["data_collections"].dataType)
    )
    over = over.unionByName(broken, allowMissingColumns=True)
    return over.select(
        F.col("offset").alias("end_offset"),
        F.coalesce("id", F.lit("")).alias("id"),
        F.coalesce("transaction_key", F.lit("")).alias("transaction_key"),
        F.coalesce("end_position", F.lit("")).alias("end_position"),
        F.coalesce(F.col("begins"), F.lit(0)).alias("begins"),
        "begun",
        "implied",
        "open",
        F.coalesce(F.col("event_count"), F.lit(0)).alias("event_count"),
        F.coalesce(F.col("data_collections"), F.array()).alias("collections"),
        F.timestamp_millis(F.col("ts_ms")).alias("committed_at"),
        F.col("timestamp").alias("written_at"),
    ).select(*BOUNDARY.fieldNames())


def _overtaken(is_end: Column) -> Column:
    """Condition: a BEGIN whose next record is the BEGIN of a later transaction."""
    by_offset = Window.partitionBy("partition").orderBy("offset")
    follows = F.lead(F.when(~is_end, F.col("end_position"))).over(by_offset)
    return ~is_end & F.coalesce(follows > F.col("end_position"), F.lit(False))
