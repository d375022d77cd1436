"""Find the latest change per key of a batch, for many tables in one job.

Most tables need only the record of that change: no value is left out, no truncate, a bare key. The
fold is then the same for all of them: group by table and key. One job and one pass over the window
replace two jobs and a pass per table. With small batches, the number of jobs decides the cost of a
batch. Rejected: one such job for all batches of a window. Every batch would wait for the largest.

The rows of an initial snapshot need no fold where each key is there once. A job over the keys alone
proves that. The fold would sort and copy all values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.plan.table import record_each, record_latest

_INSERTS = ("c", "r")


def key_counts(first_op: str) -> tuple[Column, Column]:
    """Aggregate folded changes: ``keys``, and ``inserted``: keys whose first change inserts."""
    inserted = F.count_if(F.col(first_op).isin(*_INSERTS))
    return F.count("*").alias("keys"), inserted.alias("inserted")


@dataclass(frozen=True)
class LatestPerKey:
    """The latest change per key of some tables of a batch.

    Attributes:
        frame: The columns of ``payload.fold.fold_records`` with ``collection``.
        keys: Number of keys per collection, of tables that were only counted, too.
        inserted: Number of these keys whose first change is an insert, per collection.
    """

    frame: DataFrame
    keys: Mapping[str, int]
    inserted: Mapping[str, int]

    def of(self, collection: str) -> DataFrame:
        """Return the latest changes of one table."""
        return self.frame.where(F.col("collection") == collection)


def latest(
    changes: DataFrame, collections: Collection[str], counted: Collection[str] = ()
) -> LatestPerKey | None:
    """Fold the changes of ``collections``, and count those of ``counted`` in the same job.

    Args:
        changes: Changes of a batch (``CHANGE``).
        collections: Tables that fold undecoded.
        counted: Tables whose payloads are made otherwise (``TablePart.counts_undecoded``).

    Returns:
        Latest changes and numbers; None: there is no table.
    """
    if not collections and not counted:
        return None
    folded = record_latest(changes, collections)
    frame = local_checkpoint(folded) if collections else folded
    first_ops = [frame.select("collection", "first_op")] if collections else []
    if counted:
        first_ops.append(record_latest(changes, counted).select("collection", "first_op"))
    counts = reduce(DataFrame.unionByName, first_ops).groupBy("collection")
    rows = counts.agg(*key_counts("first_op")).collect()
    return LatestPerKey(
        frame,
        {row["collection"]: row["keys"] for row in rows},
        {row["collection"]: row["inserted"] for row in rows},
    )


def latest_of_snapshot(
    changes: DataFrame, collections: Collection[str], counted: Collection[str] = ()
) -> LatestPerKey | None:
    """Return ``latest`` of an initial snapshot; fold only tables where a key is there twice."""
    each = record_each(changes, collections)
    per_key = each.groupBy("collection", "key").agg(
        F.count("*").alias("rows"), F.count_if(F.col("op").isin(*_INSERTS)).alias("inserted")
    )
    sums = per_key.groupBy("collection").agg(
        F.sum("rows").alias("rows"), F.count("*").alias("keys"), F.sum("inserted").alias("inserted")
    )
    rows = [row for row in sums.collect() if row["rows"] == row["keys"]] if collections else []
    keys = {row["collection"]: row["keys"] for row in rows}
    inserted = {row["collection"]: row["inserted"] for row in rows}
    others = [name for name in collections if name not in keys]
    folded = latest(changes, others, counted)
    if folded is None:
        return LatestPerKey(each, keys, inserted) if keys else None
    frame = folded.frame
    if keys:
        frame = frame.unionByName(each.where(F.col("collection").isin(*keys)))
    return LatestPerKey(frame, {**folded.keys, **keys}, {**folded.inserted, **inserted})
