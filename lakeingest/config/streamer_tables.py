"""Configure many tables by the command line and files of Hudi's multi-table streamer: one pipeline.

In Hudi each table is a separate job, one after another, and continuous ingestion never leaves the
first. In lakeingest all tables are one pipeline: all topics at once, the tables in parallel, one
ledger. So readers see all tables at the same commit. A table's file decides only about its own
table: topic, key, folder. All its other settings must be equal in all files, because there is one
Kafka client, one registry and one writer. If two files differ, the error names both. Rejected: to
use the first file's setting, which is a guess; and to start a pipeline per group of equal files,
which splits the transactions that touched tables of two groups.

It is a separate command, as it is a separate class in Hudi: the two require different options.
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

# This module sets name and folder of each table itself.
_SET_HERE = (*hudi_keys.TABLE_NAME.names, *hudi_keys.BASE_PATH.names)

# The ledger holds the positions, so these settings have no effect. They often differ between files.
_WITHOUT_EFFECT = frozenset({"client.id", "group.id", "group.instance.id"})


@dataclass(frozen=True)
class _Table:
    """The settings of one table: its file, the common file and the command line together."""

    name: str
    file: str
    settings: Properties
    findings: Sorted


@dataclass
class _Merged:
    """The pipeline's settings, and the file of each."""

    entries: dict[str, Entry] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    problems: dict[str, None] = field(default_factory=dict)


def multi_table_config(typed: CommandLine) -> PipelineConfig:
    """Return the one pipeline of a command line of ``HoodieMultiTableStreamer``.

    Raises:
        UsageError: An option is missing or malformed.
        ConfigError: lakeingest cannot follow a file or an option, or two files contradict each
            other.
    """
    refuse_missing(typed, (PREFIX, FOLDER, TABLE_TYPE))
    if typed.props is None:
        problem = f"missing: {PROPS.name}"
        raise UsageError(problem)
    common = read_properties(typed.props, hudi_lines)
    tables = [_table(name, common, typed) for name in _names(common, typed.props)]
    merged = _merge(tables)
    problems = [*_messages(tables, lambda findings: findings.problems), *merged.problems]
    warnings = _messages(tables, lambda findings: findings.warnings)
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
    file_keys = hudi_keys.both_names(f"ingestion.{database}.{table}.configFile")
    folder = typed.options[FOLDER].rstrip("/")
    file = next(
        (common.value(key).text for key in file_keys if key in common.entries),
        f"{folder}/{database}_{table}_config.properties",
    )
    table_properties = read_properties(file, hudi_lines)
    settings = replace(table_properties, entries={**common.entries, **table_properties.entries})
    settings = with_options(settings.overridden(typed.conf, "--hoodie-conf"), typed)
    return _complete(_Table(name, file, settings, Sorted()), f"{database}/{table}", typed)


def _complete(table: _Table, default_path: str, typed: CommandLine) -> _Table:
    """Set a table's name and folders by lakeingest's keys, and sort its settings."""
    properties = table.settings
    entries = {
        name: entry
        for name, entry in properties.entries.items()
        if name not in _SET_HERE and not name.startswith(_INGESTION)
    }
    prefix = typed.options[PREFIX].rstrip("/")
    lake = Entry(PREFIX.name, prefix, "the command line")
    entries.setdefault(keys.TARGET_PATH.name, lake)
    name = typed.options.get(TABLE) or prefix.rpartition("/")[2]
    entries.setdefault(keys.PIPELINE_NAME.name, Entry(PREFIX.name, name, "the command line"))
    settings = replace(properties, entries=entries)
    result = sort_keys(settings)
    collection = one_collection(result.values)
    if collection is None:
        result.problems.append(
            f"{hudi_keys.TOPIC.names[0]} must be one topic, <prefix>.<schema or database>.<table>"
        )
        return replace(table, settings=settings, findings=result)
    base_paths = [
        properties.value(name) for name in hudi_keys.BASE_PATH.names if name in properties.entries
    ]
    path = keys.TABLE_KEYS["path"].name.replace(keys.COLLECTION, collection)
    if path not in result.values:
        text = base_paths[0].text if base_paths else default_path
        entries[path] = Entry(base_paths[0].key if base_paths else table.file, text, table.file)
        result.values[path] = settings.value(path)
    return replace(table, settings=settings, findings=result)


def _merge(tables: Iterable[_Table]) -> _Merged:
    result = _Merged()
    topics: list[str] = []
    names_by_file: list[tuple[str, frozenset[str]]] = []
    for table in tables:
        entries = _pipeline_wide(table)
        topic = entries.pop(keys.TOPICS.name, None)
        topics += [topic.text] if topic is not None else []
        for name, entry in entries.items():
            if result.entries.setdefault(name, entry).text != entry.text:
                result.problems[_difference(name, result.files[name], table.file)] = None
            result.files.setdefault(name, table.file)
        names_by_file.append((table.file, frozenset(filter(_is_pipeline_wide, entries))))
    first, *rest = names_by_file
    for file, names in rest:
        for name in sorted(names ^ first[1]):
            result.problems[_difference(name, first[0], file)] = None
    result.entries[keys.TOPICS.name] = Entry(keys.TOPICS.name, ",".join(topics), "the files")
    return result


def _pipeline_wide(table: _Table) -> dict[str, Entry]:
    """Return a table's settings as settings of a pipeline."""
    findings, unresolved = table.findings, table.settings.entries
    entries = {
        name: Entry(value.key, value.text, table.file, value.referenced)
        for name, value in findings.values.items()
    }
    names = (*findings.registry_keys, *findings.kafka_keys, *findings.hudi_options, *findings.meant)
    entries |= {name: unresolved[name] for name in names if name not in _WITHOUT_EFFECT}
    return entries


def _is_pipeline_wide(name: str) -> bool:
    return not name.startswith(keys.TABLE)


def _difference(name: str, one: str, other: str) -> str:
    return (
        f"{name} differs between {one} and {other}: all tables are one pipeline, which has one; "
        "set it in the common file alone"
    )


def _messages(tables: list[_Table], messages: Callable[[Sorted], list[str]]) -> list[str]:
    """Return each message of the tables once, with its files unless all tables have it."""
    by_text: dict[str, list[str]] = {}
    for table in tables:
        for text in messages(table.findings):
            by_text.setdefault(text, []).append(table.file)
    return [
        text if len(files) == len(tables) else f"{', '.join(files)}: {text}"
        for text, files in by_text.items()
    ]
