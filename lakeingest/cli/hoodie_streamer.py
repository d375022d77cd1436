"""``lakeingest hoodie-streamer`` and ``hoodie-multi-table-streamer``: Hudi's streamer commands.

A user takes the arguments after ``spark-submit … HoodieStreamer`` (``… HoodieMultiTableStreamer``)
and passes them to the command unchanged. There are two commands for two classes, because each
requires options that the other does not know. A user who migrates replaces the class by the name of
the command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from lakeingest.cli.output import warn
from lakeingest.cli.run import Pace, run_and_report
from lakeingest.errors import UsageError

if TYPE_CHECKING:
    from lakeingest.cli.output import OutputFormat
    from lakeingest.config import PipelineConfig
    from lakeingest.config.streamer.command_line import CommandLine
    from lakeingest.config.streamer.options import Option

AS_TYPED = {
    # ``streamer_arguments`` parses all arguments, in the user's order.
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}

_ABOUT = (
    "Runs one pipeline by the command line of Hudi's streamer (HoodieStreamer, "
    "HoodieDeltaStreamer): Debezium's events of one topic into one Hudi table, whole source "
    "transactions at a time. Put behind it what stood behind the class; --hoodie-conf takes "
    "lakeingest's keys, too. The connector needs provide.transaction.metadata=true."
)


def hoodie_streamer(context: typer.Context) -> None:
    """Run one table's pipeline by the command line of Hudi's streamer (see its --help)."""
    from lakeingest.cli.streamer_arguments import read_arguments
    from lakeingest.config.streamer.command_line import streamer_config
    from lakeingest.config.streamer.options import OPTIONS

    typed, output = read_arguments("hoodie-streamer", _ABOUT, OPTIONS, context.args)
    run_as_typed(streamer_config(typed), typed, output)


_ABOUT_MANY = (
    "Runs many tables as one pipeline by the command line and the files of Hudi's multi-table "
    "streamer (HoodieMultiTableStreamer, HoodieMultiTableDeltaStreamer): all topics at once, the "
    "tables side by side, one ledger below --base-path-prefix, so that a reader sees all of them "
    "at the same commit of the source. The connector needs provide.transaction.metadata=true."
)


def hoodie_multi_table_streamer(context: typer.Context) -> None:
    """Run many tables as one pipeline by the command line of Hudi's multi-table streamer."""
    from lakeingest.cli.streamer_arguments import read_arguments
    from lakeingest.config.streamer.tables import MULTI_TABLE_OPTIONS, multi_table_config

    typed, output = read_arguments(
        "hoodie-multi-table-streamer", _ABOUT_MANY, MULTI_TABLE_OPTIONS, context.args
    )
    run_as_typed(multi_table_config(typed), typed, output)


def run_as_typed(config: PipelineConfig, typed: CommandLine, output: OutputFormat) -> None:
    """Run a pipeline with the options that are not settings of the pipeline itself.

    Args:
        config: The pipeline.
        typed: The command line; it gives the interval, the Spark master and the session's name.
        output: How to write the summary.

    Raises:
        UsageError: The interval is not a whole number.
    """
    from lakeingest.config.streamer.options import APP_NAME, CONTINUOUS, INTERVAL, MASTER

    warn(config.warnings)
    options = typed.options
    run_and_report(
        config,
        output,
        Pace(CONTINUOUS in options, _seconds(INTERVAL, options)),
        master=options.get(MASTER),
        app_name=options.get(APP_NAME),
    )


def _seconds(option: Option, options: Mapping[Option, str]) -> float:
    text = options.get(option, "0")
    if not text.isdecimal():
        problem = f"{option.name} is not a whole number of seconds"
        raise UsageError(problem)
    return float(text)
