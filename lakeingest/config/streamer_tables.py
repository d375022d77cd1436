"""Many tables by the command line and the files of Hudi's multi-table streamer, as one pipeline.

There each table is a job of its own, one after another, and continuous ingestion never leaves the
first. Here they are one pipeline: all topics at once, the tables side by side, one ledger, so that
readers see all of them at the same commit. What a table's file says of its table stays that
table's: topic, key, folder. What it says of anything else must be the same in all files, for there
is one Kafka client, one registry and one writer; where files differ, both are named. Rejected: to
take the first file's word, or to start a pipeline per group of equal files; the one is a guess, the
other tears the transactions that touched tables of two groups.

It is a command of its own, as it is a class of its own there: the two require different options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from lakeingest.config import hudi_keys, keys
from lakeingest.config.hudi import one_collection
from lakeingest.config.load import load_properties
from lakeingest.config.model import PipelineConfig
from lakeingest.config.properties import Entry, Properties, read_properties
from lakeingest.config.property_lines import hudi_lines
from lakeingest.config.sorting import Sorted, sort_keys
from lakeingest.config.streamer import CommandLine, refuse_missing, with_options
from lakeingest.config.streamer_options import BASE_PATH, OPTIONS, PROPS, TABLE, TABLE_TYPE, Option
from lakeingest.errors import ConfigError, UsageError

PREFIX = Option(
    ("--base-path-prefix",), "PATH", "Folder of the lake; a table lies in <database>/<table>."
)
FOLDER = Option(("--config-folder",), "PATH", "Folder of the tables' files.")

MULTI_TABLE_OPTIONS: tuple[Option, ...] = (
    PROPS,
    PREFIX,
    FOLDER,
    *(option for option in OPTIONS if option not in (PROPS, BASE_PATH)),
)
"""Every option of ``HoodieMultiTableStreamer``."""

_TABLES = hudi_keys.both_names("ingestion.tablesToBeIngested")
_INGESTION = hudi_keys.both_names("ingestion.")

# The table's name and folder are settled here, for each.
_SETTLED_HERE = (*hudi_keys.TABLE_NAME.names, *hudi_keys.BASE_PATH.names)

# Positions are the ledger's, so that these mean nothing, and often differ from file to file.
_OF_NO_ACCOUNT = frozenset({"client.id", "group.id", "group.instance.id"})


@dataclass(frozen=True)
class _Table:
    """What one table's file says, together with the common one and the command line."""

    name: str
    file: str
    settings: Properties
    found: Sorted


@dataclass
class _Merged:
    """The pipeline's settings, and in which file each was found."""

    entries: dict[str, Entry] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    problems: dict[str, None] = field(default_factory=dict)


def multi_table_config(typed: CommandLine) -> PipelineConfig:
    """Return the one pipeline of a command line of ``HoodieMultiTableStreamer``.

    Raises:
        UsageError: An option is missing, or not of its form.
        ConfigError: A file or an option cannot be followed, or two files contradict each other.
    """
    refuse_missing(typed, (PREFIX, FOLDER, TABLE_TYPE))
    if typed.props is None:
        problem = f"missing: {PROPS.name}"
        raise UsageError(problem)
    common = read_properties(typed.props, hudi_lines)
    tables = [_table(name, common, typed) for name in _names(common, typed.props)]
    merged = _merged(tables)
    problems = [*_said(tables, lambda found: found.problems), *merged.problems]
    warnings = _said(tables, lambda found: found.warnings)
    return load_properties(
        Properties(typed.props, merged.entries, tuple(warnings), tuple(problems))
    )


def _names(common: Properties, origin: str) -> list[str]:
    text = next((common.value(key).text for key in _TABLES if key in common.entries), "")
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        message = f"{origin}: missing: {_TABLES[0]}, the tables as database.table, with commas"
        raise ConfigError(message)
    return names


def _table(name: str, common: Properties, typed: CommandLine) -> _Table:
    database, _, table = name.rpartition(".")
    database = database or "default"
    named = hudi_keys.both_names(f"ingestion.{database}.{table}.configFile")
    folder = typed.options[FOLDER].rstrip("/")
    file = next(
        (common.value(key).text for key in named if key in common.entries),
        f"{folder}/{database}_{table}_config.properties",
    )
    own = read_properties(file, hudi_lines)
    settings = replace(own, entries={**common.entries, **own.entries})
    settings = with_options(settings.overridden(typed.conf, "--hoodie-conf"), typed)
    return _settled(_Table(name, file, settings, Sorted()), f"{database}/{table}", typed)


def _settled(table: _Table, usual_path: str, typed: CommandLine) -> _Table:
    """Sort a table's settings, once name and folders are among them in our keys."""
    given = table.settings
    entries = {
        name: entry
        for name, entry in given.entries.items()
        if name not in _SETTLED_HERE and not name.startswith(_INGESTION)
    }
    prefix = typed.options[PREFIX].rstrip("/")
    lake = Entry(PREFIX.name, prefix, "the command line")
    entries.setdefault(keys.TARGET_PATH.name, lake)
    name = typed.options.get(TABLE) or prefix.rpartition("/")[2]
    entries.setdefault(keys.PIPELINE_NAME.name, Entry(PREFIX.name, name, "the command line"))
    settings = replace(given, entries=entries)
    found = sort_keys(settings)
    collection = one_collection(found.values)
    if collection is None:
        found.problems.append(
            f"{hudi_keys.TOPIC.names[0]} must be one topic, <prefix>.<schema or database>.<table>"
        )
        return replace(table, settings=settings, found=found)
    base_paths = [given.value(name) for name in hudi_keys.BASE_PATH.names if name in given.entries]
    path = keys.TABLE_KEYS["path"].name.replace(keys.COLLECTION, collection)
    if path not in found.values:
        text = base_paths[0].text if base_paths else usual_path
        entries[path] = Entry(base_paths[0].key if base_paths else table.file, text, table.file)
        found.values[path] = settings.value(path)
    return replace(table, settings=settings, found=found)


def _merged(tables: Iterable[_Table]) -> _Merged:
    result = _Merged()
    topics: list[str] = []
    known: list[tuple[str, frozenset[str]]] = []
    for table in tables:
        entries = _pipeline_wide(table)
        topic = entries.pop(keys.TOPICS.name, None)
        topics += [topic.text] if topic is not None else []
        for name, entry in entries.items():
            if result.entries.setdefault(name, entry).text != entry.text:
                result.problems[_differ(name, result.files[name], table.file)] = None
            result.files.setdefault(name, table.file)
        known.append((table.file, frozenset(filter(_is_for_all, entries))))
    first, *others = known
    for file, names in others:
        for name in sorted(names ^ first[1]):
            result.problems[_differ(name, first[0], file)] = None
    result.entries[keys.TOPICS.name] = Entry(keys.TOPICS.name, ",".join(topics), "the files")
    return result


def _pipeline_wide(table: _Table) -> dict[str, Entry]:
    """Return a table's settings as those of a pipeline."""
    found, raw = table.found, table.settings.entries
    entries = {
        name: Entry(value.key, value.text, table.file, value.referenced)
        for name, value in found.values.items()
    }
    names = (*found.registry_keys, *found.kafka_keys, *found.hudi_options, *found.meant)
    entries |= {name: raw[name] for name in names if name not in _OF_NO_ACCOUNT}
    return entries


def _is_for_all(name: str) -> bool:
    return not name.startswith(keys.TABLE)


def _differ(name: str, one: str, other: str) -> str:
    return (
        f"{name} differs between {one} and {other}: all tables are one pipeline, which has one; "
        "set it in the common file alone"
    )


def _said(tables: list[_Table], of: Callable[[Sorted], list[str]]) -> list[str]:
    """Return what is said of tables, once; with the files, unless it is said of all."""
    by_text: dict[str, list[str]] = {}
    for table in tables:
        for text in of(table.found):
            by_text.setdefault(text, []).append(table.file)
    return [
        text if len(files) == len(tables) else f"{', '.join(files)}: {text}"
        for text, files in by_text.items()
    ]
