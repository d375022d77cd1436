"""Define the table of keys: every key of a configuration file, and the setting that it sets.

This module does not repeat type, default and description; it reads them from the model's fields. A
setting's name in a file (``lakeingest.deletes``) and in code (``config.deletes``) differ on
purpose: the names in files must stay if the model changes. So the rejected way is to derive the key
from the field's path.

Hudi's names are in ``hudi_keys.py``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from lakeingest.config.fields import ConfigModel
from lakeingest.config.model import PipelineConfig, SourceConfig, TargetConfig
from lakeingest.config.schema_changes import KINDS, SchemaChanges, TableSchemaChanges
from lakeingest.config.table import TableConfig

OURS = "lakeingest."
HUDIS = "hoodie."
TABLE = "lakeingest.table."
COLLECTION = "<collection>"
REGISTRY = "schema.registry."
REGISTRY_URL = f"{REGISTRY}url"


@dataclass(frozen=True)
class Key:
    """A key of lakeingest and the model field that it sets.

    Attributes:
        name: The key; a table's key holds ``<collection>``.
        model: The model that holds the field.
        field: The field's name.
    """

    name: str
    model: type[ConfigModel]
    field: str

    @property
    def _info(self) -> FieldInfo:
        return self.model.model_fields[self.field]

    @property
    def description(self) -> str:
        """The setting's meaning and the reason for its default."""
        return self._info.description or ""

    @property
    def type_name(self) -> str:
        """The setting's type, in words for a user."""
        return _type_name(self._info.annotation)

    @property
    def is_list(self) -> bool:
        """Whether the value is a comma-separated list."""
        return get_origin(self._info.annotation) is tuple

    @property
    def default(self) -> str | None:
        """The default, as a file would write it; ``None``: the setting has no such default."""
        value = self._info.default
        if value is PydanticUndefined or value is None or value == ():
            return None
        return str(value)


PIPELINE_NAME = Key("lakeingest.pipeline.name", PipelineConfig, "name")
SOURCE_KIND = Key("lakeingest.source.kind", SourceConfig, "kind")
SOURCE_PATH = Key("lakeingest.source.path", SourceConfig, "path")
SOURCE_FORMAT = Key("lakeingest.source.format", SourceConfig, "format")
CONNECTOR = Key("lakeingest.source.connector", SourceConfig, "connector")
TOPIC_PREFIX = Key("lakeingest.source.topic.prefix", SourceConfig, "topic_prefix")
TOPICS = Key("lakeingest.source.topics", SourceConfig, "topics")
TRANSACTION_TOPIC = Key("lakeingest.transaction.topic", SourceConfig, "transaction_topic")
TARGET_FORMAT = Key("lakeingest.target.format", TargetConfig, "format")
TARGET_PATH = Key("lakeingest.target.path", TargetConfig, "path")
TRANSACTION_MODE = Key("lakeingest.transaction.mode", SourceConfig, "transaction_mode")
SNAPSHOT_AGAIN = Key("lakeingest.source.snapshot.again", SourceConfig, "snapshot_again")
METADATA_COLUMNS = Key("lakeingest.metadata.columns", PipelineConfig, "metadata_columns")
HUDI_TABLE_TYPE = Key("lakeingest.hudi.table.type", TargetConfig, "hudi_table_type")
BATCH_MAX_EVENTS = Key("lakeingest.batch.max.events", PipelineConfig, "batch_max_events")

KEYS: tuple[Key, ...] = (
    PIPELINE_NAME,
    SOURCE_KIND,
    SOURCE_PATH,
    CONNECTOR,
    TOPIC_PREFIX,
    TOPICS,
    SOURCE_FORMAT,
    Key("lakeingest.source.envelope", SourceConfig, "envelope"),
    Key("lakeingest.registry.timeout.seconds", SourceConfig, "registry_timeout_seconds"),
    Key("lakeingest.registry.retries", SourceConfig, "registry_retries"),
    Key("lakeingest.source.decimal.handling.mode", SourceConfig, "decimal_mode"),
    Key("lakeingest.source.binary.handling.mode", SourceConfig, "binary_mode"),
    Key("lakeingest.source.time.precision.mode", SourceConfig, "time_mode"),
    Key("lakeingest.source.decimal.format", SourceConfig, "decimal_format"),
    Key("lakeingest.decimal.too.large", SourceConfig, "decimal_too_large"),
    Key("lakeingest.infinite.times", PipelineConfig, "infinite_times"),
    Key("lakeingest.ambiguous.nulls", PipelineConfig, "ambiguous_nulls"),
    SNAPSHOT_AGAIN,
    Key("lakeingest.source.missing.head", SourceConfig, "missing_head"),
    Key("lakeingest.source.new.topic.id", SourceConfig, "new_topic_id"),
    Key("lakeingest.source.skip.records", SourceConfig, "skip_records"),
    Key(
        "lakeingest.source.unavailable.value.placeholder",
        PipelineConfig,
        "unavailable_placeholder",
    ),
    TRANSACTION_MODE,
    Key("lakeingest.source.ordering.columns", SourceConfig, "ordering_columns"),
    TRANSACTION_TOPIC,
    Key(
        "lakeingest.transaction.timeout.seconds",
        PipelineConfig,
        "transaction_timeout_seconds",
    ),
    Key(
        "lakeingest.transaction.filtered.collections",
        PipelineConfig,
        "uncounted_collections",
    ),
    TARGET_FORMAT,
    TARGET_PATH,
    HUDI_TABLE_TYPE,
    Key("lakeingest.delta.commit", TargetConfig, "delta_commit"),
    Key("lakeingest.single.writer", TargetConfig, "single_writer"),
    BATCH_MAX_EVENTS,
    Key("lakeingest.window.max.records", PipelineConfig, "window_max_records"),
    Key("lakeingest.window.max.bytes", PipelineConfig, "window_max_bytes"),
    Key("lakeingest.commit.max.transactions", PipelineConfig, "commit_max_transactions"),
    Key("lakeingest.deletes", PipelineConfig, "deletes"),
    Key("lakeingest.toast.missing", PipelineConfig, "toast_missing"),
    Key("lakeingest.foreign.changes", PipelineConfig, "foreign_changes"),
    *(Key(f"lakeingest.schema.{kind}", SchemaChanges, kind) for kind in KINDS),
    METADATA_COLUMNS,
    Key("lakeingest.metadata.prefix", PipelineConfig, "metadata_prefix"),
)
"""Every key of lakeingest except the tables' keys, in the order of the reference."""

TABLE_KEYS: dict[str, Key] = {
    "schema": Key(f"{TABLE}{COLLECTION}.schema", TableConfig, "ddl"),
    "key": Key(f"{TABLE}{COLLECTION}.key", TableConfig, "key"),
    "keyless": Key(f"{TABLE}{COLLECTION}.keyless", TableConfig, "keyless"),
    "partition": Key(f"{TABLE}{COLLECTION}.partition", TableConfig, "partition"),
    "format": Key(f"{TABLE}{COLLECTION}.format", TableConfig, "format"),
    "path": Key(f"{TABLE}{COLLECTION}.path", TableConfig, "path"),
    "adopt": Key(f"{TABLE}{COLLECTION}.adopt", TableConfig, "adopt"),
    "ordering.columns": Key(
        f"{TABLE}{COLLECTION}.ordering.columns", TableConfig, "ordering_columns"
    ),
    "checkpoint": Key(f"{TABLE}{COLLECTION}.checkpoint", TableConfig, "checkpoint"),
    "decimal.too.large": Key(
        f"{TABLE}{COLLECTION}.decimal.too.large", TableConfig, "decimal_too_large"
    ),
    "infinite.times": Key(f"{TABLE}{COLLECTION}.infinite.times", TableConfig, "infinite_times"),
    "ambiguous.nulls": Key(f"{TABLE}{COLLECTION}.ambiguous.nulls", TableConfig, "ambiguous_nulls"),
    **{
        f"schema.{kind}": Key(f"{TABLE}{COLLECTION}.schema.{kind}", TableSchemaChanges, kind)
        for kind in KINDS
    },
}
"""The keys of one table by their last part or parts. The collection, which may have dots, stands
before them."""

_MOST_PARTS = max(suffix.count(".") + 1 for suffix in TABLE_KEYS)

KNOWN_NAMES: frozenset[str] = frozenset(key.name for key in KEYS)


def split_table_key(name: str) -> tuple[str, str]:
    """Split ``lakeingest.table.public.orders.key`` into ``public.orders`` and ``key``.

    The collection is empty if there is nothing between the prefix and the last part.
    """
    parts = name.removeprefix(TABLE).split(".")
    for count in range(_MOST_PARTS, 1, -1):
        suffix = ".".join(parts[-count:])
        if suffix in TABLE_KEYS:
            return ".".join(parts[:-count]), suffix
    return ".".join(parts[:-1]), parts[-1]


def nearest(name: str, candidates: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the candidate that the user most likely meant; ``None``: no candidate is near.

    Args:
        name: The user's name.
        candidates: The valid names.
        likeness: Ratio of equal characters, 0 to 1, from which a candidate counts as near.
    """
    # Compare in lower case: a wrong case is the most common misspelling.
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=likeness)
    return by_lower[matches[0]] if matches else None


def nearest_key(name: str) -> str | None:
    """Return the known key nearest to an unknown key of lakeingest; ``None``: no key is near.

    A table's key is returned with the user's collection.
    """
    parts = name.split(".")
    collections = {".".join(parts[2:-1]) or COLLECTION}
    # Some table keys have several parts. If the first part matches, the collection ends before it.
    first_parts = {suffix.partition(".")[0] for suffix in TABLE_KEYS if "." in suffix}
    for count in range(2, _MOST_PARTS + 1):
        if len(parts) > 2 + count and parts[-count] in first_parts:
            collections.add(".".join(parts[2:-count]))
    table_keys = (
        key.name.replace(COLLECTION, collection)
        for collection in sorted(collections)
        for key in TABLE_KEYS.values()
    )
    # Compare without the common prefix, which would make any two keys look alike.
    by_rest = {key.removeprefix(OURS): key for key in (*KNOWN_NAMES, *table_keys)}
    near = nearest(name.removeprefix(OURS), by_rest)
    return by_rest[near] if near else None


def of_all_tables(name: str) -> str | None:
    """Return the pipeline's key that the user wrote as a table's key; ``None``: it is no such key.

    ``lakeingest.table.public.orders.deletes`` is ``lakeingest.deletes``, which no single table has.
    """
    if not name.startswith(TABLE):
        return None
    parts = name.removeprefix(TABLE).split(".")
    ends = (f"{OURS}{'.'.join(parts[count:])}" for count in range(1, len(parts)))
    return next((end for end in ends if end in KNOWN_NAMES), None)


def meant_as_ours(name: str) -> str | None:
    """Return the lakeingest key that the user probably meant by a key without the prefix.

    Otherwise such a key would silently go to the Kafka client: ``lakeingst.deletes``, or
    ``source.kind`` without the prefix. ``None``: it resembles no key of lakeingest.
    """
    if f"{OURS}{name}" in KNOWN_NAMES:
        return f"{OURS}{name}"
    head, separator, rest = name.partition(".")
    # 0.75: `ingest.` means lakeingest's prefix, the Kafka client's `linger.ms` (0.63) does not.
    if separator and nearest(head, ("lakeingest",), likeness=0.75):
        return nearest_key(f"{OURS}{rest}") or f"{OURS}…"
    return None


def _type_name(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _type_name(get_args(annotation)[0])
    if origin is Literal:
        return " | ".join(f"`{choice}`" for choice in get_args(annotation))
    if origin in (Union, UnionType):
        return " or ".join(_type_name(a) for a in get_args(annotation) if a is not NoneType)
    if origin is tuple:
        return "list"
    return {int: "whole number", str: "text"}.get(annotation, str(annotation))
