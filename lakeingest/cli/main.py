"""The entry point: commands, signals, and from an exception to an exit code.

Exit codes: 0 done, 1 internal error, 2 usage, 65 data, 69 something unavailable, 75 try again,
77 permission, 78 configuration, 130 stopped. SIGTERM, which is how schedulers stop a job, takes the
way of Ctrl-C; the commit protocol makes any moment a good one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, NoReturn

import typer

from lakeingest.cli.config_reference import config_reference
from lakeingest.cli.demo import demo
from lakeingest.cli.failure import report
from lakeingest.cli.history import history
from lakeingest.cli.hoodie_streamer import (
    AS_TYPED,
    hoodie_multi_table_streamer,
    hoodie_streamer,
)
from lakeingest.cli.output import message, write_lines
from lakeingest.cli.pipeline import stop_spark
from lakeingest.cli.retire import retire
from lakeingest.cli.run import run
from lakeingest.cli.show import show
from lakeingest.cli.status import status
from lakeingest.cli.stopping import (
    STOPPED_EXIT_CODE,
    leave_soon_after_a_signal,
    say_stopped,
    sigterm_like_interrupt,
)
from lakeingest.cli.types import types
from lakeingest.cli.validate import validate

_DEBUG = "--debug"

app = typer.Typer(
    name="lakeingest",
    no_args_is_help=True,
    add_completion=False,
    # Its tracebacks show local variables, which hold row values and secrets.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (run, status, history, show, validate, retire, demo, types, config_reference):
    app.command()(_command)
for _streamer in (hoodie_streamer, hoodie_multi_table_streamer):
    app.command(context_settings=AS_TYPED, add_help_option=False)(_streamer)


def _version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        installed = version("lakeingest")
    except PackageNotFoundError:
        installed = "(not installed, run from its sources)"
    write_lines([f"lakeingest {installed}"])
    raise typer.Exit


@app.callback()
def lakeingest(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option(_DEBUG, help="Show the traceback of an error. Works in any place.")
    ] = False,
) -> None:
    """Debezium change events into Delta or Hudi tables, whole source transactions at a time.

    Data goes to stdout, messages to stderr.
    """
    del show_version, debug  # The first acts in its callback, the second in `execute`.


def execute(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code of the process; nothing is raised."""
    debug = _DEBUG in arguments
    # Taken out here, so that it may stand before or after the command, and is known even when the
    # arguments cannot be parsed.
    rest = [argument for argument in arguments if argument != _DEBUG]
    try:
        with sigterm_like_interrupt():
            app(args=rest, prog_name="lakeingest")
    except SystemExit as end:
        # Typer's own ends: help, wrong usage, a closed pipe, Ctrl-C.
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if code == STOPPED_EXIT_CODE:
            return say_stopped()
        return code
    except BaseException as error:  # noqa: BLE001 - the outermost frame; what comes is reported
        return report(error, debug=debug)
    return 0


def main() -> NoReturn:
    """Run the command line and exit the process with its code."""
    leave_soon_after_a_signal()
    code = execute(sys.argv[1:])
    try:
        stop_spark()
    except Exception as error:  # noqa: BLE001 - a JVM that is gone must not hide how the run ended
        message(f"warning: Spark did not stop cleanly ({type(error).__name__})")
    sys.exit(code)


if __name__ == "__main__":
    main()
