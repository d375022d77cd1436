"""``lakeingest demo``: ingest the recorded run of a small shop and print its tables.

The command uses the ordinary functions (``load_config``, ``run_pipeline``, ``open_lake``) on data
of the package. So it needs no database, no broker and no network, and shows only what a user's own
pipeline also does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeingest.cli.history import latest
from lakeingest.cli.output import OutputFormat, message
from lakeingest.cli.pipeline import load_pipeline, start_spark
from lakeingest.cli.progress import progress
from lakeingest.cli.rows import write_rows
from lakeingest.cli.run import write_summary
from lakeingest.cli.show import published_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakeingest.config import PipelineConfig

SHOWN_TABLES = ("public.customers", "public.orders", "public.order_lines")
SHOWN_ROWS = 5
SHOWN_PUBLICATIONS = 5


def demo(
    path: Annotated[
        Path, typer.Option(help="Folder for the demo's tables; made if it is not there.")
    ] = Path("lakeingest-demo"),
) -> None:
    """Ingest a recorded run of a small shop into local tables and show them."""
    from lakeingest.config.keys import SOURCE_PATH, TARGET_PATH
    from lakeingest.demo import demo_folder

    recording = demo_folder()
    config = load_pipeline(
        str(recording / "pipeline.properties"),
        [f"{SOURCE_PATH}={recording}", f"{TARGET_PATH}={path}"],
    )
    message(f"recorded events: {recording}")
    message(f"tables: {path.absolute()}")
    spark = start_spark("lakeingest demo", config)
    from lakeingest.apply.run import run_pipeline

    with progress("reading recorded events") as on_batch:
        summary = run_pipeline(spark, config, on_batch=on_batch)
    write_summary(summary, OutputFormat.TABLE, config.warnings)
    _show_lake(spark, config)
    message(f"run it again to see that nothing changes; start over: rm -r {path}")


def _show_lake(spark: SparkSession, config: PipelineConfig) -> None:
    from lakeingest.reader import open_lake

    lake = open_lake(spark, config.target.path)
    snapshot = lake.snapshot()
    published = set(snapshot.tables())
    for table in SHOWN_TABLES:
        if table in published:
            rows = published_rows(lake, snapshot, table, metadata=False)
            _title(f"{table}, {rows.count():,} rows, the first {SHOWN_ROWS}:")
            write_rows(rows.limit(SHOWN_ROWS), OutputFormat.TABLE, None)
    _title("the latest publications (lakeingest history):")
    write_rows(latest(lake.history(), SHOWN_PUBLICATIONS), OutputFormat.TABLE, None)


def _title(text: str) -> None:
    sys.stdout.write(f"\n{text}\n")
