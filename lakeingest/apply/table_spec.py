"""The columns and the key of a table, from what is declared and what the newest rows show.

Order of authority: a declared DDL, else the schema that rides with the records, else the types that
JSON itself shows (with a warning). A field that a declared table does not name is taken in with its
JSON type and a warning: a column that appears at the source must not be dropped in silence (P8).
Columns that the lake has already keep their lake type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql.types import StructType

from lakeingest.apply.share import Share
from lakeingest.decode.columns import SourceColumn, declared, from_connect, of_json
from lakeingest.errors import ConfigError
from lakeingest.plan.spec import PipelineSpec, TableSpec
from lakeingest.shape import MetadataColumns
from lakeingest.widening import widens

_REFUSED_BY_DELTA = frozenset(" ,;{}()\n\t=")
"""Without column mapping; source: Delta's ``DeltaColumnMapping`` and Parquet's own rule."""

Infer = Callable[[Sequence[str]], Mapping[str, str]]
"""Fields of ``after`` to the Connect primitive that every value of the batch can be read as."""


def table_spec(
    collection: str,
    shares: Sequence[Share],
    ddl: StructType | None,
    key: Sequence[str],
    lake: StructType | None,
    spec: PipelineSpec,
    infer: Infer,
    warn: Callable[[str], None],
) -> TableSpec:
    """Settle columns and key of ``collection`` for one batch.

    Args:
        collection: The source table.
        shares: What the batch holds of it.
        ddl: Declared schema, if any.
        key: Declared key columns; empty: the record key's fields.
        lake: Schema of the target table, if it exists.
        spec: Pipeline settings.
        infer: Finds types of fields that nothing else tells; runs a job.
        warn: Takes a warning for the user.

    Raises:
        ConfigError: No key, a key column that is not there, or a column with a reserved name.
    """
    samples = [json.loads(share.sample) for share in shares if share.sample]
    keys = [share.sample_key for share in shares if share.sample_key]
    wrapped = any("schema" in sample and "payload" in sample for sample in samples)
    stored = _stored(lake, spec)
    if wrapped and ddl is None:
        columns = _merged(from_connect(json.dumps(sample["schema"])) for sample in samples)
    else:
        known = declared(ddl, spec.encodings) if ddl is not None else ()
        fields = {name: None for sample in samples for name in _row(sample)}
        have = {column.name for column in (*known, *stored)}
        new = _inferred(collection, [n for n in fields if n not in have], infer, warn)
        columns = (*known, *new)
    columns = (*columns, *_absent(stored, columns))
    record_key = _record_key(keys)
    chosen = tuple(key) or record_key
    in_value = bool(key) and not (record_key and set(chosen) <= set(record_key))
    if not chosen or (not in_value and any(share.keyless for share in shares)):
        message = (
            f"Table '{collection}' has no key: its records come without one. Declare the columns "
            f"that identify a row with lakeingest.table.{collection}.key (the table then needs "
            "REPLICA IDENTITY FULL on PostgreSQL), give it a primary key, or leave it out of "
            "lakeingest.source.topics. Nothing of this batch was published."
        )
        raise ConfigError(message)
    _check(collection, columns, chosen, spec.names)
    return TableSpec(
        collection, columns, chosen, in_value, wrapped or any(_is_wrapped(text) for text in keys)
    )


def _row(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    body = sample.get("payload", sample) if "schema" in sample else sample
    row: Mapping[str, Any] = body.get("after") or body.get("before") or {}
    return row


def _inferred(
    collection: str, names: Sequence[str], infer: Infer, warn: Callable[[str], None]
) -> tuple[SourceColumn, ...]:
    if not names:
        return ()
    columns = of_json(infer(names))
    listed = ", ".join(f"{c.name} {c.type.spark.simpleString()}" for c in columns)
    warn(
        f"Table '{collection}': types taken from the JSON for {listed}. Decimals, dates, times and "
        "bytes cannot be told from numbers and text there; declare them with "
        f"lakeingest.table.{collection}.schema."
    )
    return columns


def _stored(lake: StructType | None, spec: PipelineSpec) -> tuple[SourceColumn, ...]:
    if lake is None:
        return ()
    own = StructType([item for item in lake if item.name not in spec.names.names])
    return declared(own, spec.encodings)


def _absent(
    stored: Sequence[SourceColumn], columns: Sequence[SourceColumn]
) -> tuple[SourceColumn, ...]:
    """The lake's columns that the source does not send (any more); they come as NULL."""
    have = {column.name for column in columns}
    return tuple(column for column in stored if column.name not in have)


def _merged(schemas: Any) -> tuple[SourceColumn, ...]:
    """Union of the columns that records of different schema versions have, the widest type each."""
    columns: dict[str, SourceColumn] = {}
    for schema in schemas:
        for column in schema:
            old = columns.get(column.name)
            if old is None or widens(old.type.spark, column.type.spark):
                columns[column.name] = column
    return tuple(columns.values())


def _is_wrapped(key: str) -> bool:
    return key.startswith('{"schema":')


def _record_key(keys: Sequence[str]) -> tuple[str, ...]:
    """Names of the record key's fields; all keys of a table have the same."""
    for text in keys:
        key = json.loads(text)
        body = key.get("payload", {}) if _is_wrapped(text) else key
        return tuple(body) if isinstance(body, dict) else ()
    return ()


def _check(
    collection: str,
    columns: Sequence[SourceColumn],
    key: Sequence[str],
    names: MetadataColumns,
) -> None:
    have = {column.name for column in columns}
    absent = [name for name in key if name not in have]
    if absent:
        message = (
            f"Key column {', '.join(absent)} of table '{collection}' is not among its columns "
            f"({', '.join(sorted(have))}). Correct lakeingest.table.{collection}.key or .schema."
        )
        raise ConfigError(message)
    unusual = sorted(name for name in have if _REFUSED_BY_DELTA & set(name))
    if unusual:
        message = (
            f"Table '{collection}' has a column named '{unusual[0]}'; Delta takes no name with a "
            "blank or one of ,;{}()= in it. Rename it on the way (Connect's ReplaceField "
            "transform) or leave it out (the connector's column.exclude.list)."
        )
        raise ConfigError(message)
    taken = sorted(have & set(names.names))
    if taken:
        message = (
            f"Table '{collection}' has a column named {', '.join(taken)}, which lakeingest uses "
            "itself. Set lakeingest.metadata.prefix to another prefix."
        )
        raise ConfigError(message)
