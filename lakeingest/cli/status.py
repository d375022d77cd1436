"""``lakeingest status``: show the lake's progress, what is pending, and whether there is more."""

from __future__ import annotations

from lakeingest.cli.options import ConfigArgument, OutputOption, SetOption
from lakeingest.cli.output import OutputFormat, write_facts
from lakeingest.cli.pipeline import load_pipeline, start_spark
from lakeingest.cli.progress import progress


def status(
    config: ConfigArgument,
    settings: SetOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show how far the lake is and what waits; changes nothing."""
    pipeline = load_pipeline(config, settings)
    with progress("starting Spark"):
        from lakeingest.apply.inspect.status import pipeline_status

        kafka = pipeline.source.kind == "kafka"
        spark = start_spark(f"lakeingest status {pipeline.name}", pipeline, kafka=kafka)
        facts = pipeline_status(spark, pipeline)
    write_facts(facts, output)
