"""``lakeingest maintain``: keep the lake's tables healthy; no snapshot that is kept changes."""

from __future__ import annotations

from lakeingest.cli.options import ConfigArgument, OutputOption, SetOption
from lakeingest.cli.output import OutputFormat, message, write_facts
from lakeingest.cli.pipeline import load_pipeline, start_spark
from lakeingest.cli.progress import progress


def maintain(
    config: ConfigArgument,
    settings: SetOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Join small files and remove what no kept snapshot needs; safe beside a run.

    lakeingest.ledger.retention.hours says which snapshots are kept.
    """
    pipeline = load_pipeline(config, settings)
    with progress("starting Spark"):
        from lakeingest.apply.maintenance.maintain import maintain_lake

        spark = start_spark(f"lakeingest maintain {pipeline.name}", pipeline)
    with progress("maintaining"):
        maintenance = maintain_lake(spark, pipeline)
    if not maintenance.batch:
        message("nothing is published yet, so there is nothing to maintain")
    if maintenance.waiting:
        message(
            "a run is at work, or was killed: these tables are read as they were until a batch "
            f"changes them, or until maintenance finds the lake idle: "
            f"{', '.join(maintenance.waiting)}"
        )
    facts = {
        "tables": dict(maintenance.tables),
        "batch": maintenance.batch,
        "kept_from": maintenance.kept_from,
    }
    write_facts(facts, output)
