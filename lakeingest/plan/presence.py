"""Find which records of a batch have a column: all of them, some of them, or none any more.

A missing field is not a NULL. With schemas, the name of a record's schema says which fields the
record has. Without schemas, the driver looks only at the newest record of each partition. A column
that the last batch had, and that some of these records lack, may have gone anywhere in this batch.
Then, and only then, Spark looks into each record. From the next batch on, the column is known to be
gone: it is neither decoded nor merged, which costs nothing. Only a column that the table is
partitioned by stays in each merge: without it, the row would move to the partition of NULL.

Without schemas, a column that goes and comes again in one batch looks as if it never went. A column
that comes and goes in one batch is not seen; the source does not have it, either.

A column that comes in the step in which another one goes may be that one under a new name. Then old
rows have the values of the old column, not the default of the new one. Rejected: match the two by
type. It would store a guess as a value; NULL and a warning store no wrong value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.defaults import Default, is_stand_in
from lakeingest.decode.row import Absences, AddedColumn
from lakeingest.decode.wire import TableShape
from lakeingest.plan.evolution import SourceSchema


@dataclass(frozen=True)
class Presence:
    """How to handle the columns that not all records have.

    Attributes:
        left_out: The lake's columns that no record of the batch has.
        absences: Columns that only some of the records have.
        fills: Columns that are new to a table with rows, and the default of these rows. The lake
            may have such a column already: it was declared before, or it existed once.
        stand_ins: New columns whose default is an expression at the source.
        zeros: Columns of ``fills`` whose default is the zero of their type, which nobody declared.
        unfilled: New columns that are NOT NULL, whose value in old rows nothing shows.
        renamed: New columns that may be old ones under a new name: they get no default.
    """

    left_out: frozenset[str] = frozenset()
    absences: Absences = field(default_factory=Absences)
    fills: Mapping[str, Default] = field(default_factory=dict)
    stand_ins: tuple[str, ...] = ()
    zeros: tuple[str, ...] = ()
    unfilled: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()


Zero = Callable[[SourceColumn], str | None]
"""Gives the value, in JSON, of old rows in a column that is added NOT NULL without a default."""


def presence(
    shown: TableShape,
    columns: Sequence[SourceColumn],
    lake: Collection[str] | None,
    before: SourceSchema | None,
    partition: Collection[str],
    zero: Zero | None = None,
) -> Presence:
    """Return which columns not all records of a batch have, and how to handle them.

    Args:
        shown: Columns and format of the table, from its records.
        columns: All columns that the records may have, but those of the key.
        lake: Columns of the lake's table; None: there is no table yet.
        before: Schema of the source's table after the last batch; None: unknown.
        partition: Columns that the lake's table is partitioned by. Each merge needs them, so none
            is left out: it counts as dropped in every record that lacks it.
        zero: Returns None for an unknown zero. None instead of a function: the source fills no
            column in this way. Then a NOT NULL column had a DEFAULT that its schema does not name.
    """
    if not shown.rows:
        return Presence()
    names = [column.name for column in columns]
    if shown.versions:
        return _by_schema(shown, names, lake, before, partition, zero)
    lake_columns = frozenset(lake or ())
    columns_before = {*(before.by_name() if before else lake_columns), *partition}
    maybe_gone = [name for name in names if name in lake_columns and name not in shown.everywhere]
    # A column that the last batch did not have is new here; older records cannot have it.
    check_each = [name for name in maybe_gone if name in columns_before]
    new = {name for name in maybe_gone if name in shown.fields}
    return Presence(
        frozenset(maybe_gone) - frozenset(check_each) - new,
        Absences(dropped=dict.fromkeys(check_each, ())),
    )


@dataclass(frozen=True)
class _Appearance:
    """Where a column appears in the schemas of a batch.

    Attributes:
        tag: Tag of the first schema that has the column.
        column: The column in that schema.
        previous: Tag of the schema before that one; None: it is the batch's first.
        older: Tags of the schemas before that one, which lack the column.
        gone: Tags of later schemas that lack the column.
    """

    tag: bytes
    column: SourceColumn
    previous: bytes | None
    older: frozenset[bytes]
    gone: frozenset[bytes]


class _OldValue(Enum):
    """What the schema of a new column says about the rows that are older than it."""

    NOTHING = auto()
    DEFAULT = auto()
    STAND_IN = auto()
    ZERO = auto()
    UNKNOWN = auto()
    RENAMED = auto()


def _by_schema(
    shown: TableShape,
    names: Sequence[str],
    lake: Collection[str] | None,
    before: SourceSchema | None,
    partition: Collection[str],
    zero: Zero | None,
) -> Presence:
    exists, lake_columns = lake is not None, frozenset(lake or ())
    columns_before = before.by_name() if before else {}
    # A partition column is never new: the default of its old rows would move them.
    old_columns = lake_columns & {*columns_before, *partition} if before else lake_columns
    appearances = {name: _appearance(name, shown.versions) for name in names}
    present = {
        name: appearance for name, appearance in appearances.items() if appearance is not None
    }
    absent = frozenset(appearances) - frozenset(present)
    tags_without = {
        name: s.older | s.gone if name in old_columns else s.gone for name, s in present.items()
    }
    tags_without |= dict.fromkeys(absent.intersection(partition), frozenset(shown.versions))
    # The source may have had a column before that the lake ignored. Its values are lost: the
    # default would be wrong.
    new = {
        name: appearance
        for name, appearance in present.items()
        if name not in old_columns and name not in columns_before and (exists or appearance.older)
    }
    last = frozenset(columns_before) if before else lake_columns
    old_values = {
        name: _old_value(
            appearance.column, zero, renamed=_may_be_renamed(appearance, shown.versions, last)
        )
        for name, appearance in new.items()
    }
    values = {
        name: Default(text, new[name].tag)
        for name, (_, text) in old_values.items()
        if text is not None
    }

    def of(case: _OldValue) -> tuple[str, ...]:
        return tuple(name for name, (kind, _) in old_values.items() if kind is case)

    return Presence(
        left_out=(absent & lake_columns).difference(partition),
        absences=Absences(
            {name: tags for name, tags in tags_without.items() if tags},
            {n: AddedColumn(new[n].older, value) for n, value in values.items() if new[n].older},
        ),
        fills=values if exists else {},
        stand_ins=of(_OldValue.STAND_IN),
        zeros=of(_OldValue.ZERO),
        unfilled=of(_OldValue.UNKNOWN),
        renamed=of(_OldValue.RENAMED),
    )


def _appearance(name: str, versions: Mapping[bytes, Sequence[SourceColumn]]) -> _Appearance | None:
    """Find a column in the schemas, oldest first; return None if no schema has it."""
    having = {
        tag: column
        for tag, columns in versions.items()
        for column in columns
        if column.name == name
    }
    if not having:
        return None
    tag, first = next(iter(having.items()))
    order = list(versions)
    before = order[: order.index(tag)]
    older = frozenset(before)
    gone = frozenset(versions) - frozenset(having) - older
    return _Appearance(tag, first, before[-1] if before else None, older, gone)


def _may_be_renamed(
    appearance: _Appearance, versions: Mapping[bytes, Sequence[SourceColumn]], last: frozenset[str]
) -> bool:
    """Return whether another column goes in the step in which this one comes.

    Args:
        appearance: The new column.
        versions: The batch's schemas.
        last: Columns before the first of these schemas.
    """
    now = {column.name for column in versions[appearance.tag]}
    if appearance.previous is None:
        return not last <= now
    return not {column.name for column in versions[appearance.previous]} <= now


def _old_value(
    column: SourceColumn, zero: Zero | None, *, renamed: bool
) -> tuple[_OldValue, str | None]:
    """Return what old rows have in a new column; with the text in JSON, where it is known."""
    kind, text = _declared_value(column, zero)
    return (_OldValue.RENAMED, None) if renamed and text is not None else (kind, text)


def _declared_value(column: SourceColumn, zero: Zero | None) -> tuple[_OldValue, str | None]:
    if column.default is not None:
        return (
            (_OldValue.STAND_IN, None)
            if is_stand_in(column)
            else (_OldValue.DEFAULT, column.default)
        )
    if column.nullable is not False:
        return _OldValue.NOTHING, None
    text = zero(column) if zero else None
    return (_OldValue.UNKNOWN if text is None else _OldValue.ZERO), text
