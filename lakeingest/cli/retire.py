"""``lakeingest retire``: take a table out of the pipeline; older snapshots still show it."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeingest.cli.options import ConfigArgument, OutputOption, SetOption
from lakeingest.cli.output import OutputFormat, message, write_facts
from lakeingest.cli.pipeline import load_pipeline, start_spark
from lakeingest.cli.progress import progress


def retire(
    config: ConfigArgument,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="The table, as the source names it: public.orders.",
            show_default=False,
        ),
    ],
    settings: SetOption = None,
    undo: Annotated[
        bool,
        typer.Option(
            "--undo",
            help="Take the table up again, from where it was left. Only while it is the same "
            "table at the source: rows that went with a DROP would stay.",
        ),
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Take a table out of the newest snapshot and stop reading its topic.

    Its files stay, and older snapshots show it.
    """
    pipeline = load_pipeline(config, settings)
    with progress("starting Spark"):
        from lakeingest.apply.choice.retire import retire_table

        # To take a table up again, what waits in its topic is read.
        kafka = undo and pipeline.source.kind == "kafka"
        spark = start_spark(f"lakeingest retire {pipeline.name}", pipeline, kafka=kafka)
        retirement = retire_table(spark, pipeline, table, undo=undo)
    if retirement.waiting is None:
        message(
            f"{table} is retired; keep its folder for as long as older snapshots are read, and its "
            "topic for as long as it may be taken up again (--undo)"
        )
    elif retirement.waiting:
        message(f"the next batch shows {table} again, once {retirement.waiting} records are read")
    else:
        message(f"{table} is shown again as it was: its topic had nothing since")
    write_facts({"table": retirement.table, "batch": retirement.batch}, output)
