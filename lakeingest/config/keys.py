"""Derive the table of keys from the models: every key of a file, and the setting that it sets.

The fields of the models name their keys, types, defaults and descriptions (``model/``); nothing is
repeated here but the names that other modules of the configuration need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from lakeingest.config.model import PipelineConfig, TableConfig
from lakeingest.config.model.fields import ConfigModel
from lakeingest.config.model.schema_changes import SchemaChanges
from lakeingest.config.spelling import nearest

OURS = "lakeingest."
HUDIS = "hoodie."
TABLE = "lakeingest.table."
COLLECTION = "<collection>"

PIPELINE_NAME = "lakeingest.pipeline.name"
SOURCE_KIND = "lakeingest.source.kind"
SOURCE_PATH = "lakeingest.source.path"
SOURCE_FORMAT = "lakeingest.source.format"
CONNECTOR = "lakeingest.source.connector"
TOPIC_PREFIX = "lakeingest.source.topic.prefix"
TOPICS = "lakeingest.source.topics"
TRANSACTION_TOPIC = "lakeingest.transaction.topic"
TRANSACTION_MODE = "lakeingest.transaction.mode"
SNAPSHOT_AGAIN = "lakeingest.source.snapshot.again"
METADATA_COLUMNS = "lakeingest.metadata.columns"
TARGET_FORMAT = "lakeingest.target.format"
TARGET_PATH = "lakeingest.target.path"
HUDI_TABLE_TYPE = "lakeingest.hudi.table.type"
BATCH_MAX_EVENTS = "lakeingest.batch.max.events"
REGISTRY = "schema.registry."
REGISTRY_URL = "schema.registry.url"


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
    def _repeats_pipelines(self) -> bool:
        return self.name.startswith(TABLE) and self.model is SchemaChanges

    @property
    def alias(self) -> str:
        """The name by which the model takes the value from a file."""
        return str(self._info.validation_alias or self.field)

    @property
    def description(self) -> str:
        """The setting's meaning and the reason for its default."""
        text = " ".join((self._info.description or "").split())
        if self._repeats_pipelines:
            return f"{text.partition(':')[0]}. Default: the pipeline's policy."
        return text

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
        if self._repeats_pipelines or value is PydanticUndefined or value is None or value == ():
            return None
        return str(value).lower() if isinstance(value, bool) else str(value)


def _keys(model: type[ConfigModel], prefix: str) -> Iterator[Key]:
    for field, info in model.model_fields.items():
        if info.annotation is SchemaChanges:
            kinds = (kind for kind in SchemaChanges.model_fields if kind != "referenced")
            yield from (Key(f"{prefix}schema.{kind}", SchemaChanges, kind) for kind in kinds)
        elif isinstance(info.annotation, type) and issubclass(info.annotation, ConfigModel):
            yield from _keys(info.annotation, prefix)
        elif isinstance(info.validation_alias, str):
            alias = info.validation_alias
            yield Key(f"{prefix}{alias.removeprefix(prefix)}", model, field)


KEYS: tuple[Key, ...] = tuple(_keys(PipelineConfig, OURS))
"""Every key of lakeingest except the tables' keys, in the order of the reference."""

_OF_A_TABLE = f"{TABLE}{COLLECTION}."

TABLE_KEYS: dict[str, Key] = {
    key.name.removeprefix(_OF_A_TABLE): key for key in _keys(TableConfig, _OF_A_TABLE)
}
"""The keys of one table by their last part or parts. The collection, which may have dots, stands
before them."""

_MOST_PARTS = max(suffix.count(".") + 1 for suffix in TABLE_KEYS)

BY_NAME: Mapping[str, Key] = {key.name: key for key in KEYS}


def table_key(suffix: str, collection: str = COLLECTION) -> str:
    """Return a table's key by its last part, such as ``lakeingest.table.public.orders.key``."""
    return TABLE_KEYS[suffix].name.replace(COLLECTION, collection)


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


def unknown_key_problem(name: str) -> str | None:
    """Return the message about an unknown key of lakeingest; ``None``: the key is known."""
    if name in BY_NAME:
        return None
    if name.startswith(TABLE):
        collection, suffix = split_table_key(name)
        if collection and suffix in TABLE_KEYS:
            return None
        if not collection:
            return f"{name} names no collection; write {table_key('schema')}"
        pipelines = _of_all_tables(name)
        if pipelines is not None:
            return f"unknown key {name}: it is one for all tables, set {pipelines}"
    near = _nearest_key(name)
    hint = f"did you mean {near}?" if near else "see lakeingest config-reference"
    return f"unknown key {name}; {hint}"


def meant_as_ours(name: str) -> str | None:
    """Return the lakeingest key that the user probably meant by a key without the prefix.

    Otherwise such a key would silently go to the Kafka client: ``lakeingst.deletes``, or
    ``source.kind`` without the prefix. ``None``: it resembles no key of lakeingest.
    """
    if f"{OURS}{name}" in BY_NAME:
        return f"{OURS}{name}"
    head, separator, rest = name.partition(".")
    # 0.75: `ingest.` means lakeingest's prefix, the Kafka client's `linger.ms` (0.63) does not.
    if separator and nearest(head, ("lakeingest",), likeness=0.75):
        return _nearest_key(f"{OURS}{rest}") or f"{OURS}…"
    return None


def _nearest_key(name: str) -> str | None:
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
    of_tables = (table_key(suffix, name) for name in sorted(collections) for suffix in TABLE_KEYS)
    # Compare without the common prefix, which would make any two keys look alike.
    by_rest = {key.removeprefix(OURS): key for key in (*BY_NAME, *of_tables)}
    near = nearest(name.removeprefix(OURS), by_rest)
    return by_rest[near] if near else None


def _of_all_tables(name: str) -> str | None:
    """Return the pipeline's key that the user wrote as a table's key; ``None``: it is no such key.

    ``lakeingest.table.public.orders.deletes`` is ``lakeingest.deletes``, which no single table has.
    """
    parts = name.removeprefix(TABLE).split(".")
    ends: Iterable[str] = (f"{OURS}{'.'.join(parts[count:])}" for count in range(1, len(parts)))
    return next((end for end in ends if end in BY_NAME), None)


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
    return {int: "whole number", str: "text", bool: "`true` | `false`"}.get(
        annotation, str(annotation)
    )
