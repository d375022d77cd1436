"""Write deletion vectors, which hide rows of data files without writing the files again.

Adapter. Delta's own generator merges the hidden rows with those that a file's present vector hides,
and writes the vectors of all files into one file, in one job. Rejected: to collect the rows' places
in Python and to write the vectors there. It would repeat Delta's format, and bring rows to the
driver. Rejected: Delta's MERGE, which uses the same generator: it takes eight jobs.

Internal names, verified in 3.3.3 and used with 3.3 only (``delta_files.available``):
``DeletionVectorBitmapGenerator.buildRowIndexSetsForFilesMatchingCondition``,
``AddFile.removeRows``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.engine.delta.files import DataFile, file_name, scala_sequence
from lakeingest.frame_schemas import OURS

FILE_PATH = f"{OURS}file_path"
"""Column with a row's ``_metadata.file_path``."""

ROW_INDEX = f"{OURS}row_index"
"""Column with a row's ``_metadata.row_index``; only where the table may have deletion vectors."""


def with_places(rows: DataFrame) -> DataFrame:
    """Add ``FILE_PATH`` and ``ROW_INDEX`` to the rows of data files."""
    path, index = F.col("_metadata.file_path"), F.col("_metadata.row_index")
    return rows.select("*", path.alias(FILE_PATH), index.alias(ROW_INDEX))


def write_vectors(
    jvm: Any, transaction: Any, rows: DataFrame, files: Sequence[DataFile]
) -> dict[str, Any]:
    """Write the vectors that hide ``rows``, too; one job, which reads ``rows``.

    Args:
        jvm: View of the JVM.
        transaction: Delta's ``OptimisticTransaction``.
        rows: ``FILE_PATH`` and ``ROW_INDEX`` of rows that are not hidden yet.
        files: Data files that have the rows.

    Returns:
        Delta's ``DeletionVectorDescriptor`` by the name of its file; files without such a row are
        left out.
    """
    java_rows: Any = rows
    generator: Any = getattr(
        jvm.org.apache.spark.sql.delta.commands, "DeletionVectorBitmapGenerator$"
    )
    columns: list[Any] = [F.lit(True), F.col(FILE_PATH), F.col(ROW_INDEX)]
    condition, path, index = (column._jc for column in columns)  # noqa: SLF001 - the adapter
    results = getattr(generator, "MODULE$").buildRowIndexSetsForFilesMatchingCondition(
        rows.sparkSession._jsparkSession,  # noqa: SLF001
        transaction,
        any(file.hidden_rows for file in files),
        java_rows._jdf,  # noqa: SLF001
        scala_sequence(jvm, (file.action for file in files)),
        condition.expr(),
        jvm.scala.Option.apply(path),
        jvm.scala.Option.apply(index),
    )
    vectors = (results.apply(number) for number in range(results.size()))
    return {file_name(each.filePath()): each.deletionVector() for each in vectors}


def with_vector(file: DataFile, vector: Any) -> DataFile | None:
    """Return a data file with a new vector; None: the vector hides all of its rows."""
    if vector.cardinality() == file.rows:
        return None
    updates_stats, changes_rows = False, True
    action = _with_wide_bounds(file.action).removeRows(vector, updates_stats, changes_rows)
    return DataFile(file.name, file.size, action.productElement(0))


def _with_wide_bounds(action: Any) -> Any:
    """Return an ``AddFile`` whose statistics say that their bounds count hidden rows, too."""
    return action.copy(
        action.path(),
        action.partitionValues(),
        action.size(),
        action.modificationTime(),
        action.dataChange(),
        with_wide_bounds(str(action.stats())),
        action.tags(),
        action.deletionVector(),
        action.baseRowId(),
        action.defaultRowCommitVersion(),
        action.clusteringProvider(),
    )


def with_wide_bounds(stats: str) -> str:
    """Return statistics of a file that say that their bounds count hidden rows, too.

    The text is edited and not parsed. Delta's own ``updates_stats`` prints decimals again through a
    double, and a minimum that becomes larger hides rows from readers.
    """
    tight, wide = '"tightBounds":true', '"tightBounds":false'
    if tight in stats:
        return stats.replace(tight, wide)
    return stats if wide in stats else f"{{{wide},{stats.removeprefix('{')}"
