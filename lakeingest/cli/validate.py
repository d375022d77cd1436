"""``lakeingest validate``: check everything possible before a run, without changing anything."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lakeingest.cli.options import ConfigArgument, OutputOption, SetOption
from lakeingest.cli.output import OutputFormat, message, warn, write_csv, write_lines
from lakeingest.cli.pipeline import load_pipeline, start_spark
from lakeingest.cli.progress import progress


def validate(
    config: ConfigArgument,
    settings: SetOption = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Check the file alone: no source, no target.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Check the configuration, the source and the target; changes nothing."""
    pipeline = load_pipeline(config, settings)
    if offline:
        message(f"the file of {pipeline.name} has no errors; source and lake were not looked at")
        return
    with progress("starting Spark"):
        from lakeingest.apply.inspect.validate import validate_pipeline

        kafka = pipeline.source.kind == "kafka"
        spark = start_spark(f"lakeingest validate {pipeline.name}", pipeline, kafka=kafka)
        findings = validate_pipeline(spark, pipeline)
    # ``load_pipeline`` has already written the configuration's own warnings to stderr.
    warn(warning for warning in findings.warnings if warning not in pipeline.warnings)
    if output is OutputFormat.JSON:
        facts = {"findings": findings.seen, "warnings": findings.warnings}
        write_lines([json.dumps(facts, ensure_ascii=False)])
    elif output is OutputFormat.CSV:
        write_csv(("finding",), ((finding,) for finding in findings.seen))
    else:
        write_lines(findings.seen)
    message(f"{pipeline.name} can run{_but(len(findings.warnings))}")


def _but(warnings: int) -> str:
    if not warnings:
        return ""
    return f", but there {'is a warning' if warnings == 1 else f'are {warnings} warnings'}"
