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

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.engine.own_session import own_session

EVERY = 100
"""Publications after which the small files are joined."""

_VACUUM_EVERY = 1_000
"""Publications after which replaced files are deleted, once they are older than a week."""

_FILE_BYTES = str(16 * 1024 * 1024)
_SETTINGS = {
    "spark.databricks.delta.optimize.minFileSize": _FILE_BYTES,
    "spark.databricks.delta.optimize.maxFileSize": _FILE_BYTES,
    # So many tasks list the folders; the default, 10,000, takes a minute.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}

PROPERTIES = {"delta.logRetentionDuration": "interval 2 days"}
"""Properties of the ledger's table besides those of every table."""


def compact(spark: SparkSession, path: str, batch: int) -> None:
    """Join the ledger's small files, if ``batch`` is a multiple of ``EVERY``.

    Do nothing if another driver commits metadata at the same moment.
    """
    if batch % EVERY:
        return
    session = own_session(spark, _SETTINGS)
    table = DeltaTable.forPath(session, path)
    try:
        _shorten_log(session, table, path)
        table.optimize().executeCompaction()
        if batch % _VACUUM_EVERY == 0:
            table.vacuum()
    except Exception as error:
        if "Concurrent" not in f"{type(error).__name__} {error}":
            raise


def _shorten_log(session: SparkSession, table: DeltaTable, path: str) -> None:
    """Set the properties of a new ledger on one that an older version made."""
    detail = table.detail().select("properties").first()
    properties = detail["properties"] if detail else {}
    missing = [name for name in PROPERTIES if name not in properties]
    if missing:
        assignments = ", ".join(f"'{name}' = '{PROPERTIES[name]}'" for name in missing)
        session.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({assignments})")
