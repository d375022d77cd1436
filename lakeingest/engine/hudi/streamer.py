"""Read what Hudi Streamer stores in a table: the settings, and the checkpoint in its commits.

Adapter, with the same internal names as ``hudi_table``. A checkpoint is in the extra metadata of a
commit, under one name up to table version 6 and under another name from version 8 on. The newest
commit may have none: neither compaction nor a commit of lakeingest stores a checkpoint. The
configuration of tables that Hudi 1.2 wrote keeps the payload class under
``hoodie.compaction.payload.class`` (versions 6 and 8) or ``hoodie.table.legacy.payload.class`` (9).
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.hudi.table import (
    READ_OPTIONS,
    commits,
    completed_commits,
    java,
    load_table,
)

_SAMPLE_ROWS = 100
"""Rows whose bucket is checked; under another number of buckets, about half of them differ."""

_KEY, _FILE = "_hoodie_record_key", "_hoodie_file_name"


def table_properties(spark: SparkSession, path: str) -> dict[str, str]:
    """Return the table's own settings, from its file ``hoodie.properties``."""
    properties = load_table(spark, path).getTableConfig().getProps()
    names = properties.stringPropertyNames().toArray()
    return {str(name): str(properties.getProperty(name)) for name in names}


def newest_checkpoint(spark: SparkSession, path: str) -> str | None:
    """Return the checkpoint of the newest commit that has one; None: no commit has one."""
    return next((commit.checkpoint for commit in commits(spark, path) if commit.checkpoint), None)


def newest_file_ids(spark: SparkSession, path: str) -> list[str]:
    """Return the ids of the files that the newest commit wrote; skip commits without files."""
    for _, commit in completed_commits(spark, path):
        file_ids = [str(file) for file in commit.getFileIdAndRelativePaths()]
        if file_ids:
            return sorted(file_ids)
    return []


def is_hashed_consistently(spark: SparkSession, path: str) -> bool:
    """Return whether the table has a consistent-hashing index, which keeps its own files."""
    jvm, configuration = java(spark)
    folder = jvm.org.apache.hadoop.fs.Path(load_table(spark, path).getHashingMetadataPath())
    return bool(folder.getFileSystem(configuration).exists(folder))


def rows_elsewhere(spark: SparkSession, path: str, fields: str, buckets: int) -> int:
    """Count sampled rows whose file is not in the bucket that the settings compute.

    Args:
        spark: Session with Hudi's extension.
        path: Path of the table; all its files are bucket files.
        fields: Key fields that Hudi hashes, separated by commas.
        buckets: Number of buckets in the settings.

    Returns:
        Number of such rows, of at most 100 sampled ones.
    """
    jvm, _ = java(spark)
    bucket_of = jvm.org.apache.hudi.index.bucket.BucketIdentifier.getBucketId
    table = spark.read.format("hudi").options(**READ_OPTIONS).load(path)
    rows = table.select(_KEY, _FILE).na.drop().limit(_SAMPLE_ROWS).collect()
    # Compare as text: the name of a file outside buckets begins with hexadecimal digits.
    prefixes = (f"{bucket_of(row[_KEY], fields, buckets):08}" for row in rows)
    return sum(
        not row[_FILE].startswith(prefix) for row, prefix in zip(rows, prefixes, strict=True)
    )


def with_positions(frame: DataFrame, position: str, deleted: str, adopted_at: str) -> DataFrame:
    """Fill the columns that rows of another writer lack.

    Args:
        frame: Rows of the table.
        position: Name of the position column.
        deleted: Name of the column that marks tombstones.
        adopted_at: Position for rows without one.

    Returns:
        The same rows. The marker of a row without one is false: the row is no tombstone.
    """
    # A table version from before the adoption has neither column.
    if position not in frame.columns:
        return frame
    return frame.withColumns(
        {
            position: F.coalesce(position, F.lit(adopted_at)),
            deleted: F.coalesce(deleted, F.lit(False)),
        }
    )
