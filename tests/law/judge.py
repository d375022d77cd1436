"""Runs cases; says which of them the table got wrong, with the smallest history that shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from lakeingest.errors import LakeingestError
from tests.law.history import Case
from tests.law.ingest import Ingest
from tests.law.oracle import VALUES, Row

NewTable = Callable[[], Ingest]
Rows = dict[int, dict[int, Row]]
"""Live rows: history, key, values."""

FAILURES = (PySparkException, Py4JError, LakeingestError)


@dataclass(frozen=True)
class Wrong:
    """A case that the table got wrong."""

    case: Case
    number: int
    expected: object
    rows: object

    def __str__(self) -> str:
        return (
            f"after round {self.number} the source has\n  {self.expected}\nand the lake\n"
            f"  {self.rows}\n{self.case.described()}"
        )


def live(table: Ingest) -> Rows:
    """Return the live rows of a table, as delta-rs reads them."""
    histories: Rows = {}
    for history, key, *values in table.live("h", "id", *VALUES):
        rows = histories.setdefault(history, {})
        number = table.number(key)
        assert number not in rows, f"key {history, key} is in the table twice"
        rows[number] = dict(zip(VALUES, values, strict=True))
    return histories


def wrong_cases(new_table: NewTable, cases: Sequence[Case]) -> list[Wrong]:
    """Deliver all cases into one table; return those whose rows differ, at their first round."""
    table = new_table()
    wrong: dict[int, Wrong] = {}
    rounds = [
        [item for number, case in enumerate(cases) for item in table.arriving(case, number, round_)]
        for round_ in range(max(len(case.rounds) for case in cases))
    ]
    for round_ in table.deliver(rounds):
        if all(case.truth(round_) is None for case in cases):
            continue
        histories = live(table)
        for number, case in enumerate(cases):
            expected = case.truth(round_)
            if expected is not None and expected != histories.get(number, {}):
                wrong.setdefault(number, Wrong(case, round_, expected, histories.get(number, {})))
    return list(wrong.values())


def check(new_table: NewTable, cases: Sequence[Case]) -> None:
    """Fail with the smallest history that the table gets wrong.

    Raises:
        AssertionError: With the seed, the history and its delivery.
    """
    wrong = judged(new_table, cases)
    if wrong:
        worst = _shrunk(new_table, min(wrong, key=lambda failure: failure.case.size()))
        message = f"{len(wrong)} of {len(cases)} histories came out wrong; the smallest: {worst}"
        raise AssertionError(message)


def judged(new_table: NewTable, cases: Sequence[Case]) -> list[Wrong]:
    """As ``wrong_cases``; a batch that fails altogether is halved until one case is left."""
    try:
        return wrong_cases(new_table, cases)
    except FAILURES as error:
        if len(cases) == 1:
            text = f"{type(error).__name__}: {str(error)[:300]}"
            return [Wrong(cases[0], 0, cases[0].truth(len(cases[0].rounds)), text)]
    half = len(cases) // 2
    return judged(new_table, cases[:half]) or judged(new_table, cases[half:])


def _shrunk(new_table: NewTable, wrong: Wrong) -> Wrong:
    """Take out statements while it stays wrong: all candidates of a step share one table."""
    best, left = wrong, 8
    while left:
        left -= 1
        case = best.case
        places = [n for n, statement in enumerate(case.statements) if statement is not None]
        halves = (places[: len(places) // 2], places[len(places) // 2 :])
        parts = [frozenset(part) for part in (*halves, *([n] for n in places))]
        still = judged(new_table, [case.without(part) for part in parts if len(part) < len(places)])
        smaller = min(still, key=lambda failure: failure.case.size(), default=None)
        if smaller is None:
            break
        best = smaller
    return best
