"""Resolve the key of a table: the declared one, else the record key's, else one of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakeingest.apply.batch_stats import BatchStats
from lakeingest.apply.table.settings import TableSettings
from lakeingest.decode.wire import TableShape
from lakeingest.errors import ConfigError, DataError, load_anew
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.plan.spec import Keyless


@dataclass(frozen=True)
class Key:
    """Key of a table.

    Attributes:
        columns: Its columns.
        in_value: Whether the row gives their values, because the record keys lack one of them.
        keyless: What identifies a row instead of a key of the source; None: the source has a key.
    """

    columns: tuple[str, ...]
    in_value: bool
    keyless: Keyless | None


def resolve_key(
    settings: TableSettings,
    shown: TableShape,
    batch_stats: Sequence[BatchStats],
    names: MetadataColumns,
) -> Key:
    """Return the key of a table.

    Raises:
        ConfigError: There is no key, or the setting that replaced one is gone.
        DataError: The primary key changed in this batch.
    """
    collection, key, keyless = settings.collection, settings.key, settings.keyless
    own_key = set(key) & set(names.keyless)
    if keyless is None or shown.key or (key and not own_key):
        keyless = None
        key_columns = key or shown.key
    else:
        by_place = keyless is Keyless.APPEND
        key_columns = (names.row_place if by_place else names.row_key,)
    if own_key and keyless is None:
        raise _keyless_setting_removed(collection)
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
    if not (in_value or key):
        _refuse_changed_key(collection, key_columns, shown.keys)
    return Key(key_columns, in_value, keyless)


def _refuse_changed_key(
    collection: str, key: Sequence[str], keys: Iterable[frozenset[str]]
) -> None:
    """Raise an error for record keys of other fields: a missing one is NULL, another row's key."""
    key_fields = frozenset(key)
    for fields in sorted(keys, key=sorted):
        if fields and fields != key_fields:
            message = (
                f"The primary key of table '{collection}' changed in this batch: some records have "
                f"the key ({', '.join(sorted(fields))}), others ({', '.join(sorted(key_fields))}). "
                "Nothing of it was published. Run with lakeingest.batch.max.events=1 until the "
                "change is past: each transaction is a batch then, and has keys of one kind."
            )
            raise DataError(message)


def _keyless_setting_removed(collection: str) -> ConfigError:
    return ConfigError(
        f"Table '{collection}' is kept by a row key of ours in the lake, because its source had no "
        f"key. Set lakeingest.table.{collection}.keyless as it was, or {load_anew(collection)}. "
        "Nothing of this batch was published."
    )
