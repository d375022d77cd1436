from __future__ import annotations

from collections import Counter
from typing import Any

from tests.workloads.crew import Pace
from tests.workloads.shop.run import ALTER, DECK, GIANTS, SIGNAL_STEP, TRUNCATES, Schedule, Shop
from tests.workloads.source import Server, Source


class NoServer(Server):
    def connect(self, database: str = "", **settings: Any) -> Any:
        message = "a schedule asks no database"
        raise AssertionError(message)


def dealt(seed: int, schedule: Schedule, number: int) -> list[str]:
    shop = Shop(Source(NoServer(), "none", "postgresql"), seed, Pace(), schedule)
    return [shop.turn(n).name for n in range(1, number + 1)]


def test_every_kind_comes_once_a_deck_and_as_often_as_its_cards_say() -> None:
    size = sum(step.cards for step in DECK)
    first = Counter(dealt(1, Schedule(giant_every=None), size))
    assert first == Counter({step.name: step.cards for step in DECK})


def test_a_seed_repeats_the_deck_and_another_does_not() -> None:
    assert dealt(1, Schedule(), 300) == dealt(1, Schedule(), 300) != dealt(2, Schedule(), 300)


def test_what_is_rare_comes_when_the_schedule_says() -> None:
    names = dealt(1, Schedule(giant_every=10, alter_at=25, signal_every=7), 30)
    assert [names[n - 1] for n in (10, 20, 30)] == [step.name for step in GIANTS]
    assert names.index(ALTER.name) == 24
    assert [n for n, name in enumerate(names, 1) if name == SIGNAL_STEP.name] == [7, 14, 21, 28]


def test_no_truncate_comes_before_its_time() -> None:
    truncates = {step.name for step in TRUNCATES}
    assert len(truncates) == 3
    names = dealt(1, Schedule(truncate_from=300), 600)
    assert not truncates & set(names[:299])
    assert truncates <= set(names[299:])
