"""The last change of every key of a batch, for many tables in one job.

Most tables need nothing but the winner's record (no value left out, no truncate, a bare key), and
the fold of one is the fold of all: group by table and key. One job and one pass over the window
replace two jobs and a pass per table; with small batches the number of jobs is what a batch costs.
The rejected way, the same for all batches of a window at once, makes every batch wait for the
largest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.plan.table import record_latest

_INSERTS = ("c", "r")


def key_counts(first_op: str) -> tuple[Column, Column]:
    """Aggregates over folded changes: ``keys``, and ``inserted``, whose first change is one."""
    inserted = F.count_if(F.col(first_op).isin(*_INSERTS))
    return F.count("*").alias("keys"), inserted.alias("inserted")


@dataclass(frozen=True)
class LatestPerKey:
    """Folded changes of some tables of a batch.

    Attributes:
        frame: ``payload.fold.fold_records``'s columns with ``collection``, held.
        keys: Keys per collection.
        inserted: Of those, keys whose first change is an insert.
    """

    frame: DataFrame
    keys: Mapping[str, int]
    inserted: Mapping[str, int]

    def of(self, collection: str) -> DataFrame:
        """Return the winners of one table."""
        return self.frame.where(F.col("collection") == collection).drop("collection")


def latest(changes: DataFrame, collections: Collection[str]) -> LatestPerKey | None:
    """Fold the changes of ``collections``; null when there are none."""
    if not collections:
        return None
    frame = local_checkpoint(record_latest(changes, collections))
    rows = frame.groupBy("collection").agg(*key_counts("first_op")).collect()
    return LatestPerKey(
        frame,
        {row["collection"]: row["keys"] for row in rows},
        {row["collection"]: row["inserted"] for row in rows},
    )
