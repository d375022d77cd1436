"""Keep a run's cost from growing with the ledger's age: fewer files, a short log.

Each publication is a file and each run makes three commits. After a month of runs every minute,
these are 43,200 files and 130,000 log entries, and Delta lists them again and again. So every
hundred publications the small files are joined into one, and the log is kept for days instead of a
month (lakeingest reads no old version of the ledger). The rows are the ledger's history and stay;
its readers see no difference.

Delta's own commands do it (OPTIMIZE, VACUUM). They change no row, and a concurrent append succeeds.
The files are joined up to a size limit, so that a ledger of gigabytes is not rewritten each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from pyspark.sql import SparkSession

from lakeingest.commit_note import maintenance_note
from lakeingest.engine.delta.maintenance import DeltaMaintenance

EVERY = 100
"""Publications after which the small files are joined."""

_VACUUM_EVERY = 1_000
"""Publications after which replaced files are deleted, once they are older than a week."""

_SMALL_BYTES = 16 * 1024 * 1024

FILES_KEPT = timedelta(days=7)
"""Age from which replaced files are deleted; a reader of the ledger may still need younger ones."""

PROPERTIES = {"delta.logRetentionDuration": "interval 2 days"}
"""Properties of the ledger's table besides those of every table."""


def ledger_maintenance(spark: SparkSession, path: str, pipeline: str) -> DeltaMaintenance:
    """Return the maintenance of a ledger."""
    note = maintenance_note(pipeline)
    return DeltaMaintenance(spark, path, note, small_bytes=_SMALL_BYTES)


def compact(
    spark: SparkSession, path: str, pipeline: str, batch: int, publications: int = 1
) -> None:
    """Join the ledger's small files after every ``EVERY`` appends.

    Do nothing if another driver commits metadata at the same moment.

    Args:
        spark: Session with Delta's extension.
        path: Folder of the ledger.
        pipeline: Name of the pipeline.
        batch: Number of the newest publication.
        publications: Number of publications of the append.
    """
    if not _passes(EVERY, batch, publications):
        return
    maintenance = ledger_maintenance(spark, path, pipeline)
    with unless_concurrent():
        # A ledger that an older version made has not the properties of a new one.
        maintenance.set_missing(PROPERTIES)
        maintenance.join_small_files()
        if _passes(_VACUUM_EVERY, batch, publications):
            maintenance.vacuum(FILES_KEPT)


def _passes(every: int, batch: int, publications: int) -> bool:
    """Return whether an append passes a multiple of so many appends of the same size."""
    step = every * publications
    return batch // step != (batch - publications) // step


@contextmanager
def unless_concurrent() -> Iterator[None]:
    """Leave a block of maintenance undone where another driver commits at the same moment."""
    try:
        yield
    except Exception as error:
        if "Concurrent" not in f"{type(error).__name__} {error}":
            raise
