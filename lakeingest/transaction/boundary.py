"""Turn BEGIN and END records into transaction boundaries, in commit order.

Commit order is the order of END on the one-partition transaction topic. Besides one BEGIN and one
END per transaction, the topic holds these, with this effect:

* *Repeated END* (a restarted connector sends whole transactions again): the first END counts. The
  repeated rows have the same identity and position, so they change nothing.
* *Repeated BEGIN*: before 3.7.0, a connector that is killed in mid-transaction counts only the tail
  in END. ``begins`` tells the completeness check that the count alone proves nothing.
* *BEGIN without END*, then the BEGIN of a **later** transaction: the first transaction is over, on
  connectors that write such BEGINs (MariaDB's TRUNCATE and DDL). If the next BEGIN is of the same
  or an earlier transaction, the connector went back and sends the first one again. To take it as
  over would publish half of it (recorded: ``mariadb-kill-replay``, BEGIN 8274 followed by BEGIN
  8074).
* *Any other BEGIN without END* is ``open``. This BEGIN, or its END, comes again before the first
  END of any later transaction: a connector goes back to transactions whose ENDs it wrote before,
  never past a transaction that it had begun. So a new END behind an open BEGIN shows that records
  are lost (``cut.first_later_end``). Positions are not compared: a BEGIN of PostgreSQL names the
  place where its transaction began to write, which may be below earlier commits.
* *Foreign messages* have neither status: ignored here, counted by the caller.
* *Unreadable records* (broken JSON, a BEGIN or END whose id gives no position) become a boundary
  with the empty position, which is below all. To drop them would lose a transaction in silence.

Rejected: to order by ``ts_ms`` or by the id. Many transactions have the same ``ts_ms``, and the id
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
        ``BOUNDARY``, one row per transaction. ``end_offset`` is the offset of its END, of its BEGIN
        where the end is implied, or of the last BEGIN of an open transaction.
    """
    by_key = Window.partitionBy("transaction_key").orderBy("offset")
    whole = by_key.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    is_end = F.col("status") == "END"
    has_status = F.coalesce(F.col("status").isin("BEGIN", "END"), F.lit(False))
    readable = has_status & ~F.col("malformed") & end_position.isNotNull()
    unreadable = F.col("malformed") | (has_status & end_position.isNull())
    # One sort is enough: the windows share their partitioning and order.
    earlier = by_key.rowsBetween(Window.unboundedPreceding, -1)
    with_position = metadata.where(readable).withColumns(
        {"end_position": end_position, "transaction_key": transaction_key}
    )
    overtaken = _overtaken(is_end) if implied_end else F.lit(False)
    marked = with_position.withColumn("_overtaken", overtaken).withColumns(
        {
            "begins": F.sum((~is_end).cast("bigint")).over(by_key),
            "begun": F.min(F.when(~is_end, F.col("offset"))).over(by_key),
            "_ends": F.sum(is_end.cast("bigint")).over(whole),
            "_ended_at": F.last(F.when(is_end, F.col("end_position")), True).over(earlier),
            "_passed": F.sum(F.col("_overtaken").cast("bigint")).over(earlier),
            "_passes": F.max("_overtaken").over(whole),
            "_last": F.max("offset").over(whole),
        }
    )
    # PostgreSQL may use an xid again, with another END; the same END twice is a repetition.
    is_repeated = F.coalesce(F.col("_ended_at") == F.col("end_position"), F.lit(False))
    unended = F.col("_ends") == 0
    is_implied = unended & F.col("_overtaken") & (F.coalesce("_passed", F.lit(0)) == 0)
    is_open = unended & ~F.col("_passes") & (F.col("offset") == F.col("_last"))
    bounds = marked.withColumns(
        {
            "implied": F.coalesce(is_implied, F.lit(False)),
            "open": F.coalesce(is_open, F.lit(False)),
        }
    ).where((is_end & ~is_repeated) | F.col("implied") | F.col("open"))
    unreadable_records = metadata.where(unreadable).withColumns(
        {
            "implied": F.lit(False),
            "open": F.lit(False),
            "data_collections": F.lit(None).cast(bounds.schema["data_collections"].dataType),
        }
    )
    bounds = bounds.unionByName(unreadable_records, allowMissingColumns=True)
    return bounds.select(
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
    """Return whether a record is a BEGIN and the next one the BEGIN of a later transaction."""
    by_offset = Window.partitionBy("partition").orderBy("offset")
    follows = F.lead(F.when(~is_end, F.col("end_position"))).over(by_offset)
    return ~is_end & F.coalesce(follows > F.col("end_position"), F.lit(False))
