"""Refuse files in a table's folder, or beside it, that belong to no table of the lake.

A table of another format is refused whenever the folder has none of the configured one, also in a
folder that no publication names: lakeingest would write one table, and readers would read the
other.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lakeingest.engine.delta.log import is_delta_table
from lakeingest.engine.hudi.table import is_hudi_table
from lakeingest.errors import ConfigError, load_anew
from lakeingest.folders import TOMBSTONES

_IS_TABLE = {"Delta": is_delta_table, "Hudi": is_hudi_table}
"""How to recognise a table, by the format's display name. It takes no format's jar."""


def refuse_files(spark: SparkSession, path: str, kind: str) -> None:
    """Raise an error if a folder contains any file, or if it has tombstones of a deleted table.

    Tombstones lie in a folder beside the table's folder, so they stay when a user deletes the
    table's folder. They carry the tokens of the earlier lake's runs. Compared with these tokens,
    the first writers of the new lake would seem to be older writers. The new lake would also drop
    changes that are older than a tombstone.

    Args:
        spark: Session that lists the files.
        path: The table's folder, which contains no table of the format; it need not exist.
        kind: Display name of the format.

    Raises:
        ConfigError: There is a file.
    """
    if _holds_files(spark, path):
        message = (
            f"The target folder '{PurePosixPath(path).name}' under lakeingest.target.path holds "
            f"files that are no {kind} table. It was not touched. Choose another "
            "lakeingest.target.path or move the files away."
        )
        raise ConfigError(message)
    refuse_tombstones(spark, path)


def refuse_other_format(spark: SparkSession, path: str, kind: str, collection: str) -> None:
    """Raise an error if a folder contains a table of another format.

    Args:
        spark: Session that looks for the table.
        path: The table's folder, which contains no table of the format.
        kind: Display name of the format.
        collection: The source table.

    Raises:
        ConfigError: There is one.
    """
    for other, is_table in _IS_TABLE.items():
        if other != kind and is_table(spark, path):
            message = (
                f"Table '{collection}' is a {other} table in the lake, but the configuration says "
                f"{kind.lower()}. A format cannot change in place: {load_anew(collection)}, or set "
                f"lakeingest.table.{collection}.format={other.lower()}."
            )
            raise ConfigError(message)


def refuse_tombstones(spark: SparkSession, path: str) -> None:
    """Raise an error if there are tombstones beside a table that cannot have any.

    Args:
        spark: Session that lists the files.
        path: The table's folder.

    Raises:
        ConfigError: There are tombstones.
    """
    if _holds_files(spark, f"{path}{TOMBSTONES}"):
        message = (
            f"'{path}{TOMBSTONES}' holds the positions of rows that were deleted in an earlier "
            f"lake, whose table at '{path}' is gone. Nothing was touched. Delete that folder, too, "
            "before the table is made anew."
        )
        raise ConfigError(message)


def _holds_files(spark: SparkSession, path: str) -> bool:
    try:
        reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        return not reader.load(path).select("path").isEmpty()
    except AnalysisException:
        return False
