"""Files in a table's folder, or beside it, that no table of the lake explains."""

from __future__ import annotations

from pathlib import PurePosixPath

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lakeingest.errors import ConfigError
from lakeingest.sink.tombstones import SUFFIX


def refuse_files(spark: SparkSession, path: str, kind: str) -> None:
    """Stop at a folder that holds any file, and where tombstones of a table that is gone lie.

    Tombstones lie beside the table's folder, so they stay when that folder is deleted. They carry
    the tokens of the runs that wrote them: to the new lake's first writers each of its own would
    seem an older one's, and older changes of rows that were deleted once would be dropped.

    Args:
        spark: Session to look with.
        path: The table's folder, which is no table of the format; it need not exist.
        kind: The format's name, for people.

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


def refuse_tombstones(spark: SparkSession, path: str) -> None:
    """Stop where tombstones lie beside a table that cannot have any.

    Raises:
        ConfigError: They do.
    """
    if _holds_files(spark, f"{path}{SUFFIX}"):
        message = (
            f"'{path}{SUFFIX}' holds the positions of rows that were deleted in an earlier lake, "
            f"whose table at '{path}' is gone. Nothing was touched. Delete that folder, too, "
            "before the table is made anew."
        )
        raise ConfigError(message)


def _holds_files(spark: SparkSession, path: str) -> bool:
    try:
        reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        return not reader.load(path).select("path").isEmpty()
    except AnalysisException:
        return False
