"""``lakeingest history``: the publications of a lake, oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakeingest.cli.options import (
    ConfigArgument,
    LimitOption,
    OutputOption,
    SetOption,
    row_limit,
)
from lakeingest.cli.output import OutputFormat
from lakeingest.cli.pipeline import load_pipeline, start_spark
from lakeingest.cli.rows import write_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def history(
    config: ConfigArgument,
    settings: SetOption = None,
    limit: LimitOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the publications, oldest first; a limit keeps the latest ones."""
    pipeline = load_pipeline(config, settings)
    spark = start_spark(f"lakeingest history {pipeline.name}", pipeline)
    from lakeingest.engine.storage_errors import storage
    from lakeingest.reader import open_lake

    with storage(pipeline.target.path):
        publications = open_lake(spark, pipeline.target.path, pipeline.metadata_prefix).history()
        write_rows(latest(publications, row_limit(limit, output)), output, None)


def latest(publications: DataFrame, limit: int | None) -> DataFrame:
    """Return the latest ``limit`` publications (``None``: all), ordered by batch."""
    from pyspark.sql import functions as F  # noqa: N812

    if limit is not None:
        publications = publications.orderBy(F.desc("batch")).limit(limit)
    return publications.orderBy("batch")
