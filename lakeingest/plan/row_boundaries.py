"""Find out from rows alone which transactions are over, where no transaction topic says it.

A connector sends its transactions one after another, in commit order, but to many partitions, and
Kafka takes the records of several partitions in any order. So a transaction is over for certain
once the connector has gone on to a later one, and all that it sent before has arrived. It has gone
on if a row of a later transaction is there. What it sent before that row is there once some row of
the same incarnation was written later, by as long as a record can be under way (the delay of
``row_evidence``). Nothing here asks the driver's clock: the timestamps are those of the records,
and one incarnation of the connector, or its brokers (``LogAppendTime``), gave them. A row that does
not name its incarnation (Debezium before 3.3) could be of one that was killed, behind which others
are yet to be sent again: it stops the run.

A transaction's number, in place of an END's offset, is the leading component of its positions. So
it has the same number whenever it is read, and with whichever other topics. Rejected: to count on
from the last transaction that was released. If a topic was added, nobody could go on from a killed
run.

Weaker than END: nobody counts the rows. Nothing shows that a row is lost, or is under way for
longer than the delay, and the newest transaction always waits for the next one.

Rejected: to take a message of the heartbeat topic for the end of a transaction. Debezium sends one
also in the middle of a transaction. A row of a heartbeat table (``heartbeat.action.query``) is a
transaction of its own, and ends the one before it. Rejected: to wait until each partition has a row
of a later transaction. A quiet table would hold back all others.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.envelope.change import FAMILIES
from lakeingest.frame_schemas import BOUNDARY, WRITTEN_AT, Kind
from lakeingest.plan.spec import PipelineSpec
from lakeingest.position import COMMIT_WIDTH, COMPONENT_WIDTH, EPOCH_WIDTH, component
from lakeingest.transaction.completeness import transactional


def is_by_rows(end_position: str) -> bool:
    """Return whether a position is that of a transaction without END."""
    return len(end_position) == COMMIT_WIDTH


def row_boundaries(changes: DataFrame, spec: PipelineSpec) -> DataFrame:
    """Return the transactions that have rows: ``BOUNDARY`` plus ``domain``.

    ``end_offset`` is the number of the transaction's commit, ``end_position`` the commit after it.

    Args:
        changes: ``CHANGE`` with ``WRITTEN_AT``.
        spec: Pipeline settings.
    """
    domains = FAMILIES[spec.connector].domains
    by_table = (
        transactional(changes)
        .groupBy("transaction_key", "collection")
        .agg(
            F.max(F.substring("position", 1, COMMIT_WIDTH)).alias("_commit"),
            F.count_distinct("identity").alias("_rows"),
            F.max("source_ms").alias("_source_ms"),
            F.min(WRITTEN_AT).alias("_written_at"),
        )
    )
    by_commit = by_table.groupBy("transaction_key").agg(
        F.max("_commit").alias("_last"),
        F.sum("_rows").alias("event_count"),
        F.array_sort(F.collect_list(F.struct("collection", "_rows"))).alias("collections"),
        F.timestamp_millis(F.max("_source_ms")).alias("committed_at"),
        F.min("_written_at").alias("written_at"),
    )
    numbered = by_commit.withColumn("end_offset", _number(F.col("_last")))
    prefix = F.substring("_last", 1, EPOCH_WIDTH + 1)
    columns = {
        "id": F.col("transaction_key"),
        "end_position": F.concat(prefix, component(F.col("end_offset") + 1)),
        "begins": F.lit(1),
        "begun": F.lit(None),
        "implied": F.lit(False),
        "open": F.lit(False),
        "domain": domains.domain(F.col("transaction_key")) if domains else F.lit(""),
    }
    typed = (
        columns.get(item.name, F.col(item.name)).cast(item.dataType).alias(item.name)
        for item in BOUNDARY
    )
    return numbered.select(*typed, columns["domain"].alias("domain"))


def as_metadata(boundaries: DataFrame) -> DataFrame:
    """Return the columns of transaction metadata that tell epochs, an END per transaction."""
    return boundaries.select(
        F.col("end_offset").alias("offset"),
        "id",
        F.lit("END").alias("status"),
        F.lit(False).alias("malformed"),
    )


def row_evidence(changes: DataFrame, delay_seconds: int) -> DataFrame:
    """Return what the rows of a window show of what is not there, in one row.

    Columns: ``settled`` (string): the commit below which nothing is under way (NULL: not known);
    ``unnamed``, ``anonymous`` (bigint): number of streamed rows that do not show their transaction,
    and of those that do not show which incarnation of the connector sent them.

    Args:
        changes: ``CHANGE`` with ``WRITTEN_AT``.
        delay_seconds: How long a record may be under way from the connector to its partition.
    """
    newest = F.max(WRITTEN_AT).over(Window.partitionBy("incarnation"))
    age = F.expr(f"INTERVAL {delay_seconds} SECONDS")
    rows = changes.where(F.col("kind").isin(Kind.ROW, Kind.TRUNCATE)).withColumn("_newest", newest)
    named = F.col("transaction_key").isNotNull()
    is_incremental = F.coalesce(F.col("snapshot") == "incremental", F.lit(False))
    is_old = F.col(WRITTEN_AT) <= F.col("_newest") - age
    return rows.agg(
        F.substring(F.max(F.when(named & is_old, F.col("position"))), 1, COMMIT_WIDTH).alias(
            "settled"
        ),
        F.count_if(~named & ~is_incremental).alias("unnamed"),
        F.count_if(F.col("incarnation").isNull()).alias("anonymous"),
    )


def _number(commit: Column) -> Column:
    return F.conv(F.substring(commit, EPOCH_WIDTH + 2, COMPONENT_WIDTH), 16, 10).cast("bigint")
