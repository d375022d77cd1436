"""Identify the attempts at an initial snapshot by the place in the log that their rows share."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.frame_schemas import Kind
from lakeingest.position import COMPONENT_WIDTH, EPOCH_WIDTH

_PLACE_WIDTH = EPOCH_WIDTH + 1 + 2 * COMPONENT_WIDTH
"""Width of a snapshot row's epoch, rank and place of the whole snapshot."""

_SNAPSHOT_RANK = "0"


def snapshot_place() -> Column:
    """Return the place in the log that the rows of one snapshot share: a prefix of a position.

    NULL where each row has its own place (user-named ordering columns, YugabyteDB's gRPC).
    """
    position = F.col("position")
    shared = F.substring(position, EPOCH_WIDTH + 1, 1) == _SNAPSHOT_RANK
    return F.when(shared, F.substring(position, 1, _PLACE_WIDTH))


def mark_superseded(window: DataFrame, attempts: Iterable[tuple[str | None, str]]) -> DataFrame:
    """Mark the rows of these snapshot attempts as ``Kind.SUPERSEDED``.

    Args:
        window: ``CHANGE``.
        attempts: ``incarnation`` and ``snapshot_place`` (empty: NULL) of each attempt.
    """
    of_attempts = F.lit(False)
    place = F.coalesce(snapshot_place(), F.lit(""))
    for run, snapshot in attempts:
        of_attempts = of_attempts | (
            F.col("incarnation").eqNullSafe(F.lit(run)) & (place == F.lit(snapshot))
        )
    dropped = (F.col("kind") == Kind.SNAPSHOT) & of_attempts
    return window.withColumn(
        "kind", F.when(dropped, F.lit(Kind.SUPERSEDED)).otherwise(F.col("kind"))
    )
