"""Turn the command line of Hudi's streamer into settings.

The precedence is Hudi's: ``--hoodie-conf`` overrides the file, and the options override both. Each
option replaces the setting for which it stands, but keeps the option's own name. So a later message
about it uses the user's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakeingest.config import keys
from lakeingest.config.file.properties import Entry, Properties, from_mapping, read_properties
from lakeingest.config.load import load_properties
from lakeingest.config.model import PipelineConfig
from lakeingest.config.streamer.checkpoint import Checkpoint
from lakeingest.config.streamer.hudi_lines import hudi_lines
from lakeingest.config.streamer.options import (
    BASE_PATH,
    CHECKPOINT,
    TABLE,
    TABLE_TYPE,
    Option,
)
from lakeingest.errors import ConfigError, UsageError

FLAG = "true"
"""Value of an option that has none."""

_ADOPT = ".adopt"
# The prefix of a table's key, without the dot before the table's name.
_TABLE_PREFIX = keys.TABLE.removesuffix(".")


@dataclass(frozen=True)
class CommandLine:
    """The user's command line.

    Attributes:
        props: The file of ``--props``, if any.
        conf: The texts of ``--hoodie-conf``, in order.
        options: Value by option, without those two; ``FLAG`` for an option without a value.
    """

    props: str | None = None
    conf: Sequence[str] = ()
    options: Mapping[Option, str] = field(default_factory=dict)


def streamer_config(typed: CommandLine) -> PipelineConfig:
    """Return the pipeline of one command line of ``HoodieStreamer``.

    Raises:
        UsageError: An option is missing or malformed.
        ConfigError: lakeingest cannot follow a setting or an option; the message names all of them.
    """
    refuse_missing(typed, (BASE_PATH, TABLE, TABLE_TYPE))
    settings = from_mapping({}) if typed.props is None else read_properties(typed.props, hudi_lines)
    return load_properties(replace(with_options(settings, typed), origin="the command line"))


def refuse_missing(typed: CommandLine, required: Iterable[Option]) -> None:
    """Check that all required options are present.

    Raises:
        UsageError: Options are missing; the message names all of them.
    """
    missing = [option.name for option in required if option not in typed.options]
    if missing:
        problem = f"missing: {', '.join(missing)}"
        raise UsageError(problem)


def with_options(settings: Properties, typed: CommandLine) -> Properties:
    """Override settings by the command line; tables are Hudi's unless a setting says otherwise."""
    settings = settings.overridden(typed.conf, "--hoodie-conf")
    entries = dict(settings.entries)
    entries.setdefault(keys.TARGET_FORMAT, Entry(keys.TARGET_FORMAT, "hudi", "the command"))
    for option, text in typed.options.items():
        if option.key is not None:
            for name in option.key.names:
                entries.pop(name, None)
            entries[option.key.names[0]] = Entry(option.name, text, "the command line")
    problems = _refusals(typed.options)
    if CHECKPOINT in typed.options:
        problem = _set_checkpoint(typed.options[CHECKPOINT], entries)
        problems.extend([problem] if problem else [])
    return replace(
        settings,
        entries=entries,
        warnings=(*settings.warnings, *_idle_warnings(typed.options)),
        problems=(*settings.problems, *problems),
    )


def _idle_warnings(options: Mapping[Option, str]) -> list[str]:
    """Return warnings about options without effect, one for each reason."""
    by_reason: dict[str, list[str]] = {}
    for option, text in options.items():
        if option.is_idle and text.rpartition(".")[2] != option.usual:
            by_reason.setdefault(option.help, []).append(option.name)
    return [
        f"without effect here: {', '.join(names)} ({reason})" for reason, names in by_reason.items()
    ]


def _refusals(options: Mapping[Option, str]) -> list[str]:
    return [
        f"{option.name}: {option.help}"
        for option, text in options.items()
        if option.is_refused and text.upper() != option.usual
    ]


def _set_checkpoint(text: str, entries: dict[str, Entry]) -> str | None:
    """Set the checkpoint of the adopted table; return the problem if that fails."""
    try:
        topic = Checkpoint.parse(text).topic
    except ConfigError as error:
        return f"{CHECKPOINT.name}: {error}"
    adopted = [
        name.removesuffix(_ADOPT)
        for name in entries
        if name.startswith(keys.TABLE) and name.endswith(_ADOPT)
    ]
    if len(adopted) > 1:  # Among several adopted tables, the checkpoint's topic names the one.
        adopted = [
            name for name in adopted if f".{topic}".endswith(name.removeprefix(_TABLE_PREFIX))
        ]
    if len(adopted) == 1:
        name = f"{adopted[0]}.checkpoint"
        entries[name] = Entry(CHECKPOINT.name, text, "the command line")
        return None
    table = ".".join(topic.rsplit(".", 2)[-2:])
    return (
        f"{CHECKPOINT.name} goes with a table that is there already and is adopted: add "
        f"--hoodie-conf {keys.TABLE}{table}{_ADOPT}=hudi-streamer. A new one is read from the "
        "topic's beginning; remove the option for that"
    )
