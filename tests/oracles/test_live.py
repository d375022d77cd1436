from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.oracles.changes import UNCHANGED, Commit
from tests.oracles.final import disagreements
from tests.oracles.live import LiveOracle, live_oracle
from tests.oracles.slot import Slot
from tests.recordings.configure import spark_schema
from tests.recordings.oracle import Oracle, Totals
from tests.recordings.prefix import PrefixChecker
from tests.workloads.crew import Pace
from tests.workloads.places import FAMILIES, new_source, server_of
from tests.workloads.shop import CAPTURED, Schedule, Shop
from tests.workloads.source import Family

pytestmark = pytest.mark.slow

RARE = Schedule(giant_every=60, giant_rows=500, alter_at=150, signal_every=70)


@FAMILIES
def test_the_totals_after_the_last_commit_are_those_of_the_final_tables(
    family: Family, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source = new_source(server_of(family, request), family, "totals")
    shop = Shop(source, 11, Pace(transactions=400), RARE, bulk=1_000)
    shop.create()
    live = live_oracle(source, CAPTURED, tmp_path)
    live.begin()
    shop.start()
    with ThreadPoolExecutor(2) as pool:
        while shop.turns < 300:
            time.sleep(0.1)
            # As a run and the reader beside it do; each commit must come once.
            list(pool.map(lambda _: live.follow(), range(2)))
    counts = shop.finish(60)
    oracle = live.end()

    assert disagreements(oracle, live.totals, added="web") == []
    ids = [int(row[0]) for row in oracle.final("bulk").rows]
    assert ids == sorted(ids)
    commits = oracle.commits
    assert commits is not None
    silent = counts.changes["empty"] + counts.changes["read only"]
    if family == "postgresql":
        assert len(commits) - 1 == counts.committed - silent
    assert all(_sums_agree(totals) for totals in commits)
    assert set(oracle.tables) == set(CAPTURED)
    assert oracle.types is not None
    assert all(spark_schema(oracle.types[table]) for table in CAPTURED)


@FAMILIES
def test_a_run_before_the_oracle_is_in_its_initial_tables(
    family: Family, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source = new_source(server_of(family, request), family, "amid")
    shop = Shop(source, 12, Pace(), Schedule(giant_every=None))
    shop.create()
    shop.start()
    time.sleep(0.7)
    live = live_oracle(source, CAPTURED, tmp_path)
    live.begin()  # while the clients write
    time.sleep(0.7)
    shop.stop()
    oracle = live.end()

    assert disagreements(oracle, live.totals) == []
    commits = oracle.commits
    assert commits is not None
    assert commits[0]["orders"]["count"] > 0
    assert all(_sums_agree(totals) for totals in commits)


def test_a_slot_that_was_born_broken_is_replaced(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = new_source(server_of("postgresql", request), "postgresql", "broken")
    shop = Shop(source, 17, Pace(), Schedule(giant_every=None))
    shop.create()
    shop.start()
    live = live_oracle(source, CAPTURED, tmp_path)
    answers: list[bool] = []
    is_sound = Slot.is_sound

    # PostgreSQL breaks one of 150; here the first one is said to be.
    def broken_at_first(slot: Slot) -> bool:
        answers.append(is_sound(slot) and bool(answers))
        return answers[-1]

    monkeypatch.setattr(Slot, "is_sound", broken_at_first)
    live.begin()
    time.sleep(0.3)
    shop.stop()
    oracle = live.end()

    assert answers[0] is False
    assert answers[-1] is True
    assert disagreements(oracle, live.totals) == []


@FAMILIES
def test_the_oracle_outlives_the_server(
    family: Family, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server = server_of(family, request)
    source = new_source(server, family, "killed")
    shop = Shop(source, 13, Pace(), Schedule(giant_every=100, giant_rows=1_000))
    shop.create()
    live = live_oracle(source, CAPTURED, tmp_path)
    live.begin()
    shop.start()
    for _ in range(2):
        time.sleep(0.5)
        live.follow()
        time.sleep(0.2)
        server.kill()
        server.start()
    time.sleep(0.5)
    shop.stop()
    oracle = live.end()

    assert disagreements(oracle, live.totals) == []
    commits = oracle.commits
    assert commits is not None
    assert all(_sums_agree(totals) for totals in commits)


def test_wide_values_are_really_left_out_of_the_log(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source = new_source(server_of("postgresql", request), "postgresql", "wide")
    shop = Shop(source, 16, Pace(transactions=300), Schedule(giant_every=None))
    shop.create()
    live = live_oracle(source, CAPTURED, tmp_path)
    live.begin()
    shop.start()
    shop.finish(60)
    left_out: Counter[str] = Counter()

    def look(commit: Commit) -> Commit:
        inserted = set()
        for change in commit.changes:
            if change.operation == "insert" and change.table == "documents":
                inserted.add(change.after["id"].value)
            elif any(column.value is UNCHANGED for column in change.after.values()):
                left_out["under a new key" if change.before else "under the same key"] += 1
                if change.after["id"].value in inserted:
                    left_out["inserted in the same transaction"] += 1
        return commit

    live.follow(look)
    live.end()
    assert left_out["under the same key"] > 5
    assert left_out["under a new key"] > 5
    assert left_out["inserted in the same transaction"] > 1


def _whole(commit: Commit) -> Commit | None:
    return None if _kind(commit) == "null_edges" else commit


def _one_row(commit: Commit) -> Commit | None:
    kept = [change for change in commit.changes if change.table != "carts"]
    return Commit(commit.identity, kept)


def _twice(commit: Commit) -> Commit | None:
    doubled = [*commit.changes, *commit.changes] if _kind(commit) == "stock" else commit.changes
    return Commit(commit.identity, doubled)


@pytest.mark.parametrize("damage", [_whole, _one_row, _twice])
@FAMILIES
def test_an_oracle_that_lost_or_doubled_something_is_found_out(
    family: Family,
    damage: Callable[[Commit], Commit | None],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    source = new_source(server_of(family, request), family, "damaged")
    shop = Shop(source, 14, Pace(transactions=150), Schedule(giant_every=None))
    shop.create()
    live = live_oracle(source, CAPTURED, tmp_path)
    live.begin()
    shop.start()
    shop.finish(60)
    assert _found_out(live, damage)


def _found_out(live: LiveOracle, damage: Callable[[Commit], Commit | None]) -> bool:
    try:
        live.follow(damage)
    except ValueError:
        return True
    return bool(disagreements(live.end(), live.totals))


def test_the_existing_checker_places_a_snapshot_and_refuses_a_torn_one(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source = new_source(server_of("postgresql", request), "postgresql", "checked")
    shop = Shop(source, 15, Pace(transactions=150), Schedule(giant_every=None))
    shop.create()
    live = live_oracle(source, CAPTURED, tmp_path)
    live.begin()
    shop.start()
    shop.finish(60)
    commits = Oracle(live.end().folder).commits
    assert commits is not None

    checker = PrefixChecker(commits)
    assert checker.check("halfway", commits[70]) is not None
    assert checker.check("end", commits[-1]) is not None
    assert checker.violations == []
    torn = {**commits[-1], "txlog": commits[-2]["txlog"]}
    assert checker.check("torn", torn) is None


def _kind(commit: Commit) -> str | None:
    for change in commit.changes:
        if change.table == "txlog":
            return str(change.after["kind"].value)
    return None


def _sums_agree(totals: Totals) -> bool:
    orders = totals["orders"]
    cents = orders["sum_total_cents"]
    return (
        orders["sum_line_count"] == totals["order_lines"]["count"]
        and totals["customers"]["sum_spent_cents"] == cents
        and totals["ledger"]["sum_revenue_cents"] == cents
    )
