"""Oracle 3: every published snapshot equals the source after *some* commit, and never goes back.

The checker is not told which commit a publication should show. It looks the totals of all tables
up among the totals after every commit, so a snapshot that mixes two commits (torn), misses a row,
or repeats one is found whatever the lake says about itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.recordings.oracle import Measures, Totals

DESCRIBED = 5
"""Violations that look for the nearest commit, which reads all of them."""

Fingerprint = frozenset[tuple[str, frozenset[tuple[str, int]]]]


def fingerprint(totals: Totals, ignored: frozenset[str] = frozenset()) -> Fingerprint:
    """Return the comparable form of ``totals``.

    A measure of zero and a measure that is not there are the same: an empty table has no row in
    the lake, and the source counts a column only from the ALTER TABLE that adds it. ``ignored``
    are measures as ``table.measure`` that are not compared.
    """
    return frozenset(
        (
            table,
            frozenset((m, v) for m, v in measures.items() if v and f"{table}.{m}" not in ignored),
        )
        for table, measures in totals.items()
        if any(v and f"{table}.{m}" not in ignored for m, v in measures.items())
    )


@dataclass(frozen=True)
class Place:
    """Where a snapshot stands: the first and last commit with its totals, at or after the last.

    Several commits have equal totals where one of them changed nothing that is counted.
    """

    first: int
    last: int


@dataclass
class PrefixChecker:
    """Says for one snapshot after another which commit it shows.

    Attributes:
        commits: Totals after every commit, from 0; ``extend`` adds more.
        ignored: Measures (``table.measure``) that the events cannot carry.
        most: Commits that one step may advance; None for any number.
        violations: What was wrong, in order.
        place: Where the last good snapshot stands.
    """

    commits: Iterable[Totals] = ()
    ignored: frozenset[str] = frozenset()
    most: int | None = None
    violations: list[str] = field(default_factory=list)
    place: Place | None = None

    def __post_init__(self) -> None:
        self._totals: list[Totals] = []
        self._at: dict[Fingerprint, list[int]] = {}
        self._names: dict[str, dict[str, None]] = {}
        self.extend(self.commits)

    def extend(self, commits: Iterable[Totals]) -> None:
        """Take note of what the source committed since."""
        for totals in commits:
            self._at.setdefault(fingerprint(totals, self.ignored), []).append(len(self._totals))
            self._totals.append(totals)
            for table, measures in totals.items():
                self._names.setdefault(table, {}).update(dict.fromkeys(measures))

    @property
    def newest(self) -> int:
        """The number of the last commit that is known."""
        return len(self._totals) - 1

    @property
    def measures(self) -> Mapping[str, tuple[str, ...]]:
        """Every measure the source has at any commit, per table."""
        return {table: tuple(names) for table, names in self._names.items()}

    def check(self, label: str, totals: Totals) -> Place | None:
        """Return where ``totals`` stand, or None after noting a violation for ``label``."""
        seen = self._at.get(fingerprint(totals, self.ignored))
        if seen is None:
            self.violations.append(f"{label}: no commit has these totals; {self._nearest(totals)}")
            return None
        lowest = 0 if self.place is None else self.place.first
        onward = [n for n in seen if n >= lowest]
        if not onward:
            self.violations.append(f"{label}: went back to commit {seen[-1]} from {lowest}")
            return None
        if self.most is not None and self.place is not None:
            # From the last commit the previous one may show: equal totals give the benefit.
            step = onward[0] - self.place.last
            if step > self.most:
                self.violations.append(f"{label}: {step} commits in one step, at most {self.most}")
        self.place = Place(onward[0], _run_end(onward))
        return self.place

    def _nearest(self, totals: Totals) -> str:
        """Describe the commit that agrees in the most tables, and where it does not."""
        if len(self.violations) >= DESCRIBED:
            return "see the first ones for where"
        own = dict(fingerprint(totals, self.ignored))
        best, at = -1, 0
        for n, commit in enumerate(self._totals):
            other = dict(fingerprint(commit, self.ignored))
            same = sum(own.get(t) == other.get(t) for t in {*own, *other})
            if same > best:
                best, at = same, n
        first = _first_difference(self._totals[at], totals, self.ignored)
        return f"nearest is commit {at}, but {first}"


def _run_end(numbers: Sequence[int]) -> int:
    """Return the end of the unbroken run of numbers that starts with the first."""
    end = numbers[0]
    for n in numbers[1:]:
        if n != end + 1:
            break
        end = n
    return end


def _first_difference(source: Totals, lake: Totals, ignored: frozenset[str]) -> str:
    empty: Measures = {}
    for table in sorted({*source, *lake}):
        want, got = source.get(table, empty), lake.get(table, empty)
        for measure in (*want, *(m for m in got if m not in want)):
            if f"{table}.{measure}" in ignored:
                continue
            if want.get(measure, 0) != got.get(measure, 0):
                return f"{table}.{measure} is {got.get(measure, 0)}, not {want.get(measure, 0)}"
    return "the difference is in a table that is not compared"


def shop_violations(label: str, totals: Totals) -> Iterable[str]:
    """Yield which of the shop's invariants ``totals`` break.

    For runs without recorded commits (MariaDB): every transaction keeps these, so a snapshot that
    holds part of one, or tables of different commits, breaks one of them. Needs the measure
    ``worth`` of order_lines: sum of qty times price_cents.
    """
    empty: Measures = {}
    orders, lines = totals.get("orders", empty), totals.get("order_lines", empty)
    for what, one, other in (
        ("orders.line_count and lines", orders.get("sum_line_count", 0), lines.get("count", 0)),
        ("orders.total_cents and lines", orders.get("sum_total_cents", 0), lines.get("worth", 0)),
        (
            "customers.spent_cents and orders",
            totals.get("customers", empty).get("sum_spent_cents", 0),
            orders.get("sum_total_cents", 0),
        ),
        (
            "ledger.revenue_cents and orders",
            totals.get("ledger", empty).get("sum_revenue_cents", 0),
            orders.get("sum_total_cents", 0),
        ),
    ):
        if one != other:
            yield f"{label}: {what} differ, {one} and {other}"


SHOP_MEASURES: Mapping[str, tuple[str, ...]] = {
    "orders": ("count", "sum_line_count", "sum_total_cents"),
    "order_lines": ("count", "worth"),
    "customers": ("count", "sum_spent_cents"),
    "ledger": ("count", "sum_revenue_cents"),
}
"""Measures that ``shop_violations`` needs."""
