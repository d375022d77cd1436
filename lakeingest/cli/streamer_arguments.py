"""The arguments of Hudi's streamer, read by the table of its options.

Read here and not by Typer: fifty options, of which most have no meaning here, would be a function
of fifty parameters, and the table has to be known to the configuration anyway.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import NoReturn

from lakeingest.cli.output import OutputFormat
from lakeingest.config.keys import nearest
from lakeingest.config.streamer import FLAG, CommandLine
from lakeingest.config.streamer_options import CONF, PROPS, Option
from lakeingest.errors import UsageError

_SPARKS = frozenset(
    f"--{name}"
    for name in (
        "archives",
        "class",
        "conf",
        "deploy-mode",
        "driver-class-path",
        "driver-cores",
        "driver-java-options",
        "driver-library-path",
        "driver-memory",
        "exclude-packages",
        "executor-cores",
        "executor-memory",
        "files",
        "jars",
        "keytab",
        "master",
        "name",
        "num-executors",
        "packages",
        "principal",
        "properties-file",
        "proxy-user",
        "py-files",
        "queue",
        "repositories",
        "total-executor-cores",
    )
)
"""Options of ``spark-submit``, which stand before the class's own in a command that moves here."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise instead of ending the process; argparse names the option and the value's form."""
        raise UsageError(message)


def read_arguments(
    command: str, about: str, options: Iterable[Option], arguments: Sequence[str]
) -> tuple[CommandLine, OutputFormat]:
    """Read the arguments of a command.

    Args:
        command: Its name, for the help.
        about: What it does, for the help.
        options: What it knows.
        arguments: What was typed.

    Returns:
        What was typed, and how the summary is written.

    Raises:
        UsageError: An option is unknown, has no value, or there is something that is no option.
        SystemExit: The help was asked for, and is written.
    """
    known = tuple(options)
    parser = _parser(command, about, known)
    found, rest = parser.parse_known_args(list(arguments))
    if rest:
        raise UsageError(_about_unknown(rest[0], known))
    given = {option: getattr(found, _place(option)) for option in known}
    typed = CommandLine(
        given.pop(PROPS), tuple(given.pop(CONF) or ()), {o: v for o, v in given.items() if v}
    )
    return typed, OutputFormat(found.output)


def _parser(command: str, about: str, options: Iterable[Option]) -> _Parser:
    parser = _Parser(
        prog=f"lakeingest {command}",
        usage="%(prog)s [OPTIONS]",
        description=about,
        allow_abbrev=False,
        add_help=False,
    )
    taken = parser.add_argument_group("what is read")
    refused = parser.add_argument_group("what is refused, with what to do instead")
    idle = parser.add_argument_group("what has no effect here, and why")
    for option in options:
        group = idle if option.idle else refused if option.refused else taken
        said = option.said.replace("%", "%%")
        if option.value is None:
            group.add_argument(
                *option.names, dest=_place(option), action="store_const", const=FLAG, help=said
            )
        else:
            action = "append" if option is CONF else "store"
            group.add_argument(
                *option.names, dest=_place(option), action=action, metavar=option.value, help=said
            )
    ours = parser.add_argument_group("of lakeingest")
    ours.add_argument(
        "--output",
        "-o",
        choices=[form.value for form in OutputFormat],
        default=OutputFormat.TABLE.value,
        help="How the summary is written to stdout.",
    )
    ours.add_argument("--help", "-h", action="help", help="Show this and end.")
    return parser


def _place(option: Option) -> str:
    return option.name.lstrip("-").replace("-", "_")


def _about_unknown(argument: str, options: Iterable[Option]) -> str:
    name = argument.partition("=")[0]
    if not name.startswith("-"):
        # Not repeated: it may be the value of a secret whose option was forgotten.
        return (
            "there is an argument that belongs to no option (of the old command only what stood "
            "behind the jar is put here, not the jar)"
        )
    if name in _SPARKS:
        # Before the nearest name: --hoodie-conf is near to --conf, and not what it is.
        return (
            f"{name} is spark-submit's: of the old command only what stood behind the jar is put "
            f"here; spark-submit takes {name} before the script that starts lakeingest"
        )
    near = nearest(name, (known for option in options for known in option.names))
    return f"no such option: {name}" + (f"; did you mean {near}?" if near else "")
