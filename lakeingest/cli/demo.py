"""``lakeingest demo``: ingest the recorded run of a small shop, and show what is special about it.

The command uses the ordinary functions (``load_config``, ``run_pipeline``, ``open_lake``) on data
of the package. So it needs no database, no broker and no network, and shows only what a user's own
pipeline also does.

It tells what a loader of single tables cannot: it kills a run and lets another one go on, compares
what readers would see of one job per table with what they see of the publications, and shows one
source transaction, row by row. ``--quick`` leaves all that out: one run, and its tables.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeingest.cli.history import latest
from lakeingest.cli.output import OutputFormat, message, write_table
from lakeingest.cli.pipeline import load_pipeline, start_spark
from lakeingest.cli.progress import progress
from lakeingest.cli.rows import text_rows, write_rows
from lakeingest.cli.run import write_summary
from lakeingest.cli.show import published_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakeingest.config import PipelineConfig
    from lakeingest.reader import Lake

SHOWN_TABLES = ("public.customers", "public.orders", "public.order_lines")
SHOWN_ROWS = 5
SHOWN_PUBLICATIONS = 5

_KILLED_AFTER = 2
"""Entries of the ledger's log at which the run is killed: a claim, and the snapshot's batch."""

_GROUPED = ("lakeingest.batch.max.events=3390", "lakeingest.commit.max.transactions=1000")
"""Settings of the first publications, which hold many transactions. A bound of transactions lets
each wait for the one before, so the killed run's batches are those of the next one."""

_GROUPED_TO = 4
"""Publication up to which it is so. Three transactions are left, and each gets its own."""

_PER_TABLE = 400
"""Records that a job per table would take at a time."""


def demo(
    path: Annotated[
        Path, typer.Option(help="Folder for the demo's tables; made if it is not there.")
    ] = Path("lakeingest-demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Only ingest the events and show the tables.")
    ] = False,
) -> None:
    """Ingest a recorded run of a small shop into local tables and show what is special about them.

    A run is killed in the middle and another one goes on. Then: the tables, what readers of one job
    per table would have seen of them, and the rows that one source transaction changed.
    """
    from lakeingest.config.keys import SOURCE_PATH, TARGET_PATH
    from lakeingest.demo import demo_folder

    recording = demo_folder()
    properties = str(recording / "pipeline.properties")
    settings = [f"{SOURCE_PATH}={recording}", f"{TARGET_PATH}={path}"]
    config = load_pipeline(properties, settings if quick else [*settings, *_GROUPED])
    message(f"recorded events: {recording}")
    message(f"tables: {path.absolute()}")
    tells_story = not quick and not path.exists()
    if tells_story:
        _run_and_kill(properties, [*settings, *_GROUPED], path)
    spark = start_spark("lakeingest demo", config)
    from lakeingest.apply.run import run_pipeline
    from lakeingest.engine.few_rows import session_for_few_rows

    with progress("reading recorded events") as on_batch:
        if not quick:
            batches = _GROUPED_TO - _published(spark, config)
            run_pipeline(spark, config, max_batches=max(0, batches), on_batch=on_batch)
            each = [*settings, "lakeingest.commit.mode=per-transaction"]
            config = load_pipeline(properties, each)
        summary = run_pipeline(spark, config, on_batch=on_batch if quick else None)
    # The last of the story's runs has three transactions; the publications tell of all.
    if not tells_story:
        write_summary(summary, OutputFormat.TABLE, config.warnings)
    spark = session_for_few_rows(spark)
    lake = _open(spark, config)
    _show_tables(lake)
    if not quick:
        _show_wrong_orders(spark, config, lake)
        _show_transaction(lake)
    _title("the latest publications (lakeingest history):")
    write_rows(latest(lake.history(), SHOWN_PUBLICATIONS), OutputFormat.TABLE, None)
    message(f"read it in Python: lakeingest.open(lakeingest.session(), '{path}').snapshot()")
    message(f"run it again to see that nothing changes; start over: rm -r {path}")


def _run_and_kill(properties: str, settings: list[str], path: Path) -> None:
    """Start ``lakeingest run`` in a process of its own, and kill it between two publications."""
    overrides = [argument for setting in settings for argument in ("--set", setting)]
    command = [sys.executable, "-m", "lakeingest.cli.main", "run", properties, *overrides]
    log = path / "_lakeingest" / "ledger" / "_delta_log"
    with progress("a run that will be killed"):
        run = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            while run.poll() is None and len([*log.glob("*.json")]) < _KILLED_AFTER:
                time.sleep(0.1)
        finally:
            was_running = run.poll() is None
            # The JVM, too: it is in the process group.
            if was_running:
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()
    how = "killed a run in the middle (kill -9)" if was_running else "a run ended before its kill"
    message(f"{how}; the next one goes on from what is published")


def _open(spark: SparkSession, config: PipelineConfig) -> Lake:
    from lakeingest.reader import open_lake

    return open_lake(spark, config.target.path)


def _published(spark: SparkSession, config: PipelineConfig) -> int:
    """Return the number of the newest publication; 0: there is none."""
    from lakeingest.apply.factory import open_ledger

    return open_ledger(spark, config, "").head().batch


def _show_tables(lake: Lake) -> None:
    snapshot = lake.snapshot()
    for table in SHOWN_TABLES:
        if table in snapshot.tables():
            rows = published_rows(lake, snapshot, table, metadata=False)
            _title(f"{table}, {rows.count():,} rows, the first {SHOWN_ROWS}:")
            write_rows(rows.limit(SHOWN_ROWS), OutputFormat.TABLE, None)


def _show_wrong_orders(spark: SparkSession, config: PipelineConfig, lake: Lake) -> None:
    """Show how often readers see an order whose total is not the sum of its lines."""
    from lakeingest.demo.story import by_publication, by_table, records_of

    records = records_of(spark, config)
    per_table = by_table(records, config.source.topic_prefix, _PER_TABLE)
    ways = {
        f"a job per table, {_PER_TABLE} records at a time": per_table,
        "lakeingest's publications": by_publication(lake),
    }
    _title("orders whose total is not the sum of their lines, as readers see them:")
    columns = ["written by", "states", "wrong states", "at worst"]
    write_table(columns, [_wrong(way, counts) for way, counts in ways.items()], None)


def _wrong(way: str, counts: DataFrame) -> list[str | None]:
    from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know

    worst = F.max_by(F.struct("wrong", "orders"), "wrong")
    row = counts.agg(F.count("*"), F.count_if(F.col("wrong") > 0), worst).collect()[0]
    at_worst = f"{row[2]['wrong']} of {row[2]['orders']}" if row[1] else "none"
    return [way, str(row[0]), str(row[1]), at_worst]


def _show_transaction(lake: Lake) -> None:
    """Show what the newest transaction with an order changed, row by row."""
    from pyspark.sql import functions as F  # noqa: N812

    from lakeingest.demo.story import ORDERS

    has_order = F.map_contains_key("events_by_table", ORDERS)
    newest = lake.transactions().where(has_order).first()
    if newest is None:
        return
    id_ = newest["transaction_id"]
    diff = lake.diff(id_)
    _title(f"what source transaction {id_} changed, lake.diff('{id_}'):")
    rows: list[list[str | None]] = []
    for table in diff.tables():
        for op, before, after in text_rows(diff.table(table)):
            rows.append([table, op, before, after])
    write_table(["table", "op", "before", "after"], rows, None)


def _title(text: str) -> None:
    sys.stdout.write(f"\n{text}\n")
