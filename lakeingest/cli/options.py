"""Define the arguments that several commands share, so that all commands document them alike."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeingest.cli.output import OutputFormat

ConfigArgument = Annotated[
    str,
    typer.Argument(
        metavar="CONFIG",
        help="The pipeline's .properties file, or a folder with pipeline.properties in it.",
        show_default=False,
    ),
]

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Replace a setting of the file. May be given several times.",
        show_default=False,
    ),
]

OutputOption = Annotated[
    OutputFormat,
    typer.Option("--output", "-o", help="How data is written to stdout."),
]

LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=0,
        help="Rows to write at most; 0 for all. Default: 50 in a table, all in JSON and CSV.",
        show_default=False,
    ),
]

ROWS_IN_A_TABLE = 50
"""Default limit of rows in a table: a screen or two."""


def row_limit(limit: int | None, output: OutputFormat) -> int | None:
    """Return how many rows to write; ``None``: all."""
    if limit is None:
        return ROWS_IN_A_TABLE if output is OutputFormat.TABLE else None
    return limit or None
