"""``lakeingest history``: the publications of a lake, or its transactions, oldest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

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
    transactions: Annotated[
        bool,
        typer.Option(
            "--transactions", help="The source transactions, each with the batch that it is in."
        ),
    ] = False,
    limit: LimitOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the publications, oldest first; a limit keeps the latest ones."""
    pipeline = load_pipeline(config, settings)
    spark = start_spark(f"lakeingest history {pipeline.name}", pipeline)
    from lakeingest.engine.storage_errors import storage
    from lakeingest.reader import open_lake

    with storage(pipeline.target.path):
        lake = open_lake(spark, pipeline.target.path, pipeline.metadata_prefix)
        rows, order = lake.history(), "batch"
        if transactions:
            rows, order = lake.transactions(), "end_offset"
        write_rows(latest(rows, row_limit(limit, output), order), output, None)


def latest(rows: DataFrame, limit: int | None, order: str = "batch") -> DataFrame:
    """Return the latest ``limit`` rows (``None``: all), in the order of a column."""
    from pyspark.sql import functions as F  # noqa: N812

    if limit is not None:
        rows = rows.orderBy(F.desc(order)).limit(limit)
    return rows.orderBy(order)
