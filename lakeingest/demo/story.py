"""Count the orders whose total is not the sum of their lines, as two kinds of jobs show the shop.

The shop changes an order and its lines in one transaction, so in the database no order is ever
wrong. A job per table takes so many records of its topic at a time, and readers see tables of
different moments. A publication of lakeingest is a commit of the source.
"""

from __future__ import annotations

from functools import reduce
from itertools import groupby

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from lakeingest.config.model import PipelineConfig
from lakeingest.reader import Lake
from lakeingest.source import OffsetRange, open_source

ORDERS, LINES = "public.orders", "public.order_lines"

_ORDER = "struct<id:bigint,total_cents:bigint>"
_LINE = "struct<order_id:bigint,line_no:int,qty:int,price_cents:bigint>"


def records_of(spark: SparkSession, config: PipelineConfig) -> DataFrame:
    """Return the recorded events of both tables.

    Args:
        spark: The session.
        config: The demo's pipeline.

    Columns: ``RECORD``.
    """
    prefix = config.source.topic_prefix
    source = open_source(spark, config.source)
    marks = source.watermarks([f"{prefix}.{ORDERS}", f"{prefix}.{LINES}"])
    return source.read(
        [OffsetRange(p.topic, p.partition, m.earliest, m.high) for p, m in marks.items()]
    )


def by_table(records: DataFrame, topic_prefix: str, size: int) -> DataFrame:
    """Return what readers see of one job per table, after each round of batches.

    Args:
        records: ``RECORD`` of both topics, in JSON without schemas, from their beginning.
        topic_prefix: Prefix of the topics.
        size: Records of its topic that each job takes in a round.

    Columns: see ``_count``.
    """
    order = Window.partitionBy("topic").orderBy("timestamp", "partition", "offset")
    numbered = records.withColumn("first_state", F.floor((F.row_number().over(order) - 1) / size))
    last = numbered.agg(F.max("first_state").alias("last_state"))
    numbered = numbered.crossJoin(F.broadcast(last))
    orders = _latest(numbered, f"{topic_prefix}.{ORDERS}", _ORDER, "id")
    lines = _latest(numbered, f"{topic_prefix}.{LINES}", _LINE, "order_id", "line_no")
    return _count(orders, lines)


def by_publication(lake: Lake) -> DataFrame:
    """Return what readers see of each publication of a lake.

    Columns: see ``_count``.
    """
    snapshots = [s for s in lake.snapshots() if {ORDERS, LINES} <= {*s.tables()}]

    def union(table: str) -> DataFrame:
        # A publication that leaves a table as it was shows the version of the one before.
        frames = []
        for _, group in groupby(snapshots, lambda snapshot: snapshot.versions[table]):
            same = [*group]
            states = F.array(*(F.lit(snapshot.batch) for snapshot in same))
            frames.append(same[0].table(table).withColumn("state", F.explode(states)))
        return reduce(lambda one, other: one.unionByName(other, True), frames)

    return _count(union(ORDERS), union(LINES))


def _latest(numbered: DataFrame, topic: str, row: str, *key: str) -> DataFrame:
    """Return the rows of a table in each state: the latest event of each key, unless a delete."""
    event = F.from_json(
        F.col("value").cast("string"), f"struct<op:string,before:{row},after:{row}>"
    )
    events = numbered.where((F.col("topic") == topic) & F.col("value").isNotNull()).select(
        "offset", "first_state", "last_state", event.alias("event")
    )
    # Parsed before it is repeated for each state that has it.
    rows = events.select(
        "offset",
        "event.op",
        F.coalesce("event.after", "event.before").alias("row"),
        F.explode(F.sequence("first_state", "last_state")).alias("state"),
    )
    keys: list[Column] = [F.col(f"row.{name}").alias(f"key_{name}") for name in key]
    latest = rows.groupBy("state", *keys).agg(F.max_by(F.struct("op", "row"), "offset").alias("e"))
    return latest.where(F.col("e.op") != "d").select("state", "e.row.*")


def _count(orders: DataFrame, lines: DataFrame) -> DataFrame:
    """Count orders and wrong ones in each state.

    Columns: ``state`` (int), ``orders`` and ``wrong`` (bigint).
    """
    sums = lines.groupBy("state", F.col("order_id").alias("id")).agg(
        F.sum(F.col("qty") * F.col("price_cents")).alias("sum_cents")
    )
    is_wrong = F.col("total_cents") != F.coalesce("sum_cents", F.lit(0))
    return (
        orders.join(sums, ["state", "id"], "left")
        .groupBy("state")
        .agg(F.count("*").alias("orders"), F.count_if(is_wrong).alias("wrong"))
        .orderBy("state")
    )
