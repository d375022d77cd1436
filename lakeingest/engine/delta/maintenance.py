"""Do maintenance on a Delta table by Delta's own commands: DELETE, UPDATE, OPTIMIZE, REORG, VACUUM.

Each command is one commit of Delta's own, checked against concurrent commits. So a process that is
killed or wakes up late leaves a table whole, and a run beside it at worst tries its batch again.
Rejected: commits through ``DeltaTransaction``, which would repeat what these commands do for tables
of any size and any feature.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timedelta, timezone
from functools import reduce
from operator import or_
from typing import Any

from delta.tables import DeltaTable
from py4j.protocol import Py4JError
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.delta.local_disk import committing
from lakeingest.engine.delta.log import checkpoint_before, commit_time, properties, sql_name
from lakeingest.engine.own_session import own_session
from lakeingest.named import quoted

_FILES_KEPT = "delta.deletedFileRetentionDuration"
_LOG_KEPT = "delta.logRetentionDuration"
_PROMISES = {_FILES_KEPT: "interval 7 days", _LOG_KEPT: "interval 30 days"}
"""Properties that say how long a table's older versions can be read, and Delta's defaults."""

_CHECKPOINTS, _DEFAULT_CHECKPOINTS = "delta.checkpointInterval", "10"

_KEPT_SINCE = "lakeingest.kept.since"
"""Property with the time before which a shorter retention was in force."""

SMALL_BYTES = 128 * 1024 * 1024
"""Size in bytes below which a file is small: OPTIMIZE joins it with others."""

_SETTINGS = {
    # The ledger's publications decide what VACUUM may remove, and not Delta's fixed week.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # VACUUM changes no version, so it need not commit to the log of an idle table.
    "spark.databricks.delta.vacuum.logging.enabled": "false",
    # So many tasks list the folders; the default, 10,000, takes a minute.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}


class DeltaMaintenance:
    """Maintenance of one table, which must exist."""

    def __init__(
        self, spark: SparkSession, path: str, metadata: str, *, small_bytes: int = SMALL_BYTES
    ) -> None:
        """Bind to a table.

        Args:
            spark: Session with Delta's extension.
            path: Path of the table.
            metadata: ``userMetadata`` of every commit.
            small_bytes: Size of a file that is not small, so that a large table is not written
                again each time.
        """
        settings = {
            **_SETTINGS,
            "spark.databricks.delta.optimize.minFileSize": str(small_bytes),
            "spark.databricks.delta.optimize.maxFileSize": str(small_bytes),
            "spark.databricks.delta.commitInfo.userMetadata": metadata,
        }
        self._spark = own_session(spark, settings)
        self._path = path
        self._table = DeltaTable.forPath(self._spark, path)

    def keep_for(self, least: timedelta, oldest: int) -> None:
        """Have the table keep what its older versions need for at least so long from now on.

        Log retention counts from when a commit was made, and not from when the next one followed.
        A version also needs the commits since the checkpoint before it. So the log of a table that
        seldom changes must be kept longer.

        Args:
            least: For how long removed files are to be kept.
            oldest: Oldest version that must stay readable.
        """
        present = properties(self._spark, self._path)
        base = checkpoint_before(self._spark, self._path, oldest)
        if base is None:
            base = oldest - oldest % int(present.get(_CHECKPOINTS, _DEFAULT_CHECKPOINTS))
        bases = (base, oldest)
        times = (commit_time(self._spark, self._path, version) for version in bases)
        made = min((time for time in times if time is not None), default=datetime.now(timezone.utc))
        age = datetime.now(timezone.utc) - made
        self._lengthen(present, self._kept_for(present), least, age)

    def keep_log(self, age: timedelta) -> None:
        """Have the log keep files of an age for as long as the table keeps removed files.

        Delta cleans the log after a checkpoint. It then removes what is older than log retention,
        even if a younger version needs it. Whoever has chosen another log retention has decided.
        """
        present = properties(self._spark, self._path)
        is_decided = _LOG_KEPT in present and _KEPT_SINCE not in present
        if not is_decided:
            lengths = self._kept_for(present)
            self._lengthen(present, lengths, lengths[_FILES_KEPT], age)

    def _lengthen(
        self,
        present: Mapping[str, str],
        lengths: Mapping[str, timedelta],
        least: timedelta,
        age: timedelta,
    ) -> None:
        """Have the table keep removed files for so long, and a part of its log of an age as long.

        Args:
            present: Properties of the table.
            lengths: What they promise (``_kept_for``).
            least: For how long both are to be kept from now on.
            age: Age of the oldest file of the log that is to be kept.
        """
        changes = {}
        if lengths[_FILES_KEPT] < least:
            changes[_FILES_KEPT] = _interval(least)
        if lengths[_LOG_KEPT] < least + age:
            # Twice as long: an idle table must not be changed each time.
            changes[_LOG_KEPT] = _interval(2 * (least + age))
        if changes:
            self._set({**changes, _KEPT_SINCE: self._kept_since(present).isoformat()})

    def kept_since(self) -> datetime:
        """Return the time (UTC) since when the table remembers the files that it has removed.

        VACUUM knows earlier files neither as the table's nor as another version's.
        """
        return self._kept_since(properties(self._spark, self._path))

    def _kept_since(self, present: Mapping[str, str]) -> datetime:
        rolling = datetime.now(timezone.utc) - min(self._kept_for(present).values())
        fixed = present.get(_KEPT_SINCE)
        return rolling if fixed is None else max(rolling, datetime.fromisoformat(fixed))

    def _kept_for(self, present: Mapping[str, str]) -> dict[str, timedelta]:
        texts = {name: present.get(name, default) for name, default in _PROMISES.items()}
        # Only Spark knows all forms of an interval's text: `interval 1 week`, `7 days`.
        ends = (
            F.unix_seconds(F.timestamp_seconds(F.lit(0)) + F.lit(text).cast("interval"))
            for text in texts.values()
        )
        row = self._spark.sql("VALUES (1)").select(*ends).first()
        lengths = (timedelta(seconds=int(seconds)) for seconds in row or ())
        return dict(zip(texts, lengths, strict=True))

    def set_missing(self, values: Mapping[str, str]) -> None:
        """Set those of these properties that the table does not have."""
        present = properties(self._spark, self._path)
        missing = {name: value for name, value in values.items() if name not in present}
        if missing:
            self._set(missing)

    def _set(self, values: Mapping[str, str]) -> None:
        assignments = ", ".join(f"'{name}' = '{value}'" for name, value in values.items())
        with self._committing():
            self._spark.sql(f"ALTER TABLE {self._name()} SET TBLPROPERTIES ({assignments})")

    def delete(self, condition: Column) -> None:
        """Remove the rows that meet a condition; commit nothing if there is none."""
        with self._committing():
            self._table.delete(condition)

    def erase(self, columns: Iterable[str], condition: Column) -> None:
        """Set columns to NULL in the rows that meet a condition and have a value in one of them.

        Commit nothing if there is no such row.
        """
        nothing: dict[str, str | Column] = {quoted(name): F.lit(None) for name in columns}
        if nothing:
            has_value = reduce(or_, (F.col(name).isNotNull() for name in nothing))
            with self._committing():
                self._table.update(condition & has_value, nothing)

    def join_small_files(self) -> None:
        """Write small files as larger ones, with files of which more than a twentieth is hidden.

        Delta leaves a file alone that fits together with no other one.
        """
        with self._committing():
            self._table.optimize().executeCompaction()

    def purge_hidden_rows(self) -> None:
        """Write every file again that has hidden rows, without them."""
        with self._committing():
            self._spark.sql(f"REORG TABLE {self._name()} APPLY (PURGE)")

    def vacuum(self, age: timedelta) -> None:
        """Delete files that the table has not had for ``age``, and that no commit is writing."""
        _print_to_stderr(self._spark)
        # VACUUM rounds to whole hours, also down.
        self._table.vacuum(_hours(age))

    def _committing(self) -> AbstractContextManager[None]:
        return committing(self._spark, self._path)

    def _name(self) -> str:
        return sql_name(self._spark, self._path)


def _interval(length: timedelta) -> str:
    return f"interval {_hours(length)} hours"


def _print_to_stderr(spark: SparkSession) -> None:
    """Have Delta print to stderr in this thread: a command's stdout is for its result.

    VACUUM prints a line through ``scala.Console``, whose ``setOut`` Scala 2.13 no longer has.
    """
    if hasattr(spark, "_jsparkSession"):
        session: Any = spark
        jvm = session._jvm  # noqa: SLF001 - this is the adapter
        with suppress(Py4JError):
            jvm.scala.Console.setOut(jvm.System.err)


def _hours(length: timedelta) -> int:
    """Return the hours of a length of time, rounded up."""
    return -(-length // timedelta(hours=1))
