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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from lakeingest.config import keys
from lakeingest.config.file.properties import Entry, Properties, Value, read_properties
from lakeingest.config.load import load_properties
from lakeingest.config.model import PipelineConfig
from lakeingest.config.sorting import SortedKeys, sort_keys
from lakeingest.config.streamer.command_line import CommandLine, refuse_missing, with_options
from lakeingest.config.streamer.hudi_lines import hudi_lines
from lakeingest.config.streamer.options import BASE_PATH, OPTIONS, PROPS, TABLE, TABLE_TYPE, Option
from lakeingest.config.streamer.settings import BASE_PATH as HUDI_BASE_PATH
from lakeingest.config.streamer.settings import TABLE_NAME, TOPIC, both_names
from lakeingest.config.streamer.translation import one_collection
from lakeingest.errors import ConfigError, UsageError

PREFIX = Option(
    "--base-path-prefix", "PATH", "Folder of the lake; a table lies in <database>/<table>."
)
FOLDER = Option("--config-folder", "PATH", "Folder of the tables' files.")

MULTI_TABLE_OPTIONS: tuple[Option, ...] = (
    PROPS,
    PREFIX,
    FOLDER,
    *(option for option in OPTIONS if option not in (PROPS, BASE_PATH)),
)
"""Every option of ``HoodieMultiTableStreamer``."""

_INGESTION = both_names("ingestion.")

# This module sets name and folder of each table itself.
_SET_HERE = (*TABLE_NAME.names, *HUDI_BASE_PATH.names)

# The ledger holds the positions, so these settings have no effect. They often differ between files.
_WITHOUT_EFFECT = frozenset({"client.id", "group.id", "group.instance.id"})


@dataclass(frozen=True)
class _Table:
    """The settings of one table: its file, the common file and the command line together.

    Attributes:
        file: The table's file.
        settings: All entries.
        sorted_keys: The entries by owner, with what is wrong with them.
    """

    file: str
    settings: Properties
    sorted_keys: SortedKeys

    def pipeline_entries(self) -> dict[str, Entry]:
        """Return the settings as settings of a pipeline."""
        groups = self.sorted_keys
        entries = {
            name: Entry(value.key, value.text, self.file, value.referenced)
            for name, value in groups.values.items()
        }
        names = (*groups.registry_keys, *groups.kafka_keys, *groups.hudi_options, *groups.meant)
        unresolved = self.settings.entries
        return entries | {name: unresolved[name] for name in names if name not in _WITHOUT_EFFECT}


@dataclass
class _Merged:
    """The pipeline's settings, the file of each, and the differences between the files."""

    entries: dict[str, Entry] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    problems: dict[str, None] = field(default_factory=dict)

    def add_difference(self, name: str, one: str, other: str) -> None:
        """Report a setting that differs between two files."""
        text = (
            f"{name} differs between {one} and {other}: all tables are one pipeline, which has "
            "one; set it in the common file alone"
        )
        self.problems[text] = None


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
    listed = both_names("ingestion.tablesToBeIngested")
    names = [name.strip() for name in _first_of(listed, common, "").split(",") if name.strip()]
    if not names:
        message = f"{typed.props}: missing: {listed[0]}, the tables as database.table, with commas"
        raise ConfigError(message)
    tables = [_table(name, common, typed) for name in names]
    merged = _merge(tables)
    problems = _with_files([(table.file, table.sorted_keys.problems) for table in tables])
    warnings = _with_files([(table.file, table.sorted_keys.warnings) for table in tables])
    all_problems = (*problems, *merged.problems)
    return load_properties(Properties(typed.props, merged.entries, tuple(warnings), all_problems))


def _first_of(names: Iterable[str], properties: Properties, default: str) -> str:
    present = (properties.value(name).text for name in names if name in properties.entries)
    return next(present, default)


def _table(name: str, common: Properties, typed: CommandLine) -> _Table:
    database, _, table = name.rpartition(".")
    database = database or "default"
    file = _first_of(
        both_names(f"ingestion.{database}.{table}.configFile"),
        common,
        f"{typed.options[FOLDER].rstrip('/')}/{database}_{table}_config.properties",
    )
    own = read_properties(file, hudi_lines)
    properties = with_options(replace(own, entries={**common.entries, **own.entries}), typed)
    entries = {
        name: entry
        for name, entry in properties.entries.items()
        if name not in _SET_HERE and not name.startswith(_INGESTION)
    }
    lake = typed.options[PREFIX].rstrip("/")
    pipeline = typed.options.get(TABLE) or lake.rpartition("/")[2]
    for key, text in ((keys.TARGET_PATH, lake), (keys.PIPELINE_NAME, pipeline)):
        entries.setdefault(key, Entry(PREFIX.name, text, "the command line"))
    settings = replace(properties, entries=entries)
    sorted_keys = sort_keys(settings)
    collection = one_collection(sorted_keys.values)
    if collection is None:
        sorted_keys.problems.append(
            f"{TOPIC.names[0]} must be one topic, <prefix>.<schema or database>.<table>"
        )
    elif keys.table_key("path", collection) not in sorted_keys.values:
        set_paths = [
            properties.value(name) for name in HUDI_BASE_PATH.names if name in properties.entries
        ]
        default = Value(file, f"{database}/{table}")
        sorted_keys.values[keys.table_key("path", collection)] = next(iter(set_paths), default)
    return _Table(file, settings, sorted_keys)


def _merge(tables: Iterable[_Table]) -> _Merged:
    result = _Merged()
    topics: list[str] = []
    names_by_file: list[tuple[str, set[str]]] = []
    for table in tables:
        entries = table.pipeline_entries()
        topic = entries.pop(keys.TOPICS, None)
        topics += [topic.text] if topic is not None else []
        for name, entry in entries.items():
            if result.entries.setdefault(name, entry).text != entry.text:
                result.add_difference(name, result.files[name], table.file)
            result.files.setdefault(name, table.file)
        common_names = {name for name in entries if not name.startswith(keys.TABLE)}
        names_by_file.append((table.file, common_names))
    (first_file, first_names), *rest = names_by_file
    for file, names in rest:
        for name in sorted(names ^ first_names):
            result.add_difference(name, first_file, file)
    result.entries[keys.TOPICS] = Entry(keys.TOPICS, ",".join(topics), "the files")
    return result


def _with_files(messages: Sequence[tuple[str, list[str]]]) -> list[str]:
    """Return each message of the tables once, with its files unless all tables have it."""
    by_text: dict[str, list[str]] = {}
    for file, texts in messages:
        for text in texts:
            by_text.setdefault(text, []).append(file)
    return [
        text if len(files) == len(messages) else f"{', '.join(files)}: {text}"
        for text, files in by_text.items()
    ]
