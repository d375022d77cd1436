"""Fold the changes of a batch to one merge payload per key.

The law (DESIGN §7): the state of a key is a row position, a flag for deleted rows, and for each
column a value with a position. A merge keeps the higher position, for the row's existence and for
each column on its own. The merge is commutative, associative and idempotent, so order, repetition
and batch cuts do not change the result.

A delete writes "unavailable" to every column at its position: a later update that omits a column
must not find a value from before the delete. Rejected: a delete that says nothing about columns. It
would fill a re-used key with a dead row's text.

Two functions give the same payload. ``fold_records`` keeps the record of the latest change and
decodes it afterwards, so most changes of a hot key are never decoded. ``fold_rows`` decodes first,
because it takes an unavailable value from an older change of the batch. Rejected: a window with
``row_number``; it sorts all changes of a key, and ``max_by`` keeps one.

Where each transaction becomes a version of its own (the changes have ``END``), a key gets a payload
for each transaction that changes it, which holds the changes up to that transaction. So each
payload gives the key's state by itself when it is merged with the row from before the batch. It is
the same fold, over a window that ends with the transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.engine.known_columns import Addition, Filter, Selection, Steps, made_once
from lakeingest.event_columns import EVENT, GONE, OPERATION, SEQUENCE
from lakeingest.frame_schemas import END, FIRST_OP, LINK, OURS, MetadataColumns
from lakeingest.named import named
from lakeingest.position import missing_below, present_entries

MOVED = f"{OURS}moved"
DELETED_AT = f"{OURS}deleted_at"
_LAST, _POSITION, _FIRST = f"{OURS}last", f"{OURS}position", f"{OURS}first"
_ENDS = f"{OURS}ends"


def fold_records(changes: DataFrame, *groups: str) -> DataFrame:
    """Keep the last change of each key, without decoding it.

    Args:
        changes: ``key`` (keys with equal octets are equal), ``op``, ``position``, ``value``; no
            unavailable values. ``event`` stays where the changes have it.
        *groups: Further columns that identify a key, such as ``collection``.

    Returns:
        The groups; ``key``; ``op``, ``value`` and ``position`` of the last change; ``first_op`` of
        the first change; ``END`` where the changes have it.
    """
    return _record_fold(groups, carried_event(changes), carried_end(changes)).of(changes)


@dataclass(frozen=True)
class _Fold:
    """The steps of a fold.

    Attributes:
        key: What a key is.
        fold: The fold of its changes; empty where ``so_far`` is used.
        so_far: The fold of the changes up to each transaction, one row per key and transaction.
        result: The columns of the result.
    """

    key: Selection
    fold: Selection
    so_far: Steps | None
    result: Selection

    def of(self, changes: DataFrame) -> DataFrame:
        """Fold changes."""
        if self.so_far is not None:
            return self.result.of(self.so_far.of(changes))
        return self.result.of(self.fold.of_groups(changes, self.key))


def _fold(
    key: Sequence[str],
    aggregates: Mapping[str, Column],
    result: Sequence[Column | str],
    end: tuple[str, ...],
) -> _Fold:
    """Return a fold.

    Args:
        key: Names of the columns that are one key.
        aggregates: Aggregates of its changes by name.
        result: Columns over the key and the aggregates.
        end: ``carried_end`` of the changes.
    """
    columns = (column.alias(name) for name, column in aggregates.items())
    so_far = _up_to_each_end(key, aggregates) if end else None
    return _Fold(Selection(*key), Selection(*columns), so_far, Selection(*result, *end))


def _up_to_each_end(key: Sequence[str], aggregates: Mapping[str, Column]) -> Steps:
    """Return the aggregates over the changes up to each transaction's END."""
    changes_of_key = Window.partitionBy(*key).orderBy(END)
    so_far = changes_of_key.rangeBetween(Window.unboundedPreceding, Window.currentRow)
    # The names may be those of columns that other aggregates still read.
    steps = {f"{_ENDS}{name}": column.over(so_far) for name, column in aggregates.items()}
    is_last = ~F.coalesce(F.lead(END).over(changes_of_key) == F.col(END), F.lit(False))
    values = (F.col(f"{_ENDS}{name}").alias(name) for name in aggregates)
    return Steps(
        Addition({**steps, _ENDS: is_last}), Filter(F.col(_ENDS)), Selection(*key, END, *values)
    )


def carried_event(changes: DataFrame) -> tuple[str, ...]:
    """Return the name of the column with RFC-39's columns, if the changes have it."""
    return (EVENT,) if EVENT in changes.columns else ()


def carried_end(changes: DataFrame) -> tuple[str, ...]:
    """Return the name of the column with the transaction's END, if the changes have it."""
    return (END,) if END in changes.columns else ()


@made_once
def _record_fold(groups: tuple[str, ...], event: tuple[str, ...], end: tuple[str, ...]) -> _Fold:
    last_columns = ("op", "value", *event)
    aggregates = {
        _LAST: F.max_by(F.struct(*last_columns), F.col("position")),
        "position": F.max("position"),
        "first_op": F.min_by("op", "position"),
    }
    last_values = (f"{_LAST}.{name}" for name in last_columns)
    key = (*groups, "key")
    return _fold(key, aggregates, (*key, *last_values, "position", "first_op"), end)


def payload_of_last(
    decoded: DataFrame, columns: Sequence[str], key: Sequence[str], names: MetadataColumns
) -> DataFrame:
    """Shape the decoded latest changes of ``fold_records`` as merge payloads.

    Args:
        decoded: ``op``, ``position``, ``first_op``, ``row`` and ``key_row`` structs, ``event``
            where the tables have RFC-39's columns, and ``END`` where the changes had it.
        columns: The table's column names.
        key: Names of its key columns.
        names: Names of the metadata columns.
    """
    return _payload_columns(tuple(columns), tuple(key), carried_end(decoded), names).of(decoded)


@made_once
def _payload_columns(
    columns: tuple[str, ...], key: tuple[str, ...], end: tuple[str, ...], names: MetadataColumns
) -> Selection:
    deleted = F.col("op") == "d"
    values = [_value(name, key, deleted, F.col("row").getField(name)) for name in columns]
    return Selection(
        *_with_event(values, F.col(EVENT), deleted, names),
        F.col("position").alias(names.position),
        deleted.alias(names.deleted),
        F.lit(None).cast("map<string,string>").alias(names.column_positions),
        F.col("first_op").alias(FIRST_OP),
        *end,
    )


def fold_rows(
    decoded: DataFrame,
    columns: Sequence[str],
    key: Sequence[str],
    fillable: Sequence[str],
    names: MetadataColumns,
) -> DataFrame:
    """Fold decoded changes, filling unavailable values from older changes of the same key.

    Args:
        decoded: ``key_row``, ``op``, ``position``, ``row``, ``unavailable``, ``moved_from_row``
            (the old key of a primary-key change, else NULL), ``below`` (the position below which
            the row had that old key); ``event`` where the tables have RFC-39's columns; ``END``
            where each transaction has its own payloads.
        columns: The table's column names.
        key: Names of its key columns.
        fillable: Names of the columns that can be unavailable.
        names: Names of the metadata columns.

    Returns:
        Merge payloads: the columns, the metadata columns, ``FIRST_OP`` and ``LINK``. ``LINK`` says
        where to look for the columns that are still missing (struct ``key_row``, ``position`` of
        the key change, ``below``); NULL where no primary-key change explains them.
    """
    carried = (*carried_event(decoded), *carried_end(decoded))
    return _row_fold(tuple(columns), tuple(key), tuple(fillable), carried, names).of(decoded)


@made_once
def _row_fold(
    columns: tuple[str, ...],
    key: tuple[str, ...],
    fillable: tuple[str, ...],
    carried: tuple[str, ...],
    names: MetadataColumns,
) -> _Fold:
    event = (EVENT,) if EVENT in carried else ()
    # A change of the record's key that keeps a declared key is a delete and a create at one place.
    place = F.struct("position", F.col("op") != "d")
    aggregates = {
        _LAST: F.max_by(F.struct("op", "row", *event), place),
        _POSITION: F.max("position"),
        _FIRST: F.min_by("op", place),
        **evidence(fillable),
    }
    deleted = F.col(f"{_LAST}.op") == "d"
    values, entries = [], []
    for name in columns:
        if name not in fillable:
            values.append(_value(name, key, deleted, F.col(f"{_LAST}.row").getField(name)))
            continue
        values.append(
            F.when(~deleted & is_value(name), found_value(name).getField("value")).alias(name)
        )
        entries.append(F.struct(F.lit(name).alias("key"), _entry(name).alias("value")))
    older = present_entries(entries)
    positions = F.when(~deleted & (F.size(older) > 0), older)
    at_move = missing_below(F.col(f"{MOVED}.position"))
    unresolved = F.exists(F.map_values(older), lambda v: v == at_move)
    result = (
        *_with_event(values, F.col(_LAST).getField(EVENT), deleted, names),
        F.col(_POSITION).alias(names.position),
        deleted.alias(names.deleted),
        positions.alias(names.column_positions),
        F.col(_FIRST).alias(FIRST_OP),
        F.when(~deleted & (F.size(older) > 0) & unresolved, F.col(MOVED)).alias(LINK),
    )
    return _fold(("key_row",), aggregates, result, (END,) if END in carried else ())


def leaves_values_at_old_key() -> Column:
    """Return whether a decoded change moved its row here and omits some of its values."""
    return F.col("moved_from_row").isNotNull() & (F.size(_left_out()) > 0)


def _left_out() -> Column:
    return F.coalesce(F.col("unavailable"), F.array().cast("array<string>"))


def evidence(fillable: Sequence[str]) -> dict[str, Column]:
    """Aggregate the changes of one key: each column's newest value, and its position.

    Returns:
        By name: a struct for each column (struct value, position of the newest value),
        ``DELETED_AT``, and ``MOVED``: struct ``key_row``, ``position``, ``below`` of the newest
        primary-key change that omits values.
    """
    position = F.col("position")
    has_row = F.col("op") != "d"
    left_out = _left_out()
    aggregates = {
        DELETED_AT: F.max(F.when(~has_row, position)),
        MOVED: F.max_by(
            F.struct(F.col("moved_from_row").alias("key_row"), position, "below"),
            F.when(leaves_values_at_old_key(), position),
        ),
    }
    for name in fillable:
        available = has_row & ~F.array_contains(left_out, F.lit(name))
        value = F.struct(F.col("row").getField(name).alias("value"), position)
        aggregates[_value_column(name)] = F.max_by(value, F.when(available, position))
    return aggregates


def _value_column(name: str) -> str:
    return f"{OURS}found_{name}"


def is_value(name: str) -> Column:
    """Return, over ``evidence``, whether the newest state of this column is a value."""
    at = named(_value_column(name)).getField("position")
    return (
        at.isNotNull()
        & (at >= F.coalesce(F.col(DELETED_AT), F.lit("")))
        & (at >= F.coalesce(F.col(f"{MOVED}.position"), F.lit("")))
    )


def found_value(name: str) -> Column:
    """Return, over ``evidence``, this column's newest value: a struct (value, position)."""
    return named(_value_column(name))


def _entry(name: str) -> Column:
    """Return a column's position or missing mark; NULL where it has the row's position."""
    at = named(_value_column(name)).getField("position")
    never = F.lit("")
    began_at = F.greatest(
        F.coalesce(F.col(DELETED_AT), never), F.coalesce(F.col(f"{MOVED}.position"), never)
    )
    return (
        F.when(is_value(name) & (at == F.col(_POSITION)), F.lit(None).cast("string"))
        .when(is_value(name), at)
        .otherwise(missing_below(began_at))
    )


def _with_event(
    values: list[Column], event: Column, deleted: Column, names: MetadataColumns
) -> list[Column]:
    """Put RFC-39's columns, all of the last event, where Hudi's streamer has them.

    An update that is split in two deletes its old row, but its event says that it is an update.
    """
    fields = {name: event.getField(name) for name in names.event}
    if fields:
        fields[OPERATION] = F.when(deleted, F.lit(GONE)).otherwise(fields[OPERATION])
    event_columns = {name: value.alias(name) for name, value in fields.items()}
    sequence = [event_columns.pop(SEQUENCE)] if SEQUENCE in event_columns else []
    return [*event_columns.values(), *values, *sequence]


def _value(name: str, key: Sequence[str], deleted: Column, value: Column) -> Column:
    if name in key:
        return F.col("key_row").getField(name).alias(name)
    return F.when(~deleted, value).alias(name)
