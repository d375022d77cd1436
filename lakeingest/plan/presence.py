"""Which columns the records of a batch have: all of them, some of them, or none any more.

A field that is not there is no NULL. With schemas it is known of each record by the name of its
schema. Without, only the newest record of each partition is looked at on the driver, so a column
that the last batch had, and that some of those lack now, may have gone anywhere in this batch:
then, and only then, each record is looked into. From the next batch on it is known to be gone, and
is left out of what is decoded and merged, which costs nothing.

Without schemas, a column that goes and comes again in one batch looks as if it had been there all
the time, and one that comes and goes in one batch is not seen; the source does not have it, either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

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
    """

    left_out: frozenset[str] = frozenset()
    absences: Absences = field(default_factory=Absences)
    fills: Mapping[str, Default] = field(default_factory=dict)
    stand_ins: tuple[str, ...] = ()
    zeros: tuple[str, ...] = ()
    unfilled: tuple[str, ...] = ()


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


def _by_schema(
    shown: Shown,
    names: Sequence[str],
    stored: frozenset[str],
    before: SourceSchema | None,
    zero: Zero | None,
    *,
    exists: bool,
) -> Presence:
    versions = {tag: {c.name: c for c in columns} for tag, columns in shown.versions.items()}
    known = before.by_name() if before else {}
    had = stored & frozenset(known) if before else stored
    left_out: set[str] = set()
    stand_ins: list[str] = []
    zeros: list[str] = []
    unfilled: list[str] = []
    dropped: dict[str, frozenset[bytes]] = {}
    early: dict[str, Early] = {}
    fills: dict[str, Default] = {}
    for name in names:
        having = [tag for tag, columns in versions.items() if name in columns]
        lacking = frozenset(versions) - frozenset(having)
        if not having:
            if name in stored:
                left_out.add(name)
            continue
        if name in had:
            if lacking:
                dropped[name] = lacking
            continue
        order = list(versions)
        older = frozenset(order[: order.index(having[0])])
        if lacking - older:
            dropped[name] = lacking - older
        first = versions[having[0]][name]
        # One that was there before, and not taken in, has values that are lost, not the default.
        if name in known or not (exists or older):
            continue
        default = first.default
        if default is None:
            if zero is None or first.nullable is not False:
                continue
            default = zero(first)
            (unfilled if default is None else zeros).append(name)
            if default is None:
                continue
        elif is_stand_in(first):
            stand_ins.append(name)
            continue
        value = Default(default, having[0])
        if older:
            early[name] = Early(older, value)
        if exists:
            fills[name] = value
    return Presence(
        frozenset(left_out),
        Absences(dropped, early),
        fills,
        tuple(stand_ins),
        tuple(zeros),
        tuple(unfilled),
    )
