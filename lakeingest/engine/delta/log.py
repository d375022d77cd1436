"""Read the newest commits of a Delta table, with the metadata that their writers stored.

Adapter: it takes the version from the JVM's ``DeltaLog`` and reads the commit files through the
log's own store. This runs no Spark job and takes 10 ms. ``DeltaTable.history`` runs a job and takes
150 to 300 ms, and the sink reads back each of its commits once. The public ``history`` is the
fallback where there is no JVM gateway (Spark Connect) and where the engine keeps its log under
other class names (Databricks). Internal names:
``org.apache.spark.sql.delta.DeltaLog`` (``forTable``, ``update``, ``unsafeVolatileSnapshot``,
``store``, ``logPath``) and ``LogSegment.deltas``, the same in Delta 3.x and 4.x.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timezone
from functools import partial
from typing import Any

from delta.tables import DeltaTable
from py4j.java_gateway import JavaClass
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.commit import Commit
from lakeingest.named import quoted

_HISTORY_DEPTHS = (32, None)

_CHECKPOINT_INTERVAL = 50

_MOST_COMMITS = 2 * _CHECKPOINT_INTERVAL
"""Commits behind its checkpoint that a snapshot may gain from commits alone, without a listing."""

_LISTED: dict[str, int] = {}
"""The JVM's identity of the snapshot that the last listing of a log gave, by the table's path."""

_CHANGES = ("add", "remove", "cdc")
"""Actions with the flag ``dataChange``: whether they change rows."""

_TIMES = {"commitInfo": "timestamp", "remove": "deletionTimestamp"}
"""Actions with a time (milliseconds)."""

_LOSSES = ("DROP COLUMNS", "RENAME COLUMN", "REPLACE COLUMNS")
"""Operations that remove values without a change to any data file."""

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
"""Operations that change no row; for logs that give only the operation's name."""

TABLE_PROPERTIES = {
    # Checkpoints every 10 commits (Delta's default) cost 0.6 s each; 50 keeps reads short.
    "delta.checkpointInterval": str(_CHECKPOINT_INTERVAL),
}
"""Table properties with which lake tables and ledger are created."""


def is_delta_table(spark: SparkSession, path: str) -> bool:
    """Return whether a Delta table exists at ``path`` now.

    Rejected: ``DeltaTable.isDeltaTable``, which answers from Delta's cached log. A session that
    asked before the first commit then sees no table for an hour, although another process has
    created it (Delta 3.3 ``DeltaLog.tableExists``). This function updates the log first.
    """
    if has_log(spark):
        return bool(newest_snapshot(spark, path).version() >= 0)
    return DeltaTable.isDeltaTable(spark, path)


def commits(spark: SparkSession, path: str) -> Iterator[Commit]:
    """Yield the table's commits, newest first, back to the oldest commit in its log.

    Each commit is read when the caller iterates to it. Without a table there is no commit.
    """
    if has_log(spark):
        yield from _from_log(spark, path)
    elif DeltaTable.isDeltaTable(spark, path):
        yield from _from_history(spark, path)


def commit_time(spark: SparkSession, path: str, version: int) -> datetime | None:
    """Return when a commit removed its first file, or else when it was made.

    Returns:
        The time by the writer's clock (UTC), or by the log's where there is no JVM; None: there is
        no such commit, or log retention has removed it.
    """
    if not has_log(spark):
        history = DeltaTable.forPath(spark, path).history().where(F.col("version") == version)
        row = history.select(F.unix_millis("timestamp").alias("ms")).first()
        return None if row is None else _time(row["ms"])
    lines = _commit_files(spark, path)(version)
    if lines is None:
        return None
    times = [body.get(_TIMES[kind]) for kind, body in _actions(lines) if kind in _TIMES]
    return min((_time(time) for time in times if time is not None), default=None)


def checkpoint_before(spark: SparkSession, path: str, version: int) -> int | None:
    """Return the newest version up to ``version`` that has a checkpoint.

    Returns:
        The version; 0: no such one has a checkpoint; None: the engine does not say.
    """
    if not has_log(spark):
        return None
    _, log = java_log(spark, path)
    try:
        checkpoint = log.findLastCompleteCheckpointBefore(version + 1)
    except Py4JError:  # Another engine has no such method.
        return None
    return int(checkpoint.get().version()) if checkpoint.isDefined() else 0


def oldest_file_time(spark: SparkSession, path: str) -> datetime | None:
    """Return when the oldest file of the log was written that the version at hand needs.

    It is that of the checkpoint before it, or of a commit since.

    Returns:
        The storage's time (UTC); None: the engine does not say.
    """
    if not has_log(spark):
        return None
    try:
        segment = snapshot_at_hand(spark, path).logSegment()
        checkpoint, commits = segment.checkpointProvider().topLevelFiles(), segment.deltas()
        files = [listed.head() for listed in (checkpoint, commits) if listed.size()]
        return min((_time(file.getModificationTime()) for file in files), default=None)
    except Py4JError:
        return None


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


def properties(spark: SparkSession, path: str) -> dict[str, str]:
    """Return the properties that a table has now."""
    if has_log(spark):
        return dict(_metadata(spark, path).get("configuration", {}))
    detail = DeltaTable.forPath(spark, path).detail().select("properties").first()
    return dict(detail["properties"]) if detail else {}


def created_at(spark: SparkSession, path: str) -> datetime | None:
    """Return the time (UTC) at which a table was made; None: its log does not say."""
    made = _metadata(spark, path).get("createdTime") if has_log(spark) else None
    return None if made is None else datetime.fromtimestamp(made / 1000, timezone.utc)


def _metadata(spark: SparkSession, path: str) -> Mapping[str, Any]:
    """Return the fields of the ``metaData`` action that holds now."""
    metadata = newest_snapshot(spark, path).metadata().json()
    return dict(json.loads(metadata)["metaData"])


def location(spark: SparkSession, path: str) -> str:
    """Return the absolute URI of a table, which must be there; every session and SQL know it."""
    if has_log(spark):
        return str(java_log(spark, path)[1].dataPath().toString())
    return str(DeltaTable.forPath(spark, path).detail().collect()[0]["location"])


def sql_name(spark: SparkSession, path: str) -> str:
    """Return what SQL calls a table, which must be there; SQL resolves no relative path."""
    return f"delta.{quoted(location(spark, path))}"


def has_log(spark: SparkSession) -> bool:
    """Return whether the JVM's class ``DeltaLog`` is available."""
    session: Any = spark
    if not hasattr(spark, "_jsparkSession"):
        return False
    log_class = session._jvm.org.apache.spark.sql.delta.DeltaLog  # noqa: SLF001 - this is the adapter
    # For a name without a class, the gateway returns a package.
    return isinstance(log_class, JavaClass)


def java_log(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Return the JVM view and the table's ``DeltaLog``."""
    session: Any = spark
    jvm = session._jvm  # noqa: SLF001 - this is the adapter
    java_session = session._jsparkSession  # noqa: SLF001
    return jvm, jvm.org.apache.spark.sql.delta.DeltaLog.forTable(java_session, path)


def newest_snapshot(spark: SparkSession, path: str) -> Any:
    """Return the JVM's ``Snapshot`` of the table's newest version; its version is -1: no table.

    The snapshot that Delta has at hand is the newest one if its commit file is the one that the
    log has now, and no commit follows it: versions have no gap. These are two looks at one file
    each. ``DeltaLog.update`` lists the log, which keeps 30 days of commits: for a table that
    changes each minute, 43,200 files.
    """
    session: Any = spark
    jvm, log = java_log(spark, path)
    snapshot = log.unsafeVolatileSnapshot()
    configuration = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    if _knows_checkpoints(jvm, snapshot, path) and _is_newest(jvm, snapshot, configuration):
        return snapshot
    no_value = jvm.scala.Option.empty()
    listed = log.update(False, no_value, no_value)
    _LISTED[path] = _identity(jvm, listed)
    return listed


def _knows_checkpoints(jvm: Any, snapshot: Any, path: str) -> bool:
    """Return whether a snapshot has few commits, or is that of the last listing.

    Only a listing notices a new checkpoint, without which the commits grow with each one.
    """
    few = snapshot.logSegment().deltas().size() <= _MOST_COMMITS
    return few or _LISTED.get(path) == _identity(jvm, snapshot)


def _identity(jvm: Any, snapshot: Any) -> int:
    return int(jvm.java.lang.System.identityHashCode(snapshot))


def snapshot_at_hand(spark: SparkSession, path: str) -> Any:
    """Return the ``Snapshot`` that Delta has at hand: it may be older than the newest version."""
    _, log = java_log(spark, path)
    return log.unsafeVolatileSnapshot()


def _is_newest(jvm: Any, snapshot: Any, configuration: Any) -> bool:
    """Return whether a snapshot's last commit is the log's last one; False also if unclear.

    A commit file of the same name belongs to another table if the log was made anew since: it has
    another modification time or length.
    """
    commits = snapshot.logSegment().deltas()
    if not commits.size():
        return False
    last = commits.last()
    path = last.getPath()
    files = path.getFileSystem(configuration)
    if files.exists(commit_file(jvm, path.getParent(), snapshot.version() + 1)):
        return False
    try:
        now = files.getFileStatus(path)
    except Py4JJavaError:  # There is no such file.
        return False
    return bool(
        now.getModificationTime() == last.getModificationTime() and now.getLen() == last.getLen()
    )


def commit_name(version: int) -> str:
    """Return the name of a version's commit file."""
    return f"{version:020d}.json"


def commit_file(jvm: Any, log_path: Any, version: int) -> Any:
    """Return the path of a version's commit file, given Delta's ``logPath``."""
    return jvm.org.apache.hadoop.fs.Path(log_path, commit_name(version))


def _commit_files(spark: SparkSession, path: str) -> Callable[[int], Any | None]:
    """Return a function that reads a version's commit file.

    It returns the file's lines, as a Scala sequence; None: there is no such file.
    """
    session: Any = spark
    jvm, log = java_log(spark, path)
    configuration = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001

    def read(version: int) -> Any | None:
        file = commit_file(jvm, log.logPath(), version)
        exists = file.getFileSystem(configuration).exists(file)
        return log.store().read(file, configuration) if exists else None

    return read


def _actions(lines: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield kind and body of each action in a commit file."""
    # One call for all lines: one call per line would be thousands for an OPTIMIZE.
    for line in lines.mkString("\n").split("\n"):
        yield from json.loads(line or "{}").items()


def _from_log(spark: SparkSession, path: str) -> Iterator[Commit]:
    read = _commit_files(spark, path)
    for version in range(newest_snapshot(spark, path).version(), -1, -1):
        lines = read(version)
        if lines is None:
            # Log retention has removed this commit file and all older ones.
            return
        info = _commit_info(lines.apply(index) for index in range(lines.size()))
        yield _commit(version, info, partial(_changes_rows, lines))


def _commit_info(lines: Iterable[str]) -> Mapping[str, Any]:
    for line in lines:
        if line.startswith('{"commitInfo"'):
            return dict(json.loads(line)["commitInfo"])
    return {}


def _commit(version: int, info: Mapping[str, Any], changes_rows: Callable[[], bool]) -> Commit:
    operation = str(info.get("operation") or "")
    metadata = info.get("userMetadata")
    target = str((info.get("operationParameters") or {}).get("version"))
    restored = int(target) if operation == "RESTORE" and target.isdigit() else None
    loses_values = operation in _LOSSES
    return Commit(
        version=version,
        metadata=str(metadata) if metadata is not None else None,
        operation=operation,
        restored=restored,
        changes_rows=lambda: loses_values or changes_rows(),
    )


def _changes_rows(lines: Any) -> bool:
    """Return whether a commit's actions change rows.

    Args:
        lines: Lines of the commit file, as a Scala sequence.
    """
    return any(
        kind in _CHANGES and action.get("dataChange", True) for kind, action in _actions(lines)
    )


def _from_history(spark: SparkSession, path: str) -> Iterator[Commit]:
    table = DeltaTable.forPath(spark, path)
    oldest: int | None = None
    for depth in _HISTORY_DEPTHS:
        history = table.history() if depth is None else table.history(depth)
        rows = history.select(
            "version", "userMetadata", "operation", "operationParameters"
        ).collect()
        for row in sorted(rows, key=lambda row: -int(row["version"])):
            if oldest is None or row["version"] < oldest:
                oldest = row["version"]
                changes_rows = row["operation"] not in _MAINTENANCE
                yield _commit(row["version"], row.asDict(), partial(bool, changes_rows))
