"""What Hudi Streamer left in a table: its settings, and the checkpoint in its commits.

Adapter, with the same internal names as ``hudi_table``. A checkpoint is in the extra metadata of a
commit, under one name up to table version 6 and another one from 8 on. The newest commit need not
have one: compaction has none, and commits of ours have none, either. Seen in tables that Hudi 1.2
wrote: the configuration keeps the payload class under ``hoodie.compaction.payload.class`` (versions
6 and 8) or ``hoodie.table.legacy.payload.class`` (9).
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.hudi_table import READ_OPTIONS, commits, java, load_table

_SOME = 100
"""Rows of which it is asked where they lie; under another number of buckets half of them move."""

_KEY, _FILE = "_hoodie_record_key", "_hoodie_file_name"


def table_properties(spark: SparkSession, path: str) -> dict[str, str]:
    """Return the table's own settings, as its ``hoodie.properties`` hold them."""
    properties = load_table(spark, path).getTableConfig().getProps()
    names = properties.stringPropertyNames().toArray()
    return {str(name): str(properties.getProperty(name)) for name in names}


def newest_checkpoint(spark: SparkSession, path: str) -> str | None:
    """Return the checkpoint of the newest commit that has one; null where none has."""
    return next((found.checkpoint for found in commits(spark, path) if found.checkpoint), None)


def newest_file_ids(spark: SparkSession, path: str) -> list[str]:
    """Return the identifiers of the files that the newest commit with any has written."""
    jvm, _ = java(spark)
    timeline = load_table(spark, path).getActiveTimeline().getCommitsTimeline()
    completed = timeline.filterCompletedInstants()
    instants = completed.getInstantsOrderedByCompletionTime().collect(
        jvm.java.util.stream.Collectors.toList()
    )
    for index in range(instants.size() - 1, -1, -1):
        commit = completed.readCommitMetadata(instants.get(index))
        found = [str(file) for file in commit.getFileIdAndRelativePaths()]
        if found:
            return sorted(found)
    return []


def is_hashed_consistently(spark: SparkSession, path: str) -> bool:
    """Tell whether the table has an index of consistent hashing, which keeps files of its own."""
    jvm, configuration = java(spark)
    folder = jvm.org.apache.hadoop.fs.Path(load_table(spark, path).getHashingMetadataPath())
    return bool(folder.getFileSystem(configuration).exists(folder))


def rows_elsewhere(spark: SparkSession, path: str, fields: str, buckets: int) -> int:
    """Count those of some rows that Hudi would look for in another bucket than theirs.

    Args:
        spark: Session with Hudi's extension.
        path: The table; all its files are those of buckets.
        fields: Key fields that are hashed, with commas between.
        buckets: How many there are, by the settings.
    """
    jvm, _ = java(spark)
    bucket_of = jvm.org.apache.hudi.index.bucket.BucketIdentifier.getBucketId
    table = spark.read.format("hudi").options(**READ_OPTIONS).load(path)
    placed = table.select(_KEY, _FILE).na.drop().limit(_SOME).collect()
    # As text: a file that is no bucket's begins with hexadecimal digits.
    wanted = (f"{bucket_of(row[_KEY], fields, buckets):08}" for row in placed)
    return sum(not row[_FILE].startswith(name) for row, name in zip(placed, wanted, strict=True))


def with_positions(frame: DataFrame, position: str, deleted: str, adopted_at: str) -> DataFrame:
    """Fill in what rows of another writer do not have.

    Args:
        frame: The table.
        position: Name of the position column.
        deleted: Name of the column that marks tombstones.
        adopted_at: Position of such rows.
    """
    # A version before the table was adopted has none of the columns.
    if position not in frame.columns:
        return frame
    return frame.withColumns(
        {
            position: F.coalesce(position, F.lit(adopted_at)),
            deleted: F.coalesce(deleted, F.lit(False)),
        }
    )
