"""What the tables must hold, taken from the transactions themselves and not from any event.

A contestant that is fast because it loses or repeats rows must not look good, so every timed run
is compared with the truth. Rows are compared by an order-free digest (count, and the sum of each
row's hash), which costs one small job per table where ``exceptAll`` both ways would shuffle it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.benchmarks.generate import branch_of
from tests.benchmarks.workload import (
    ACCOUNTS,
    BRANCHES,
    HISTORY,
    TABLES,
    TELLERS,
    EventFolder,
    Shape,
    Table,
)


@dataclass(frozen=True)
class Totals:
    """A table in three numbers: rows, digest of the rows, sum of its balance column."""

    rows: int
    digest: Decimal
    balance: int


def totals(rows: DataFrame, table: Table) -> Totals:
    """Return the totals of ``rows``, looking only at the columns that the source has."""
    as_text = (
        F.coalesce(F.col(name).cast(kind).cast("string"), F.lit("\\N"))
        for name, kind in table.column_types.items()
    )
    row = rows.agg(
        F.count(F.lit(1)).alias("rows"),
        F.sum(F.xxhash64(*as_text).cast("decimal(20,0)")).alias("digest"),
        F.sum(table.balance).alias("balance"),
    ).collect()[0]
    return Totals(row["rows"], row["digest"] or Decimal(0), row["balance"] or 0)


def expected(
    spark: SparkSession, folder: EventFolder, shape: Shape, until: int
) -> dict[Table, Totals]:
    """Return the totals of every table after the first ``until`` transactions.

    Raises:
        AssertionError: The generated transactions contradict themselves: TPC-B's four sums differ.
    """
    done = spark.read.parquet(folder.transactions).where(F.col("tx") < until)
    sizes = {ACCOUNTS: shape.accounts, TELLERS: shape.tellers, BRANCHES: shape.branches}
    states = {
        table: _balances(spark, done, table, size, shape.branches) for table, size in sizes.items()
    }
    states[HISTORY] = done.withColumn("mtime", F.timestamp_micros("mtime").cast("timestamp_ntz"))
    truth = {table: totals(states[table], table) for table in TABLES}
    sums = {table.balance: total.balance for table, total in truth.items()}
    if len(set(sums.values())) > 1:
        msg = f"the generated transactions break TPC-B's law of equal sums: {sums}"
        raise AssertionError(msg)
    return truth


def _balances(
    spark: SparkSession, done: DataFrame, table: Table, size: int, branches: int
) -> DataFrame:
    """Return each row of ``table`` with its last balance, or zero as in the snapshot."""
    (key,) = table.key
    last = done.groupBy(F.col(key).cast("long").alias(key)).agg(
        F.max_by(table.balance, "tx").alias(table.balance)
    )
    return (
        spark.range(1, size + 1)
        .withColumnRenamed("id", key)
        .join(last, key, "left")
        .select(
            key,
            *(() if key == "bid" else (branch_of(key, size, branches).alias("bid"),)),
            F.coalesce(table.balance, F.lit(0)).alias(table.balance),
            F.lit(" " * 84 if table is ACCOUNTS else None).cast("string").alias("filler"),
        )
    )
