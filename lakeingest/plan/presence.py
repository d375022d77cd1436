"""Which columns the records of a batch have: all of them, some of them, or none any more.

A field that is not there is no NULL. With schemas it is known of each record by the name of its
schema. Without, only the newest record of each partition is looked at on the driver, so a column
that the last batch had, and that some of those lack now, may have gone anywhere in this batch:
then, and only then, each record is looked into. From the next batch on it is known to be gone, and
is left out of what is decoded and merged, which costs nothing.

Without schemas, a column that goes and comes again in one batch looks as if it had been there all
the time, and one that comes and goes in one batch is not seen; the source does not have it, either.

A column that comes in the step in which another one goes may be that one under a new name, and then
old rows have its values, not the new column's default. Rejected: to match the two by type, which
takes a guess for a value: NULL and a warning are no wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.defaults import Default, is_stand_in
from lakeingest.decode.row import Absences, Early
from lakeingest.decode.wire import Shown
from lakeingest.plan.evolution import SourceSchema


@dataclass(frozen=True)
class Presence:
    """What becomes of the columns that not all records have.

    Attributes:
        left_out: The lake's columns that no record of the batch has.
        absences: Columns that some of them have.
        fills: Columns that are new to a table with rows, and the default of those rows; the lake
            may have one already, because it was declared before, or was there once.
        stand_ins: New columns whose default is an expression at the source.
        zeros: Of ``fills``, those whose default is the zero of their type, which nobody wrote.
        unfilled: New columns whose old rows have a zero that is not known.
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
"""The value that old rows have of a column that is added NOT NULL without a default, in JSON."""


def presence(
    shown: Shown,
    columns: Sequence[SourceColumn],
    lake: Collection[str] | None,
    before: SourceSchema | None,
    fixed: Collection[str],
    zero: Zero | None = None,
) -> Presence:
    """Tell which columns are in all records of a batch.

    Args:
        shown: What the records show.
        columns: All columns that they may have.
        lake: Columns of the lake's table; null: there is none yet.
        before: The source's table after the last batch, where it is known.
        fixed: Columns that the table cannot do without: key and partition.
        zero: Gives null where it is not known; null itself: the source adds no such column.
    """
    if not shown.rows:
        return Presence()
    stored = frozenset(lake or ())
    names = [column.name for column in columns if column.name not in fixed]
    if shown.versions:
        return _by_schema(shown, names, stored, before, zero, exists=lake is not None)
    known = before.by_name() if before else stored
    absent = [name for name in names if name in stored and name not in shown.everywhere]
    # One that the last batch did not have is new here, and older records have no word on it.
    looked_for = [name for name in absent if name in known]
    new = {name for name in absent if name in shown.fields}
    return Presence(
        frozenset(absent) - frozenset(looked_for) - new,
        Absences(dropped=dict.fromkeys(looked_for, ())),
    )


@dataclass(frozen=True)
class _Seen:
    """A column in the schemas of a batch.

    Attributes:
        tag: Of the first schema that has it.
        column: The column there.
        previous: The schema before that one; null: it is the batch's first.
        older: Schemas before that one, which lack it.
        gone: Later ones that lack it.
    """

    tag: bytes
    column: SourceColumn
    previous: bytes | None
    older: frozenset[bytes]
    gone: frozenset[bytes]


class _Told(Enum):
    """What a new column's schema tells of the rows that are older than it."""

    NOTHING = auto()
    DEFAULT = auto()
    STAND_IN = auto()
    ZERO = auto()
    UNKNOWN_ZERO = auto()
    RENAMED = auto()


def _by_schema(
    shown: Shown,
    names: Sequence[str],
    stored: frozenset[str],
    before: SourceSchema | None,
    zero: Zero | None,
    *,
    exists: bool,
) -> Presence:
    known = before.by_name() if before else {}
    had = stored & frozenset(known) if before else stored
    found = {name: _seen(name, shown.versions) for name in names}
    there = {name: seen for name, seen in found.items() if seen is not None}
    lacking = {name: s.older | s.gone if name in had else s.gone for name, s in there.items()}
    # One that was there before, and not taken in, has values that are lost, not the default.
    new = {
        name: seen
        for name, seen in there.items()
        if name not in had and name not in known and (exists or seen.older)
    }
    last = frozenset(known) if before else stored
    told = {
        name: _told(seen.column, zero, renamed=_may_be_renamed(seen, shown.versions, last))
        for name, seen in new.items()
    }
    values = {
        name: Default(text, new[name].tag) for name, (_, text) in told.items() if text is not None
    }

    def of(wanted: _Told) -> tuple[str, ...]:
        return tuple(name for name, (what, _) in told.items() if what is wanted)

    return Presence(
        frozenset(name for name, seen in found.items() if seen is None and name in stored),
        Absences(
            {name: tags for name, tags in lacking.items() if tags},
            {n: Early(new[n].older, value) for n, value in values.items() if new[n].older},
        ),
        values if exists else {},
        of(_Told.STAND_IN),
        of(_Told.ZERO),
        of(_Told.UNKNOWN_ZERO),
        of(_Told.RENAMED),
    )


def _seen(name: str, versions: Mapping[bytes, Sequence[SourceColumn]]) -> _Seen | None:
    """Find a column in the schemas, oldest first; null: none of them has it."""
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
    return _Seen(tag, first, before[-1] if before else None, older, gone)


def _may_be_renamed(
    seen: _Seen, versions: Mapping[bytes, Sequence[SourceColumn]], last: frozenset[str]
) -> bool:
    """Tell whether a column goes in the step that brings this one.

    Args:
        seen: The new column.
        versions: The batch's schemas.
        last: Columns before the first of them.
    """
    now = {column.name for column in versions[seen.tag]}
    if seen.previous is None:
        return not last <= now
    return not {column.name for column in versions[seen.previous]} <= now


def _told(column: SourceColumn, zero: Zero | None, *, renamed: bool) -> tuple[_Told, str | None]:
    """Tell what old rows have of a new column; the text in JSON, where it is known."""
    what, text = _told_of_new(column, zero)
    return (_Told.RENAMED, None) if renamed and text is not None else (what, text)


def _told_of_new(column: SourceColumn, zero: Zero | None) -> tuple[_Told, str | None]:
    if column.default is not None:
        return (_Told.STAND_IN, None) if is_stand_in(column) else (_Told.DEFAULT, column.default)
    if zero is None or column.nullable is not False:
        return _Told.NOTHING, None
    text = zero(column)
    return (_Told.UNKNOWN_ZERO if text is None else _Told.ZERO), text
