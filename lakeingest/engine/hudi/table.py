"""Read a Hudi table's commits, newest first, with the metadata that their writers stored.

Adapter: it reads the JVM's ``HoodieTableMetaClient`` without a Spark job (5 ms). The commits are
the completed instants that write files: those of writers, and those of compaction and clustering,
which carry no note of lakeingest and change no row.

A commit's version is its completion time as a number (``20261122174501123``). The read option
``as.of.instant`` takes this number, and the read contains every commit that was complete by then.
Rejected: the time at which the writer requested the commit. A compaction that was requested before
the commit and completed after it would be on the wrong side. Internal names:
``org.apache.hudi.common.table.HoodieTableMetaClient`` (``builder``, ``getActiveTimeline``),
``TimelineLayout``'s ``readCommitMetadata``, as in Hudi 1.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakeingest.engine.commit import Commit
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.named import all_named

METADATA_PREFIX = "lakeingest."
"""Hudi stores write options with this prefix in the commit's extra metadata."""

METADATA_KEY = f"{METADATA_PREFIX}note"
"""Key of the extra metadata under which a commit of lakeingest stores its note."""

STREAMER_KEYS = ("streamer.checkpoint.key.v2", "deltastreamer.checkpoint.key")
"""Keys of Hudi Streamer's checkpoint: from table version 8 on, and before version 8."""

HUDI_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""Columns that Hudi adds to each row."""

DELETE_MARKER = "_hoodie_is_deleted"
"""Column that Hudi treats as its delete marker in any table; readers do not see it."""

READ_OPTIONS = {
    # Spark lists the files: the metadata table is off unless the user turns it on, and even then
    # a read does not need it.
    "hoodie.metadata.enable": "false",
    # Hudi's files do not name their writer, so Spark would refuse dates before 1582.
    "datetimeRebaseMode": "CORRECTED",
}
"""Options with which every Hudi table of lakeingest is read."""

_MAINTENANCE = ("COMPACT", "LOG_COMPACT", "CLUSTER", "INDEX", "ALTER_SCHEMA")
"""Operations that change no row, as Hudi's ``WriteOperationType`` names them."""

_PROPERTIES = ".hoodie/hoodie.properties"


def is_hudi_table(spark: SparkSession, path: str) -> bool:
    """Return whether a Hudi table exists at ``path`` now."""
    jvm, configuration = java(spark)
    file = jvm.org.apache.hadoop.fs.Path(f"{path}/{_PROPERTIES}")
    return bool(file.getFileSystem(configuration).exists(file))


def rows_of(
    spark: SparkSession, path: str, version: int | None, names: MetadataColumns
) -> DataFrame:
    """Read a table without Hudi's own columns and without the record key column.

    Args:
        spark: Session with Hudi's extension.
        path: Path of the table.
        version: Commit version to read; None: the newest.
        names: Names of the metadata columns; the table may lack them. They go to the end: in the
            table, Hudi appends each new column behind them.
    """
    reader = spark.read.format("hudi").options(**READ_OPTIONS)
    if version is not None:
        reader = reader.option("as.of.instant", str(version))
    frame = reader.load(path).drop(*HUDI_COLUMNS, DELETE_MARKER, names.record_key)
    first = [name for name in frame.columns if name not in names.names]
    last = [name for name in names.names if name in frame.columns]
    return frame.select(*all_named([*first, *last]))


def commits(spark: SparkSession, path: str) -> Iterator[Commit]:
    """Yield the table's commits of rows, newest first, back to the start of the active timeline.

    Each commit is read when the caller iterates to it. Without a table there is no commit.
    """
    if not is_hudi_table(spark, path):
        return
    for instant, metadata in completed_commits(spark, path):
        extra, kind = metadata.getExtraMetadata(), metadata.getOperationType()
        checkpoint = next((extra.get(key) for key in STREAMER_KEYS if extra.get(key)), None)
        operation = str(kind.name()) if kind is not None else ""
        yield Commit(
            version=int(instant.getCompletionTime()),
            metadata=extra.get(METADATA_KEY),
            checkpoint=checkpoint,
            operation=operation,
            changes_rows=partial(bool, operation not in _MAINTENANCE),
        )


def completed_commits(spark: SparkSession, path: str) -> Iterator[tuple[Any, Any]]:
    """Yield instant and metadata of each completed commit of an existing table, newest first."""
    jvm, _ = java(spark)
    timeline = load_table(spark, path).getActiveTimeline()
    completed = timeline.getCommitsTimeline().filterCompletedInstants()
    instants = completed.getInstantsOrderedByCompletionTime().collect(
        jvm.java.util.stream.Collectors.toList()
    )
    for index in range(instants.size() - 1, -1, -1):
        instant = instants.get(index)
        yield instant, completed.readCommitMetadata(instant)


def restored_after(spark: SparkSession, path: str, version: int) -> bool:
    """Return whether a restore that completed after ``version`` removed commits from the table.

    A restore to a savepoint removes the commits after the savepoint from the timeline.
    """
    restores = load_table(spark, path).getActiveTimeline().getRestoreTimeline()
    newest = restores.filterCompletedInstants().lastInstant()
    return bool(newest.isPresent()) and int(newest.get().getCompletionTime()) > version


def load_table(spark: SparkSession, path: str) -> Any:
    """Return the JVM's ``HoodieTableMetaClient`` of a table's present state."""
    jvm, configuration = java(spark)
    storage = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(configuration)
    client = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
    return client.setConf(storage).setBasePath(path).build()


def java(spark: SparkSession) -> tuple[Any, Any]:
    """Return the JVM view and the Hadoop configuration of the file systems."""
    session: Any = spark
    configuration = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001 - adapter
    return session._jvm, configuration  # noqa: SLF001
