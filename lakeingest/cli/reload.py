"""``lakeingest reload``: load tables anew from their topics; older snapshots stay as they are."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeingest.cli.options import ConfigArgument, OutputOption, SetOption
from lakeingest.cli.output import OutputFormat, message, write_facts
from lakeingest.cli.pipeline import load_pipeline, start_spark
from lakeingest.cli.progress import progress


def reload(
    config: ConfigArgument,
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE...",
            help="The tables, as the source names them: public.orders.",
            show_default=False,
        ),
    ],
    settings: SetOption = None,
    undo: Annotated[
        bool,
        typer.Option(
            "--undo", help="Go on with the earlier load, while the new one is not published yet."
        ),
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Load tables anew with the next run: columns, key, partitions and format as in its file.

    Readers see the earlier load until a publication has every row again; older snapshots show it
    for good. The topics must still begin with their first records.
    """
    pipeline = load_pipeline(config, settings)
    with progress("starting Spark"):
        from lakeingest.apply.choice.reload import reload_tables

        kafka = pipeline.source.kind == "kafka"
        spark = start_spark(f"lakeingest reload {pipeline.name}", pipeline, kafka=kafka)
        reloading = reload_tables(spark, pipeline, tables, undo=undo)
    names = ", ".join(reloading.tables)
    if reloading.records is None:
        message(f"{names}: the next run goes on with what is loaded")
    else:
        message(
            f"{names}: the next run (lakeingest run) reads {reloading.records} records and "
            "publishes the new load in one publication with the other tables; until then nothing "
            "changes for readers (--undo takes this back)"
        )
    write_facts({"tables": list(reloading.tables), "batch": reloading.batch}, output)
