"""The entry point: register the commands, handle signals, turn an exception into an exit code.

Exit codes: 0 success, 1 internal error, 2 usage, 65 data, 69 something unavailable, 75 try again,
77 permission, 78 configuration, 130 stopped. Schedulers stop a job with SIGTERM; it acts like
Ctrl-C. The commit protocol makes a stop safe at any moment.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, NoReturn

import typer

from lakeingest.cli.config_reference import config_reference
from lakeingest.cli.demo import demo
from lakeingest.cli.explain import explain
from lakeingest.cli.failure import report
from lakeingest.cli.guide import guide
from lakeingest.cli.history import history
from lakeingest.cli.hoodie_streamer import (
    AS_TYPED,
    hoodie_multi_table_streamer,
    hoodie_streamer,
)
from lakeingest.cli.init import init
from lakeingest.cli.maintain import maintain
from lakeingest.cli.output import LogToMessages, message, write_lines
from lakeingest.cli.pipeline import stop_spark
from lakeingest.cli.reload import reload
from lakeingest.cli.retire import retire
from lakeingest.cli.run import run
from lakeingest.cli.show import show
from lakeingest.cli.status import status
from lakeingest.cli.stopping import (
    STOPPED_EXIT_CODE,
    leave_soon_after_a_signal,
    say_stopped,
    stop_on_signals,
)
from lakeingest.cli.types import types
from lakeingest.cli.validate import validate

_DEBUG = "--debug"

app = typer.Typer(
    name="lakeingest",
    no_args_is_help=True,
    add_completion=False,
    # Typer's own tracebacks show local variables, which hold row values and secrets.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    init,
    run,
    status,
    explain,
    history,
    show,
    validate,
    retire,
    reload,
    maintain,
    demo,
    types,
    config_reference,
    guide,
):
    app.command()(_command)
for _streamer in (hoodie_streamer, hoodie_multi_table_streamer):
    app.command(context_settings=AS_TYPED, add_help_option=False)(_streamer)


def _version(is_set: bool) -> None:
    if not is_set:
        return
    try:
        number = version("lakeingest")
    except PackageNotFoundError:
        number = "(not installed, run from its sources)"
    write_lines([f"lakeingest {number}"])
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
    """Run one command and return the exit code of the process; raise nothing."""
    debug = _DEBUG in arguments
    # Remove --debug here: so it may stand before or after the command, and works even if Typer
    # cannot parse the arguments.
    rest = [argument for argument in arguments if argument != _DEBUG]
    try:
        with stop_on_signals():
            app(args=rest, prog_name="lakeingest")
    except SystemExit as end:
        # Typer itself exits after help, wrong usage, a closed pipe or Ctrl-C.
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if code == STOPPED_EXIT_CODE:
            return say_stopped()
        return code
    except BaseException as error:  # noqa: BLE001 - the outermost frame reports every error
        return report(error, debug=debug)
    return 0


def main() -> NoReturn:
    """Run the command line and exit the process with its code."""
    leave_soon_after_a_signal()
    logging.getLogger("lakeingest").addHandler(LogToMessages())
    code = execute(sys.argv[1:])
    if code == STOPPED_EXIT_CODE:
        # The interrupted thread may have left an answer of the JVM unread, so it calls the JVM no
        # more; the JVM ends with this process.
        sys.exit(code)
    try:
        stop_spark()
    except Exception as error:  # noqa: BLE001 - a dead JVM must not hide the run's result
        message(f"warning: Spark did not stop cleanly ({type(error).__name__})")
    sys.exit(code)


if __name__ == "__main__":
    main()
