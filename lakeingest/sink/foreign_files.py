"""Files in a table's folder that its format does not explain."""

from __future__ import annotations

from pathlib import PurePosixPath

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from lakeingest.errors import ConfigError


def refuse_files(spark: SparkSession, path: str, kind: str) -> None:
    """Stop at a folder that holds any file.

    Args:
        spark: Session to look with.
        path: The folder, which is no table of the format; it need not exist.
        kind: The format's name, for people.

    Raises:
        ConfigError: There is a file.
    """
    try:
        reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        empty = reader.load(path).select("path").isEmpty()
    except AnalysisException:
        return
    if not empty:
        message = (
            f"The target folder '{PurePosixPath(path).name}' under lakeingest.target.path holds "
            f"files that are no {kind} table. It was not touched. Choose another "
            "lakeingest.target.path or move the files away."
        )
        raise ConfigError(message)
