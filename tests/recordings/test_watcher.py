"""A reader must see what it is there to see."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.recordings.oracle import Totals
from tests.recordings.prefix import PrefixChecker
from tests.recordings.totals import Publication
from tests.recordings.watcher import Watcher

COMMITS: Sequence[Totals] = [{"a": {"count": n}, "b": {"count": 10 * n}} for n in range(5)]


@dataclass(frozen=True)
class Shown:
    """What a lake shows at one look: its newest publication and the row counts of two tables."""

    batch: int
    a: int
    b: int


@dataclass
class StubLake:
    """A lake that shows one thing after another; null: there is nothing; an error is raised."""

    shown: Sequence[Shown | OSError | None]
    looks: int = 0

    def newest(self) -> Publication | None:
        now = self.shown[min(self.looks, len(self.shown) - 1)]
        self.looks += 1
        if isinstance(now, OSError):
            raise now
        return None if now is None else Publication(now.batch, {"a": now.a, "b": now.b}, 1)

    def totals(self, publication: Publication, measures: Mapping[str, Iterable[str]]) -> Totals:
        return {table: {"count": publication.versions[table]} for table in measures}


def looks(*shown: Shown | OSError | None) -> tuple[str, int]:
    """Return what a reader objects to when it finds one after another, and what it compared."""
    lake = StubLake(shown)
    watcher = Watcher(lake, PrefixChecker(COMMITS), pause=0.001)
    watcher.start()
    deadline = time.monotonic() + 60
    # Once the next look begins, the look at the last one is over.
    while lake.looks <= len(shown):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    watcher.stop()
    return "\n".join(watcher.violations), watcher.checks


def test_commits_in_order_are_accepted_and_the_first_is_waited_for() -> None:
    shown = [Shown(n, n, 10 * n) for n in (1, 1, 3, 4)]
    said, checks = looks(None, None, *shown)
    assert said == ""
    assert checks >= len(shown)


def test_a_torn_snapshot_is_seen() -> None:
    said, _ = looks(Shown(1, 1, 10), Shown(2, 2, 10))
    assert "no commit has these totals" in said


def test_a_snapshot_that_goes_back_is_seen() -> None:
    said, _ = looks(Shown(1, 3, 30), Shown(2, 2, 20))
    assert "went back to commit 2 from 3" in said


def test_a_publication_that_vanishes_is_seen() -> None:
    assert "publication 2 is gone, the newest is 1" in looks(Shown(2, 2, 20), Shown(1, 1, 10))[0]
    assert "publication 1 is gone, there is none" in looks(Shown(1, 1, 10), None)[0]


def test_a_lake_that_cannot_be_read_is_seen() -> None:
    said, _ = looks(Shown(1, 1, 10), FileNotFoundError("part-1.parquet"))
    assert "reader after 1: FileNotFoundError: part-1.parquet" in said
