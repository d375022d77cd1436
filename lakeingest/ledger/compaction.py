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
from lakeingest.engine.delta_maintenance import DeltaMaintenance

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


def compact(spark: SparkSession, path: str, pipeline: str, batch: int) -> None:
    """Join the ledger's small files, if ``batch`` is a multiple of ``EVERY``.

    Do nothing if another driver commits metadata at the same moment.
    """
    if batch % EVERY:
        return
    maintenance = ledger_maintenance(spark, path, pipeline)
    with unless_concurrent():
        # A ledger that an older version made has not the properties of a new one.
        maintenance.set_missing(PROPERTIES)
        maintenance.join_small_files()
        if batch % _VACUUM_EVERY == 0:
            maintenance.vacuum(FILES_KEPT)


@contextmanager
def unless_concurrent() -> Iterator[None]:
    """Leave a block of maintenance undone where another driver commits at the same moment."""
    try:
        yield
    except Exception as error:
        if "Concurrent" not in f"{type(error).__name__} {error}":
            raise
