"""``lakeingest run``: publish everything available in batches, then print a summary."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from lakeingest.cli.options import ConfigArgument, OutputOption, SetOption
from lakeingest.cli.output import OutputFormat, message, warn, write_facts
from lakeingest.cli.pipeline import load_pipeline, start_spark
from lakeingest.cli.progress import progress
from lakeingest.errors import UsageError

if TYPE_CHECKING:
    from lakeingest.apply.summary import RunSummary
    from lakeingest.config import PipelineConfig


def run(
    config: ConfigArgument,
    settings: SetOption = None,
    continuous: Annotated[
        bool, typer.Option("--continuous", help="Go on as new events arrive, until stopped.")
    ] = False,
    min_sync_interval_seconds: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds from one batch's start to the next, with --continuous."),
    ] = None,
    max_batches: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many batches.")
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Apply everything that is available, publish it, and print a summary."""
    if min_sync_interval_seconds is not None and not continuous:
        problem = "--min-sync-interval-seconds has an effect only with --continuous"
        raise UsageError(problem)
    pace = Pace(continuous, min_sync_interval_seconds or 0.0, max_batches)
    run_and_report(load_pipeline(config, settings), output, pace)


@dataclass(frozen=True)
class Pace:
    """How long a run goes on.

    Attributes:
        continuous: Whether to continue as new events arrive.
        min_sync_interval_seconds: Shortest time between the starts of two batches, with
            ``continuous``.
        max_batches: Stop after this number of batches; ``None``: no limit.
    """

    continuous: bool
    min_sync_interval_seconds: float
    max_batches: int | None = None


def run_and_report(
    pipeline: PipelineConfig,
    output: OutputFormat,
    pace: Pace,
    *,
    master: str | None = None,
    app_name: str | None = None,
) -> None:
    """Run a pipeline, show its progress, and print a summary.

    Args:
        pipeline: The pipeline; the caller has already written its warnings.
        output: How to write the summary.
        pace: How long to go on.
        master: Spark master of a new session; ``None``: this machine.
        app_name: Name of a new session; ``None``: the command and the pipeline's name.
    """
    with progress("starting Spark") as on_batch:
        from lakeingest.apply.run import run_pipeline

        spark = start_spark(
            app_name or f"lakeingest run {pipeline.name}",
            pipeline,
            kafka=pipeline.source.kind == "kafka",
            brief=False,
            master=master,
        )
        summary = run_pipeline(
            spark,
            pipeline,
            continuous=pace.continuous,
            min_sync_interval_seconds=pace.min_sync_interval_seconds,
            max_batches=pace.max_batches,
            on_batch=on_batch,
        )
    write_summary(summary, output, pipeline.warnings)


def write_summary(summary: RunSummary, output: OutputFormat, warned: Collection[str]) -> None:
    """Write the summary of a run: facts to stdout, warnings and "nothing new" to stderr.

    Args:
        summary: The result of the run.
        output: How to write the facts.
        warned: Warnings of the configuration, which loading it has already written.
    """
    warn(warning for warning in summary.warnings if warning not in warned)
    if summary.nothing_new:
        message("there is nothing new; nothing was changed")
    rate = summary.events / summary.seconds if summary.seconds > 0 else 0.0
    write_facts(
        {
            "batches": summary.batches,
            "transactions": summary.transactions,
            "events": summary.events,
            "rows": dict(summary.rows),
            "seconds": round(summary.seconds, 1),
            "events_per_second": round(rate),
            "jobs": summary.jobs,
            "frontier": summary.frontier,
            "pending_transactions": summary.pending_transactions,
        },
        output,
    )
