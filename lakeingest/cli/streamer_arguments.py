"""Parse the arguments of Hudi's streamer by the table of its options.

Rejected: to let Typer parse them. There are fifty options, most of them without effect in
lakeingest; Typer would need a function with fifty parameters. The configuration needs the table of
options anyway.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from lakeingest.cli.output import OutputFormat
from lakeingest.config.spelling import nearest
from lakeingest.config.streamer.command_line import FLAG, CommandLine
from lakeingest.config.streamer.options import CONF, PROPS, Option
from lakeingest.errors import UsageError

_SPARK_SUBMIT_OPTIONS = frozenset(
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
"""Options of ``spark-submit``. In a migrated command they stand before the options of the class."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Raise ``UsageError`` instead of ending the process.

        argparse's message names the option and the form of its value.
        """
        raise UsageError(message)


def read_arguments(
    command: str, about: str, options: Iterable[Option], arguments: Sequence[str]
) -> tuple[CommandLine, OutputFormat]:
    """Read the arguments of a command.

    Args:
        command: The command's name, for the help.
        about: What the command does, for the help.
        options: The options of the command.
        arguments: The user's arguments.

    Returns:
        The parsed command line, and the format of the summary.

    Raises:
        UsageError: An option is unknown or has no value, or an argument belongs to no option.
        SystemExit: The arguments ask for the help; it has been written.
    """
    all_options = tuple(options)
    parser = _parser(command, about, all_options)
    namespace, rest = parser.parse_known_args(list(arguments))
    if rest:
        raise UsageError(_about_unknown(rest[0], all_options))
    values = {option: getattr(namespace, _attribute(option)) for option in all_options}
    command_line = CommandLine(
        values.pop(PROPS), tuple(values.pop(CONF) or ()), {o: v for o, v in values.items() if v}
    )
    return command_line, OutputFormat(namespace.output)


def _parser(command: str, about: str, options: Iterable[Option]) -> _Parser:
    parser = _Parser(
        prog=f"lakeingest {command}",
        usage="%(prog)s [OPTIONS]",
        description=about,
        allow_abbrev=False,
        add_help=False,
    )
    effective = parser.add_argument_group("what is read")
    refused = parser.add_argument_group("what is refused, with what to do instead")
    idle = parser.add_argument_group("what has no effect here, and why")
    for option in options:
        group = idle if option.is_idle else refused if option.is_refused else effective
        kind: dict[str, Any] = {"action": "store_const", "const": FLAG}
        if option.value is not None:
            kind = {"action": "append" if option is CONF else "store", "metavar": option.value}
        group.add_argument(
            *option.names.split(),
            dest=_attribute(option),
            help=option.help.replace("%", "%%"),
            **kind,
        )
    own_options = parser.add_argument_group("of lakeingest")
    own_options.add_argument(
        "--output",
        "-o",
        choices=[form.value for form in OutputFormat],
        default=OutputFormat.TABLE.value,
        help="How the summary is written to stdout.",
    )
    own_options.add_argument("--help", "-h", action="help", help="Show this and end.")
    return parser


def _attribute(option: Option) -> str:
    return option.name.lstrip("-").replace("-", "_")


def _about_unknown(argument: str, options: Iterable[Option]) -> str:
    name = argument.partition("=")[0]
    if not name.startswith("-"):
        # Do not quote the argument: it may be a secret whose option the user forgot.
        return (
            "an argument belongs to no option (of the old command pass only what followed the jar, "
            "not the jar itself)"
        )
    if name in _SPARK_SUBMIT_OPTIONS:
        # Check this before the nearest name: --hoodie-conf resembles --conf, but is not meant.
        return (
            f"{name} is an option of spark-submit: of the old command pass only what followed the "
            f"jar; spark-submit takes {name} before the script that starts lakeingest"
        )
    near = nearest(name, (candidate for option in options for candidate in option.names.split()))
    return f"no such option: {name}" + (f"; did you mean {near}?" if near else "")
