"""A Hudi table's commits, newest first, with the metadata that their writers left in them.

Adapter: the JVM's ``HoodieTableMetaClient`` is asked, without a Spark job (5 ms). Told are
completed instants that make files: writers' and, without any text of ours, those of compaction and
clustering, which change no row.

A commit's version is the time at which it was completed, as a number (``20261122174501123``). The
option ``as.of.instant`` takes it, and everything that was completed up to then is in what is read.
Rejected: the time at which the commit was requested, because a compaction that was requested
before it and completed after it would be on the wrong side. Internal names:
``org.apache.hudi.common.table.HoodieTableMetaClient`` (``builder``, ``getActiveTimeline``),
``TimelineLayout``'s ``readCommitMetadata``, as in Hudi 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakeingest.engine.commit import Commit
from lakeingest.named import all_named

METADATA_PREFIX = "lakeingest."
"""Options that start with it are kept in the commit's extra metadata."""

METADATA_KEY = f"{METADATA_PREFIX}note"
"""Where a commit of ours keeps its text."""

STREAMER_KEYS = ("streamer.checkpoint.key.v2", "deltastreamer.checkpoint.key")
"""Where Hudi Streamer keeps its checkpoint: from table version 8 on, and before."""

HUDI_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""What Hudi adds to each row."""

TAKEN_AWAY = "_hoodie_is_deleted"
"""A column that Hudi takes as its mark of a delete, wherever it is; readers need not see it."""

READ_OPTIONS = {
    # Files are listed: the metadata table is not kept unless the user says so, and not needed then.
    "hoodie.metadata.enable": "false",
    # Hudi's files do not say by whom they were written, so Spark would refuse dates before 1582.
    "datetimeRebaseMode": "CORRECTED",
}
"""With what every table of ours is read."""

_MAINTENANCE = ("COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX", "ALTER_SCHEMA")
"""Operations that change no row, as Hudi's ``WriteOperationType`` names them."""

_PROPERTIES = ".hoodie/hoodie.properties"


def is_hudi_table(spark: SparkSession, path: str) -> bool:
    """Tell whether a Hudi table lies at ``path`` now."""
    jvm, configuration = java(spark)
    file = jvm.org.apache.hadoop.fs.Path(f"{path}/{_PROPERTIES}")
    return bool(file.getFileSystem(configuration).exists(file))


def rows_of(
    spark: SparkSession, path: str, version: int | None, last: Sequence[str], own_key: str
) -> DataFrame:
    """Read a table without the columns that are Hudi's.

    Args:
        spark: Session with Hudi's extension.
        path: The table.
        version: As of which commit; null: its head.
        last: Metadata columns, to come behind all others. Hudi puts a new column behind them.
        own_key: Name of the record key column, if the table has one of ours.
    """
    reader = spark.read.format("hudi").options(**READ_OPTIONS)
    if version is not None:
        reader = reader.option("as.of.instant", str(version))
    frame = reader.load(path).drop(*HUDI_COLUMNS, TAKEN_AWAY, own_key)
    first = [name for name in frame.columns if name not in last]
    return frame.select(*all_named([*first, *last]))


def commits(spark: SparkSession, path: str) -> Iterator[Commit]:
    """Yield the table's commits of rows, newest first, as far as its active timeline reaches back.

    Each is read when it is asked for.
    """
    jvm, _ = java(spark)
    timeline = load_table(spark, path).getActiveTimeline()
    completed = timeline.getCommitsTimeline().filterCompletedInstants()
    instants = completed.getInstantsOrderedByCompletionTime().collect(
        jvm.java.util.stream.Collectors.toList()
    )
    for index in range(instants.size() - 1, -1, -1):
        instant = instants.get(index)
        written = completed.readCommitMetadata(instant)
        extra, kind = written.getExtraMetadata(), written.getOperationType()
        checkpoint = next((extra.get(key) for key in STREAMER_KEYS if extra.get(key)), None)
        operation = str(kind.name()) if kind is not None else ""
        yield Commit(
            int(instant.getCompletionTime()),
            extra.get(METADATA_KEY),
            checkpoint,
            operation,
            asked_change=partial(bool, operation not in _MAINTENANCE),
        )


def restored_after(spark: SparkSession, path: str, version: int) -> bool:
    """Return whether commits were taken from the table by a restore that ended after ``version``.

    A restore to a savepoint removes the later commits from the timeline.
    """
    restores = load_table(spark, path).getActiveTimeline().getRestoreTimeline()
    newest = restores.filterCompletedInstants().lastInstant()
    return bool(newest.isPresent()) and int(newest.get().getCompletionTime()) > version


def load_table(spark: SparkSession, path: str) -> Any:
    """Return the JVM's view of a table as it is now."""
    jvm, configuration = java(spark)
    storage = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(configuration)
    client = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
    return client.setConf(storage).setBasePath(path).build()


def java(spark: SparkSession) -> tuple[Any, Any]:
    """Return the JVM and the file systems' configuration."""
    session: Any = spark
    configuration = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - adapter
    return session._jvm, configuration  # noqa: SLF001
