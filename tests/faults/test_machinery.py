"""The machinery of the fault tests must see what it is there to see."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests.faults.killed import Kill, Writer, failpoint_kills, random_kills

# Starts a child that ticks into the file it is given, and waits for it: a driver and its JVM.
PARENT = (
    "import subprocess, sys; "
    "subprocess.run(['sh', '-c', 'while true; do echo . >> \"$0\"; sleep 0.05; done', sys.argv[1]])"
)


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
