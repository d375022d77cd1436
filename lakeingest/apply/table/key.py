"""Resolve the key of a table: the declared one, else the record key's, else one of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.table.settings import TableSettings
from lakeingest.decode.wire import TableShape
from lakeingest.errors import ConfigError, load_anew
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.plan.spec import Keyless


@dataclass(frozen=True)
class Key:
    """Key of a table.

    Attributes:
        columns: Its columns.
        in_value: Whether the row gives their values, because the record keys lack one of them.
        is_part: Whether record keys have other columns beside them.
        keyless: What identifies a row instead of a key of the source; None: the source has a key.
    """

    columns: tuple[str, ...]
    in_value: bool
    is_part: bool
    keyless: Keyless | None


def resolve_key(
    settings: TableSettings,
    lake_key: tuple[str, ...],
    shown: TableShape,
    batch_stats: Sequence[BatchStats],
    names: MetadataColumns,
) -> Key:
    """Return the key of a table.

    Args:
        settings: What is declared.
        lake_key: The key by which the lake keeps the table; empty: it is new.
        shown: What the batch's records show.
        batch_stats: Statistics of the batch.
        names: lakeingest's own columns.

    Raises:
        ConfigError: There is no key, the setting that replaced one is gone, or records have another
            key than the table.
    """
    collection, keyless = settings.collection, settings.keyless
    key = settings.key or lake_key
    own_key = set(key) & set(names.keyless)
    if keyless is None or shown.key or (key and not own_key):
        keyless = None
        key_columns = key or shown.key
    else:
        by_place = keyless is Keyless.APPEND
        key_columns = (names.row_place if by_place else names.row_key,)
    if own_key and keyless is None:
        raise _keyless_setting_removed(collection)
    if not (settings.key or keyless):
        _refuse_changed_key(collection, key_columns, lake_key, shown.keys)
    in_keys = bool(shown.keys) and all(set(key_columns) <= fields for fields in shown.keys)
    in_value = bool(keyless or key) and not in_keys
    if not key_columns or (not in_value and any(stats.keyless for stats in batch_stats)):
        message = (
            f"Table '{collection}' has no key: its records come without one. Declare the columns "
            f"that identify a row with lakeingest.table.{collection}.key (the table then needs "
            "REPLICA IDENTITY FULL on PostgreSQL), give it a primary key, say what a row is with "
            f"lakeingest.table.{collection}.keyless=full-row or append, or leave it out of "
            "lakeingest.source.topics. Nothing of this batch was published."
        )
        raise ConfigError(message)
    is_part = not in_value and any(fields != set(key_columns) for fields in shown.keys)
    return Key(key_columns, in_value, is_part, keyless)


def _refuse_changed_key(
    collection: str, key: Sequence[str], lake_key: Sequence[str], keys: Iterable[frozenset[str]]
) -> None:
    """Raise an error for record keys of other fields: by the table's key they are other rows."""
    for fields in sorted(keys, key=sorted):
        if not fields or fields == frozenset(key):
            continue
        setting, other = f"lakeingest.table.{collection}.key", ", ".join(sorted(fields))
        if lake_key:
            message = (
                f"Table '{collection}' is kept by key ({', '.join(lake_key)}) in the lake, but "
                f"some of its records now have the key ({other}). A key cannot change in place: "
                f"set {setting} and {load_anew(collection)}. If the lake's key still identifies a "
                f"row, declare it: {setting}={','.join(lake_key)}."
            )
        else:
            message = (
                f"The primary key of table '{collection}' changed: some records have the key "
                f"({other}), others ({', '.join(key)}). Declare the key that its rows have now: "
                f"{setting}. If records lack one of its columns, the table needs REPLICA IDENTITY "
                "FULL."
            )
        message += " Nothing of this batch was published."
        raise ConfigError(message)


def _keyless_setting_removed(collection: str) -> ConfigError:
    return ConfigError(
        f"Table '{collection}' is kept by a row key of ours in the lake, because its source had no "
        f"key. Set lakeingest.table.{collection}.keyless as it was, or {load_anew(collection)}. "
        "Nothing of this batch was published."
    )
