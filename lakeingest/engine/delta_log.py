"""The newest commits of a Delta table, with the metadata their writers left in them.

Adapter: the JVM's ``DeltaLog`` is asked for the version, and the commit files are read through its
log store, without a Spark job (10 ms; ``DeltaTable.history`` runs one, 150 to 300 ms, and every
commit of ours is read back once). Where there is no JVM gateway (Spark Connect), or the engine
keeps its log under other names (Databricks), the public ``history`` is used. Internal names:
``org.apache.spark.sql.delta.DeltaLog`` (``forTable``, ``update``, ``store``, ``logPath``), the same
in Delta 3.x and 4.x.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from delta.tables import DeltaTable
from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

from lakeingest.engine.commit import Commit

_HISTORY_DEPTHS = (32, None)

_CHANGES = ("add", "remove", "cdc")
"""Actions that say whether they change rows (``dataChange``)."""

_LOSSES = ("DROP COLUMNS", "RENAME COLUMN", "REPLACE COLUMNS")
"""Operations that take values away without touching a file."""

_MAINTENANCE = (
    "OPTIMIZE",
    "VACUUM START",
    "VACUUM END",
    "REORG",
    "CLUSTER BY",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "ADD COLUMNS",
    "CHANGE COLUMN",
    "CHANGE COLUMNS",
    "UPGRADE PROTOCOL",
    "ADD CONSTRAINT",
    "DROP CONSTRAINT",
    "ADD FEATURE",
    "DROP FEATURE",
    "COMPUTE STATS",
)
"""Operations that change no row, where only their names are to be had."""

TABLE_PROPERTIES = {
    # Checkpoints every 10 commits (Delta's default) cost 0.6 s each; 50 keeps reads short.
    "delta.checkpointInterval": "50",
}
"""What tables and ledger are created with."""


def is_delta_table(spark: SparkSession, path: str) -> bool:
    """Tell whether a Delta table lies at ``path`` now.

    ``DeltaTable.isDeltaTable`` answers from Delta's cached log: a session that looked before the
    first commit goes on seeing no table for an hour, though another process made it meanwhile
    (Delta 3.3 ``DeltaLog.tableExists``). The log is looked at again instead.
    """
    if has_log(spark):
        return _version(*java_log(spark, path)) >= 0
    return DeltaTable.isDeltaTable(spark, path)


def commits(spark: SparkSession, path: str) -> Iterator[Commit]:
    """Yield the table's commits, newest first, as far as its log reaches back.

    Each is read when it is asked for.
    """
    if has_log(spark):
        yield from _from_log(spark, path)
    else:
        yield from _from_history(spark, path)


def has_log(spark: SparkSession) -> bool:
    """Tell whether the JVM's ``DeltaLog`` can be asked."""
    session: Any = spark
    if not hasattr(spark, "_jsparkSession"):
        return False
    found = session._jvm.org.apache.spark.sql.delta.DeltaLog  # noqa: SLF001 - this is the adapter
    # Of a class that is not there the gateway makes a package.
    return isinstance(found, JavaClass)


def java_log(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return the JVM view and the table's ``DeltaLog``."""
    session: Any = spark
    jvm = session._jvm  # noqa: SLF001 - this is the adapter
    java_session = session._jsparkSession  # noqa: SLF001
    return jvm, jvm.org.apache.spark.sql.delta.DeltaLog.forTable(java_session, path)


def _version(jvm: Any, log: Any) -> int:
    nothing = jvm.scala.Option.empty()
    return int(log.update(False, nothing, nothing).version())


def _from_log(spark: SparkSession, path: str) -> Iterator[Commit]:
    session: Any = spark
    jvm, log = java_log(spark, path)
    configuration = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    for version in range(_version(jvm, log), -1, -1):
        file = jvm.org.apache.hadoop.fs.Path(log.logPath(), f"{version:020d}.json")
        if not file.getFileSystem(configuration).exists(file):
            # Cleaned up by log retention; older ones are gone, too.
            return
        lines = log.store().read(file, configuration)
        written = _commit_info(lines.apply(index) for index in range(lines.size()))
        yield _commit(version, written, partial(_changes_rows, lines))


def _commit_info(lines: Iterable[str]) -> Mapping[str, Any]:
    for line in lines:
        if line.startswith('{"commitInfo"'):
            return dict(json.loads(line)["commitInfo"])
    return {}


def _commit(version: int, written: Mapping[str, Any], changes: Callable[[], bool]) -> Commit:
    operation = str(written.get("operation") or "")
    text = written.get("userMetadata")
    back = str((written.get("operationParameters") or {}).get("version"))
    restored = int(back) if operation == "RESTORE" and back.isdigit() else None
    loses = operation in _LOSSES
    return Commit(
        version,
        str(text) if text is not None else None,
        operation=operation,
        restored=restored,
        asked_change=lambda: loses or changes(),
    )


def _changes_rows(lines: Any) -> bool:
    """Return whether a commit's actions change rows, given as Scala's sequence of lines."""
    # In one call: each line of its own would be one, and an OPTIMIZE has thousands.
    for line in lines.mkString("\n").split("\n"):
        for kind, action in json.loads(line or "{}").items():
            if kind in _CHANGES and action.get("dataChange", True):
                return True
    return False


def _from_history(spark: SparkSession, path: str) -> Iterator[Commit]:
    table = DeltaTable.forPath(spark, path)
    seen: int | None = None
    for depth in _HISTORY_DEPTHS:
        history = table.history() if depth is None else table.history(depth)
        rows = history.select(
            "version", "userMetadata", "operation", "operationParameters"
        ).collect()
        for row in sorted(rows, key=lambda row: -int(row["version"])):
            if seen is None or row["version"] < seen:
                seen = row["version"]
                changes = row["operation"] not in _MAINTENANCE
                yield _commit(row["version"], row.asDict(), partial(bool, changes))
