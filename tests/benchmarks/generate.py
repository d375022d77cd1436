r"""Debezium events of pgbench transactions, as many as wanted, the same ones for every contestant.

Recorded runs hold 20,000 transactions; the benchmark needs more, of any number, and their truth.
The rejected way, a real PostgreSQL with a connector, would tie every figure to a machine's
database. So the text of each record is put together by Spark from templates that were cut out of
a recorded run (Debezium 3.7.0.Final, JSON without schemas), byte for byte; only numbers differ.

What of the real log is kept because contestants could profit from its absence:

* The log positions of interleaved transactions go back: the account row of every third transaction
  or so is written up to two commits before the commit it belongs to. Positions of *one key* never
  go back, as row locks demand (overlapping transactions belong to different clients, and clients
  have disjoint accounts), so "latest by LSN" is a right answer here, too.
* Transaction numbers are not in commit order.
* ``transaction.id`` carries the LSN of each event, so it differs on BEGIN, every row and END.
* Snapshot rows come first, with the markers of a real snapshot, none for the empty history.

The log of one transaction, in slots of ``LSN_STRIDE`` bytes::

    | commit n-1 | accounts of n, n+1, n+2 | tellers n | branches n | history n | commit n |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from tests.benchmarks.workload import (
    ACCOUNTS,
    BRANCHES,
    CLIENTS,
    DATA_PARTITIONS,
    HISTORY,
    PREFIX,
    TABLES,
    TELLERS,
    TRANSACTION_TOPIC,
    EventFolder,
    Shape,
    Table,
)

FIRST_LSN = 185_947_392
FIRST_XID = 25_754
FIRST_MICROS = 1_795_262_677_376_845
MICROS_PER_TRANSACTION = 627
LSN_STRIDE = 1_408
ACCOUNTS_PLACE, ACCOUNTS_STEP = 104, 64
PLACE = {TELLERS: 480, BRANCHES: 720, HISTORY: 960}
SNAPSHOT_ORDER = (ACCOUNTS, BRANCHES, TELLERS)

HEADERS = {
    "__debezium.context.connectorLogicalName": PREFIX,
    "__debezium.context.taskId": "0",
    "__debezium.context.connectorName": "postgresql",
    "__debezium.context.runId": "01a1fdfe-3d28-7dbb-a352-7a0310f3516a",
}

ENVELOPE = (
    '{"before":null,"after":<after>,"source":{"version":"3.7.0.Final","connector":"postgresql",'
    '"name":"bench","ts_ms":<source_ms>,"snapshot":<snapshot>,"db":"bench",'
    '"sequence":"[<previous>,\\"<lsn>\\"]","ts_us":<source_us>,"ts_ns":<source_us>000,'
    '"schema":"public","table":"<table>","txId":<xid>,"lsn":<lsn>,"xmin":null,"origin":null,'
    '"origin_lsn":null},"transaction":<transaction>,"op":"<op>","ts_ms":<ms>,"ts_us":<us>,'
    '"ts_ns":<us><nanos>}'
)
TRANSACTION = '{"id":"<xid>:<lsn>","total_order":<order>,"data_collection_order":1}'
BOUNDARY_KEY = '{"id":"<xid>:<lsn>"}'
BEGIN = (
    '{"status":"BEGIN","id":"<xid>:<lsn>","event_count":null,"data_collections":null,'
    '"ts_ms":<source_ms>}'
)
END = (
    '{"status":"END","id":"<xid>:<lsn>","event_count":4,"data_collections":['
    '{"data_collection":"public.pgbench_history_w","event_count":1},'
    '{"data_collection":"public.pgbench_tellers","event_count":1},'
    '{"data_collection":"public.pgbench_accounts","event_count":1},'
    '{"data_collection":"public.pgbench_branches","event_count":1}],"ts_ms":<source_ms>}'
)
KEY = {
    ACCOUNTS: '{"aid":<aid>}',
    TELLERS: '{"tid":<tid>}',
    BRANCHES: '{"bid":<bid>}',
    HISTORY: '{"client":<client>,"n":<n>}',
}
AFTER = {
    ACCOUNTS: '{"aid":<aid>,"bid":<account_bid>,"abalance":<abalance>,"filler":"' + " " * 84 + '"}',
    TELLERS: '{"tid":<tid>,"bid":<teller_bid>,"tbalance":<tbalance>,"filler":null}',
    BRANCHES: '{"bid":<bid>,"bbalance":<bbalance>,"filler":null}',
    HISTORY: (
        '{"client":<client>,"n":<n>,"tid":<tid>,"bid":<bid>,"aid":<aid>,"delta":<delta>,'
        '"mtime":<mtime>}'
    ),
}


def generate(spark: SparkSession, folder: EventFolder, shape: Shape) -> None:
    """Write transactions, records and index of ``shape`` into ``folder``."""
    _transactions(spark, shape).write.parquet(folder.transactions)
    transactions = spark.read.parquet(folder.transactions)
    parts = [
        *(_snapshot(spark, shape, table) for table in SNAPSHOT_ORDER),
        *(_stream(transactions, table, order) for order, table in enumerate(TABLES, start=1)),
        _boundaries(transactions),
    ]
    headers = F.when(F.col("topic") != TRANSACTION_TOPIC, _headers())
    write_log(spark, folder, parts, F.timestamp_millis("ms"), headers, 4 << 20)


def write_log(
    spark: SparkSession,
    folder: EventFolder,
    parts: Sequence[DataFrame],
    timestamp: Column,
    headers: Column,
    group_bytes: int,
) -> None:
    """Number the records of ``parts`` in the order of the log, and write them and their index."""
    in_log_order = Window.partitionBy("topic", "partition").orderBy("tx", "row")
    records = reduce(DataFrame.unionByName, parts).select(
        "topic",
        "partition",
        (F.row_number().over(in_log_order) - 1).cast("long").alias("offset"),
        timestamp.alias("timestamp"),
        F.col("key").cast("binary").alias("key"),
        F.col("value").cast("binary").alias("value"),
        headers.alias("headers"),
        "tx",
    )
    # Small row groups, so that a range of offsets is read without its neighbours.
    sized = records.write.option("parquet.block.size", group_bytes)
    sized.partitionBy("topic", "partition").parquet(folder.records)
    index = spark.read.parquet(folder.records).select("topic", "partition", "offset", "tx")
    index.write.parquet(folder.index)


def _transactions(spark: SparkSession, shape: Shape) -> DataFrame:
    """One row per transaction in commit order, with each balance after it."""

    def draw(purpose: str, size: int) -> Column:
        return F.pmod(F.xxhash64(F.lit(shape.seed), F.lit(purpose), "tx"), F.lit(size))

    def running(key: str) -> Column:
        return F.sum("delta").over(Window.partitionBy(key).orderBy("tx"))

    client = F.pmod("tx", F.lit(CLIENTS))
    return (
        spark.range(shape.transactions)
        .withColumnRenamed("id", "tx")
        .select(
            "tx",
            client.alias("client"),
            F.floor(F.col("tx") / CLIENTS + 1).alias("n"),
            (draw("account", shape.accounts // CLIENTS) * CLIENTS + client + 1).alias("aid"),
            (draw("teller", shape.tellers) + 1).alias("tid"),
            (draw("branch", shape.branches) + 1).alias("bid"),
            (draw("delta", 10_001) - 5_000).alias("delta"),
            F.least(F.greatest(draw("back", 9) - 6, F.lit(0)), "tx").alias("back"),
            (FIRST_MICROS + F.col("tx") * MICROS_PER_TRANSACTION).alias("source_us"),
        )
        .select(
            "*",
            (F.col("source_us") - 3_726).alias("mtime"),
            running("aid").alias("abalance"),
            running("tid").alias("tbalance"),
            running("bid").alias("bbalance"),
            branch_of("aid", shape.accounts, shape.branches).alias("account_bid"),
            branch_of("tid", shape.tellers, shape.branches).alias("teller_bid"),
            (FIRST_XID + F.col("tx").bitwiseXOR(F.lit(1))).alias("xid"),
            (FIRST_LSN + F.col("tx") * LSN_STRIDE).alias("previous_lsn"),
            (FIRST_LSN + (F.col("tx") + 1) * LSN_STRIDE).alias("commit_lsn"),
        )
        .withColumn(
            "begin_lsn",
            F.col("previous_lsn")
            - F.col("back") * LSN_STRIDE
            + ACCOUNTS_PLACE
            + F.col("back") * ACCOUNTS_STEP,
        )
    )


def _stream(transactions: DataFrame, table: Table, order: int) -> DataFrame:
    """Records of the change that each transaction made to ``table``."""
    lsn = F.col("begin_lsn") if table is ACCOUNTS else F.col("previous_lsn") + PLACE[table]
    us = F.col("source_us") + 150_000 + order
    return _records(
        transactions.select("*", lsn.alias("lsn"), us.alias("us")),
        table,
        tx=F.col("tx"),
        row=F.lit(0),
        snapshot=F.lit("null"),
        previous=F.when(F.col("tx") == 0, "null").otherwise(fill('\\"<previous_lsn>\\"')),
        transaction=fill(TRANSACTION, order=F.lit(order)),
        op=F.lit("c" if table is HISTORY else "u"),
    )


def _snapshot(spark: SparkSession, shape: Shape, table: Table) -> DataFrame:
    """Records of the initial snapshot of ``table``, marked as a connector marks them."""
    size = {ACCOUNTS: shape.accounts, TELLERS: shape.tellers, BRANCHES: shape.branches}[table]
    row = F.col("id") + 1
    rows = spark.range(size).select(
        row.alias("row"),
        *(row.alias(name) for name in ("aid", "tid", "bid")),
        *(F.lit(0).alias(name) for name in ("abalance", "tbalance", "bbalance")),
        branch_of(row, shape.accounts, shape.branches).alias("account_bid"),
        branch_of(row, shape.tellers, shape.branches).alias("teller_bid"),
        F.lit(FIRST_XID - 4).alias("xid"),
        F.lit(FIRST_LSN).alias("lsn"),
        F.lit(FIRST_MICROS - 17_397_930).alias("source_us"),
        (FIRST_MICROS - 17_310_631 + F.col("id") * 30).alias("us"),
    )
    first = "first" if table is SNAPSHOT_ORDER[0] else "first_in_data_collection"
    last = "last" if table is SNAPSHOT_ORDER[-1] else "last_in_data_collection"
    marker = F.when(F.col("row") == size, last).when(F.col("row") == 1, first).otherwise("true")
    return _records(
        rows,
        table,
        tx=F.lit(-1).cast("long"),
        row=F.col("row"),
        snapshot=F.concat(F.lit('"'), marker, F.lit('"')),
        previous=F.lit("null"),
        transaction=F.lit("null"),
        op=F.lit("r"),
    )


def _records(
    rows: DataFrame, table: Table, *, tx: Column, row: Column, **parts: Column
) -> DataFrame:
    """Records of ``table``, one per row, before they get their offsets."""
    ms = F.floor(F.col("us") / 1_000)
    value = fill(
        ENVELOPE,
        after=fill(AFTER[table]),
        table=F.lit(table.name),
        source_ms=F.floor(F.col("source_us") / 1_000),
        ms=ms,
        nanos=F.lpad(F.pmod(F.xxhash64("us"), F.lit(1_000)).cast("string"), 3, "0"),
        **parts,
    )
    key = fill(KEY[table])
    return rows.select(
        F.lit(table.topic).alias("topic"),
        F.pmod(F.xxhash64(key), F.lit(DATA_PARTITIONS)).cast("int").alias("partition"),
        tx.alias("tx"),
        row.cast("long").alias("row"),
        (ms + 100).alias("ms"),
        key.alias("key"),
        value.alias("value"),
    )


def _boundaries(transactions: DataFrame) -> DataFrame:
    """BEGIN and END of every transaction, in commit order, in one partition."""
    source_ms = F.floor(F.col("source_us") / 1_000)

    def marks(row: int, lsn: Column, text: str) -> DataFrame:
        return transactions.select(
            F.lit(TRANSACTION_TOPIC).alias("topic"),
            F.lit(0).alias("partition"),
            "tx",
            F.lit(row).cast("long").alias("row"),
            (source_ms + 250).alias("ms"),
            fill(BOUNDARY_KEY, lsn=lsn).alias("key"),
            fill(text, lsn=lsn, source_ms=source_ms).alias("value"),
        )

    return marks(0, F.col("begin_lsn"), BEGIN).unionByName(marks(1, F.col("commit_lsn"), END))


def fill(template: str, **parts: Column) -> Column:
    """Put columns in the places ``<name>`` of ``template``; a name not given is a column's."""
    return F.concat(
        *(
            parts.get(piece, F.col(piece)).cast("string") if place % 2 else F.lit(piece)
            for place, piece in enumerate(re.split(r"<(\w+)>", template))
            if piece
        )
    )


def branch_of(row: Column | str, rows: int, branches: int) -> Column:
    """Return the branch of the row of that number, as pgbench spreads ``rows`` over branches."""
    number = F.col(row) if isinstance(row, str) else row
    return F.least(F.floor((number - 1) * branches / rows) + 1, F.lit(branches))


def _headers() -> Column:
    return F.array(
        *(
            F.struct(F.lit(name).alias("key"), F.lit(value).cast("binary").alias("value"))
            for name, value in HEADERS.items()
        )
    )
