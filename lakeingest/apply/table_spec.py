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
from lakeingest.decode.columns import (
    Encodings,
    SourceColumn,
    declared,
    from_connect,
    inferred,
)
from lakeingest.errors import ConfigError
from lakeingest.plan.spec import TableSpec
from lakeingest.shape import MetadataColumns
from lakeingest.widening import widens


def table_spec(
    collection: str,
    shares: Sequence[Share],
    ddl: StructType | None,
    key: Sequence[str],
    lake: StructType | None,
    encodings: Encodings,
    names: MetadataColumns,
    warn: Callable[[str], None],
) -> TableSpec:
    """Settle columns and key of ``collection`` for one batch.

    Args:
        collection: The source table.
        shares: What the batch holds of it.
        ddl: Declared schema, if any.
        key: Declared key columns; empty: the record key's fields.
        lake: Schema of the target table, if it exists.
        encodings: Wire settings of the connector.
        names: Names of the metadata columns, which no source column may have.
        warn: Takes a warning for the user.

    Raises:
        ConfigError: No key, a key column that is not there, or a column with a reserved name.
    """
    samples = [json.loads(share.sample) for share in shares if share.sample]
    wrapped = any("schema" in sample and "payload" in sample for sample in samples)
    if wrapped and ddl is None:
        columns = _merged(from_connect(json.dumps(sample["schema"])) for sample in samples)
    else:
        rows = [_after(sample) for sample in samples]
        columns = _unwrapped(collection, rows, ddl, lake, encodings, names, warn)
    columns = _with_lake(columns, lake, encodings, names)
    record_key = _record_key(shares)
    chosen = tuple(key) or record_key
    if not wrapped:
        wrapped = any(share.sample_key and _is_wrapped(share.sample_key) for share in shares)
    if not chosen or (not key and any(share.keyless for share in shares)):
        message = (
            f"Table '{collection}' has no key: its records come without one. Declare the columns "
            f"that identify a row with lakeingest.table.{collection}.key (the table then needs "
            "REPLICA IDENTITY FULL on PostgreSQL), give it a primary key, or leave it out of "
            "lakeingest.source.topics. Nothing of this batch was published."
        )
        raise ConfigError(message)
    _check(collection, columns, chosen, names)
    in_value = bool(key) and not (set(chosen) <= set(record_key) and record_key)
    return TableSpec(collection, columns, chosen, in_value, wrapped)


def _after(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    body = sample.get("payload", sample) if "schema" in sample else sample
    after: Mapping[str, Any] = body.get("after") or {}
    return after


def _unwrapped(
    collection: str,
    rows: Sequence[Mapping[str, Any]],
    ddl: StructType | None,
    lake: StructType | None,
    encodings: Encodings,
    names: MetadataColumns,
    warn: Callable[[str], None],
) -> tuple[SourceColumn, ...]:
    known = declared(ddl, encodings) if ddl is not None else ()
    stored = _stored(lake, encodings, names)
    have = {column.name for column in (*known, *stored)}
    new = tuple(column for column in inferred(rows) if column.name not in have)
    if new:
        listed = ", ".join(f"{c.name} {c.type.spark.simpleString()}" for c in new)
        warn(
            f"Table '{collection}': types taken from the JSON for {listed}. Decimals, dates, "
            "times and bytes cannot be told from numbers and text there; declare them with "
            f"lakeingest.table.{collection}.schema."
        )
    missing = tuple(c for c in stored if c.name not in {column.name for column in known})
    return (*known, *missing, *new)


def _stored(
    lake: StructType | None, encodings: Encodings, names: MetadataColumns
) -> tuple[SourceColumn, ...]:
    if lake is None:
        return ()
    own = StructType([item for item in lake if item.name not in names.names])
    return declared(own, encodings)


def _with_lake(
    columns: tuple[SourceColumn, ...],
    lake: StructType | None,
    encodings: Encodings,
    names: MetadataColumns,
) -> tuple[SourceColumn, ...]:
    """Keep the lake's columns that the source no longer sends (they come as NULL)."""
    have = {column.name for column in columns}
    gone = [c for c in _stored(lake, encodings, names) if c.name not in have]
    return (*columns, *gone)


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


def _record_key(shares: Sequence[Share]) -> tuple[str, ...]:
    for share in shares:
        if share.sample_key:
            key = json.loads(share.sample_key)
            body = key.get("payload", {}) if _is_wrapped(share.sample_key) else key
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
    taken = sorted(have & set(names.names))
    if taken:
        message = (
            f"Table '{collection}' has a column named {', '.join(taken)}, which lakeingest uses "
            "itself. Set lakeingest.metadata.prefix to another prefix."
        )
        raise ConfigError(message)
