"""Orders of arrival and the row that each must leave: those that Hudi's tests know, and ours.

Numbers 1 to 16 are cases of the tests of Hudi's Debezium payload classes, 17 to 29 are cases that
they lack. A case is a few events about keys of its own; each inner tuple of ``rounds`` arrives in
one batch. ``at`` is a place in the source's log: an LSN, or a binlog file and an offset in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

TOASTED = ("doc", "blob", "tags", "nums")
COLUMNS = "x BIGINT, doc STRING, blob BINARY, tags ARRAY<STRING>, nums ARRAY<INT>"
"""``x`` is in every event; the others may be left out of an update."""

Place = int | tuple[int, int]
Values = Mapping[str, Any]


class Left(Enum):
    """What an event has for a value that it leaves out."""

    OUT = "unavailable"


@dataclass(frozen=True)
class Event:
    """One change event; ``op`` is Debezium's, and ``0`` a null record.

    ``header``: whether the create of a changed key names the old one.
    """

    op: str
    at: Place
    values: Values = field(default_factory=dict)
    id: int = 1
    moved_from: int | None = None
    header: bool = True


def c(at: Place, id_: int = 1, **values: Any) -> Event:
    """Return an insert."""
    return Event("c", at, {"x": _number(at), **values}, id_)


def u(at: Place, id_: int = 1, **values: Any) -> Event:
    """Return an update."""
    return Event("u", at, {"x": _number(at), **values}, id_)


def r(at: Place, id_: int = 1, **values: Any) -> Event:
    """Return a row of the initial snapshot."""
    return Event("r", at, {"x": _number(at), **values}, id_)


def d(at: Place, id_: int = 1) -> Event:
    """Return a delete."""
    return Event("d", at, {}, id_)


def moved(at: Place, old: int, new: int, **values: Any) -> tuple[Event, Event]:
    """Return the two events of a primary-key change."""
    return d(at, old), Event("c", at, {"x": _number(at), **values}, new, old)


def _number(at: Place) -> int:
    return at if isinstance(at, int) else at[0] * 1000 + at[1]


@dataclass(frozen=True)
class Vector:
    """Events in their order of arrival, and what they must leave.

    Attributes:
        number: As in the list of Hudi's and our cases.
        says: What it is about.
        rounds: Per batch the events that arrive.
        rows: Key -> values that the row must have; a key that is not there must be gone.
    """

    number: str
    says: str
    rounds: tuple[tuple[Event, ...], ...]
    rows: Mapping[int, Values]


GONE: Mapping[int, Values] = {}
A, B, V = "A" * 40, "B" * 40, "V" * 40
OUT = Left.OUT

POSTGRESQL = (
    Vector("1", "an insert", ((c(100),),), {1: {"x": 100}}),
    Vector("2", "an update above", ((c(99),), (u(100),)), {1: {"x": 100}}),
    Vector("3", "a late update", ((c(99),), (u(98),)), {1: {"x": 99}}),
    Vector("4", "a delete above", ((u(99),), (d(100),)), GONE),
    Vector("5", "a late delete", ((u(99),), (d(98),)), {1: {"x": 99}}),
    Vector("6", "all in one batch", ((c(120), u(99), d(111)),), {1: {"x": 120}}),
    Vector("7", "a row without a position of the stream", ((r(500),), (u(100),)), {1: {"x": 100}}),
    Vector("9", "the same event again", ((c(100),), (c(100),), (c(100), c(100))), {1: {"x": 100}}),
    Vector(
        "14",
        "values left out, nulls, and values that are there",
        (
            (c(100, doc=A, blob=A.encode(), tags=None, nums=None),),
            (u(105, doc=OUT, blob=OUT, tags=[V], nums=[1, 2]),),
        ),
        {1: {"x": 105, "doc": A, "blob": A.encode(), "tags": [V], "nums": [1, 2]}},
    ),
    Vector(
        "15",
        "two keys, a stale update, a delete",
        ((c(100), c(100, 2)), (u(200),), (u(50), d(300, 2))),
        {1: {"x": 200}},
    ),
    Vector(
        "17",
        "a late value in the middle of one that was left out",
        ((c(1, doc=A),), (u(3, doc=OUT),), (u(2, doc=B),)),
        {1: {"x": 3, "doc": B}},
    ),
    Vector("18", "an update that is late for a delete", ((c(1),), (d(3),), (u(2),)), GONE),
    Vector(
        "21",
        "values of every kind left out",
        (
            (c(1, doc=A, blob=B.encode(), tags=[A, B], nums=[1, 2, 3]),),
            (u(2, doc=OUT, blob=OUT, tags=OUT, nums=OUT),),
        ),
        {1: {"x": 2, "doc": A, "blob": B.encode(), "tags": [A, B], "nums": [1, 2, 3]}},
    ),
    Vector(
        "24",
        "a primary-key change",
        ((c(1, doc=A),), moved(2, 1, 2, doc=OUT)),
        {2: {"x": 2, "doc": A}},
    ),
    Vector(
        "24a",
        "a primary-key change without its headers",
        # At a place of its own: of several deletes at one place none is taken for the pair.
        ((c(1, doc=A),), (d(24), Event("c", 24, {"x": 24, "doc": OUT}, 2, 1, header=False))),
        {2: {"x": 24, "doc": A}},
    ),
    Vector(
        "24b",
        "a swap of two keys",
        (
            (c(1, 1, doc=A), c(1, 2, doc=B)),
            (*moved(2, 1, 3, doc=OUT), *moved(3, 2, 1, doc=OUT), *moved(4, 3, 2, doc=OUT)),
        ),
        {1: {"x": 3, "doc": B}, 2: {"x": 4, "doc": A}},
    ),
    Vector("25", "a snapshot row behind an update", ((u(100),), (r(500),)), {1: {"x": 100}}),
    Vector("27", "a null record after a delete", ((c(1),), (d(2), Event("0", 2)), (u(1),)), GONE),
    Vector("29", "a delete and an insert", ((c(1),), (d(2),), (c(3),)), {1: {"x": 3}}),
)

BINLOG = (
    Vector("10", "a later file, a lower offset", ((c((1, 111)),), (u((2, 11)),)), {1: {"x": 2011}}),
    Vector("11", "an offset of fewer digits", ((c((0, 123)),), (c((0, 23)),)), {1: {"x": 123}}),
    Vector("12", "a delete of an earlier file", ((u((1, 111)),), (d((0, 222)),)), {1: {"x": 1111}}),
    Vector("13a", "100 and 50", ((u((1, 100)),), (u((1, 50)),)), {1: {"x": 1100}}),
    Vector("13b", "10 and 1", ((u((0, 10)),), (u((0, 1)),)), {1: {"x": 10}}),
    Vector("13c", "1 and 10", ((u((0, 1)),), (u((0, 10)),)), {1: {"x": 10}}),
    Vector("13d", "equal places", ((u((0, 7)),), (u((0, 7)),)), {1: {"x": 7}}),
    Vector("16", "file 9 and file 12", ((c((9, 1)),), (u((12, 1)),)), {1: {"x": 12_001}}),
    Vector(
        "22",
        "file 999999 and file 1000000",
        ((c((999_999, 5)),), (u((1_000_000, 4)),), (u((999_999, 6)),)),
        {1: {"x": 1_000_000_004}},
    ),
)
"""Without GTIDs: the order is that of the binlog."""
