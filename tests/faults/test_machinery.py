"""The machinery of the fault tests must see what it is there to see."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakeingest.errors import UsageError
from tests.faults import killed
from tests.faults.killed import Kill, Watcher, Writer, failpoint_kills, random_kills
from tests.recordings.configure import RecordedRun
from tests.recordings.oracle import Totals

# Starts a child that ticks into the file it is given, and waits for it: a driver and its JVM.
PARENT = (
    "import subprocess, sys; "
    "subprocess.run(['sh', '-c', 'while true; do echo . >> \"$0\"; sleep 0.05; done', sys.argv[1]])"
)
COMMITS: Sequence[Totals] = [{"a": {"count": n}, "b": {"count": 10 * n}} for n in range(5)]


def grows(path: Path) -> bool:
    before = path.stat().st_size if path.exists() else 0
    time.sleep(0.4)
    return path.exists() and path.stat().st_size > before


def test_a_kill_ends_the_child_of_the_driver_too(tmp_path: Path) -> None:
    ticks = tmp_path / "ticks"
    writer = Writer(ticks, tmp_path / "log", command=(sys.executable, "-c", PARENT))
    assert writer.wait(1.0) is None
    assert grows(ticks)
    writer.kill()
    assert not grows(ticks)


def test_a_driver_that_kills_itself_leaves_no_child_behind(tmp_path: Path) -> None:
    ticks = tmp_path / "ticks"
    suicide = PARENT.replace("subprocess.run(", "subprocess.Popen(") + (
        "; import os, signal, time; time.sleep(0.5); os.kill(os.getpid(), signal.SIGKILL)"
    )
    writer = Writer(ticks, tmp_path / "log", command=(sys.executable, "-c", suicide))
    assert writer.wait(20.0) == -9
    assert ticks.exists()
    assert not grows(ticks)


def test_a_paused_run_stands_still_and_goes_on_afterwards(tmp_path: Path) -> None:
    ticks = tmp_path / "ticks"
    writer = Writer(ticks, tmp_path / "log", command=(sys.executable, "-c", PARENT))
    try:
        assert writer.wait(1.0) is None
        writer.pause()
        time.sleep(0.2)
        assert not grows(ticks)
        writer.resume()
        assert grows(ticks)
    finally:
        writer.kill()


def test_a_writer_is_told_its_own_failpoint_and_no_inherited_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEINGEST_FAILPOINT", "inherited")
    show = "import os; print(os.environ.get('LAKEINGEST_FAILPOINT'))"
    for failpoint in (None, "publish.before:2"):
        writer = Writer(tmp_path, tmp_path / "log", failpoint, (sys.executable, "-c", show))
        assert writer.wait(20.0) == 0
        assert writer.said().strip() == str(failpoint)
    assert os.environ["LAKEINGEST_FAILPOINT"] == "inherited"


def test_random_kills_are_the_same_for_the_same_seed() -> None:
    assert random_kills(5, 1, 4.0, 9.0) == random_kills(5, 1, 4.0, 9.0)
    assert random_kills(5, 1, 4.0, 9.0) != random_kills(5, 2, 4.0, 9.0)
    assert all(4.0 <= kill.seconds <= 9.0 for kill in random_kills(50, 1, 4.0, 9.0))


def test_every_failpoint_is_killed_once_from_the_last_to_the_first() -> None:
    kills = failpoint_kills(["1.one", "2.two", "3.three", "4.four"])
    assert [kill.value for kill in kills] == ["4.four:1", "3.three:2", "2.two:1", "1.one:1"]
    assert kills[1] == Kill("3.three", 2)


@dataclass
class StubOracle:
    commits: Sequence[Totals]


@dataclass
class StubRun:
    """As much of a recorded run as a reader compares with."""

    oracle: StubOracle = field(default_factory=lambda: StubOracle(COMMITS))
    name: str = "stub"
    form: str = "json"
    namespace: str = "public"


@dataclass
class StubLake:
    """A lake that shows what it is told: the row counts of its two tables."""

    spark: SparkSession
    batch: int
    counts: Mapping[str, int]

    def history(self) -> DataFrame:
        tables = {f"public.{name}": count for name, count in self.counts.items()}
        return self.spark.createDataFrame(
            [(self.batch, tables, 1)], "batch long, tables map<string,long>, transactions long"
        )

    def snapshots(self) -> Sequence[StubLake]:
        return [self]

    def tables(self) -> Sequence[str]:
        return [f"public.{name}" for name in self.counts]

    def table(self, collection: str) -> DataFrame:
        return self.spark.range(self.counts[collection.removeprefix("public.")])


def looks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, lakes: Sequence[StubLake | None]
) -> str:
    """Return what a reader objects to when it finds one after another of ``lakes``."""
    opened = 0

    def open_next(_: SparkSession, __: str) -> StubLake:
        nonlocal opened
        lake = lakes[min(opened, len(lakes) - 1)]
        opened += 1
        if lake is None:
            message = "no lake here"
            raise UsageError(message)
        return lake

    monkeypatch.setattr(killed, "open_lake", open_next)
    watcher = Watcher(spark, cast(RecordedRun, StubRun()), Path("nowhere"))
    watcher.start()
    deadline = time.monotonic() + 60
    # Once the next look begins, the look at the last lake is over.
    while opened <= len(lakes):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    watcher.stop()
    return "\n".join(watcher.violations)


@pytest.mark.slow
def test_the_reader_accepts_commits_in_order_and_waits_for_the_first(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakes = [StubLake(spark, n, {"a": n, "b": 10 * n}) for n in (1, 1, 3, 4)]
    assert looks(spark, monkeypatch, [None, None, *lakes]) == ""


@pytest.mark.slow
def test_the_reader_sees_a_torn_snapshot(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakes = [StubLake(spark, 1, {"a": 1, "b": 10}), StubLake(spark, 2, {"a": 2, "b": 10})]
    assert "no commit has these totals" in looks(spark, monkeypatch, lakes)


@pytest.mark.slow
def test_the_reader_sees_a_snapshot_that_goes_back(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakes = [StubLake(spark, 1, {"a": 3, "b": 30}), StubLake(spark, 2, {"a": 2, "b": 20})]
    assert "went back to commit 2 from 3" in looks(spark, monkeypatch, lakes)


@pytest.mark.slow
def test_the_reader_sees_a_publication_that_vanishes_and_a_lake_that_cannot_be_read(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = (StubLake(spark, n, {"a": n, "b": 10 * n}) for n in (1, 2))
    assert "publication 2 is gone" in looks(spark, monkeypatch, [two, one])
    assert "reader after 1: no lake here" in looks(spark, monkeypatch, [one, None])
