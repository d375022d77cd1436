"""``lakeingest explain``: say where the pipeline stands and why."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from lakeingest.cli.options import ConfigArgument, OutputOption, SetOption
from lakeingest.cli.output import OutputFormat, message, write_facts
from lakeingest.cli.pipeline import load_pipeline, start_spark
from lakeingest.cli.progress import progress


def explain(
    config: ConfigArgument,
    settings: SetOption = None,
    output: OutputOption = OutputFormat.TABLE,
    watch: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="SECONDS", help="Say it again after so many seconds, until stopped."
        ),
    ] = None,
) -> None:
    """Say what waits, for what, since when, and what the next run does; changes nothing."""
    pipeline = load_pipeline(config, settings)
    with progress("starting Spark"):
        from lakeingest.apply.inspect.explain import explain_pipeline

        kafka = pipeline.source.kind == "kafka"
        spark = start_spark(f"lakeingest explain {pipeline.name}", pipeline, kafka=kafka)
    while True:
        with progress("reading what waits"):
            explanation = explain_pipeline(spark, pipeline)
        facts = {"state": explanation.state.value, **explanation.facts}
        if explanation.exit_code:
            facts["stops_with"] = explanation.exit_code
        if output is OutputFormat.JSON:
            facts["reasons"] = explanation.reasons
        else:
            for reason in explanation.reasons:
                message(reason)
        write_facts(facts, output)
        if watch is None:
            return
        time.sleep(watch)
