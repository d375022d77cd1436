"""A transaction that only inserts is a commit that only adds, so streams can read the table."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.batch.publish import Publisher
from lakeingest.apply.factory import open_sink
from lakeingest.engine.delta import vector_file
from lakeingest.errors import LakeingestError
from lakeingest.sink.contract import Upkeep
from lakeingest.sink.delta import versions
from tests.apply.published import history, table
from tests.faults.before_commit import before_each_version
from tests.faults.lost_publication import CrashError
from tests.logs.written import Sent, WrittenLog, change, place_of
from tests.recordings.log_lake import vector_path

pytestmark = pytest.mark.slow

EACH = {"commit_mode": "per-transaction"}
SIZES = (12, 12, 2, 1)
"""Each insert is a file; so many are joined (``events``)."""

A = "public.a"


class Events:
    """A log of a table that each transaction adds rows to; the first one makes it."""

    def __init__(self, folder: Path) -> None:
        self.log = WrittenLog(folder, "postgresql")
        self.rows: dict[int, int] = {}
        self._transaction = 0
        self._sent: dict[int, tuple[Sent, dict[str, Any]]] = {}

    def insert(self, *sizes: int, factor: int = 1) -> list[dict[int, int]]:
        """Write transactions of so many new rows; return the table after each one."""
        states = []
        for size in sizes:
            ids = range(len(self.rows) + 1, len(self.rows) + size + 1)
            self.write({id_: id_ * factor % 10**15 for id_ in ids}, "c")
            states.append(dict(self.rows))
        return states

    def write(self, values: dict[int, int], op: str) -> None:
        """Write a transaction that gives rows these values."""
        self._transaction += 1
        lsn = 100 * self._transaction
        place = place_of(A, lsn, lsn - 100 if lsn > 100 else None)
        sent = [Sent(A, id_, value, place, op) for id_, value in values.items()]
        transaction = f"{self._transaction}:{lsn}"
        self.log.transaction(transaction, *sent)
        self.rows |= values
        for number, row in enumerate(sent, 1):
            block = {"id": transaction, "total_order": number, "data_collection_order": number}
            self._sent[int(row.id)] = row, block

    def send_again(self, id_: int) -> None:
        """Write the newest record of a row again, as a connector does that was restarted."""
        self.log.put(*self._sent[id_])


@pytest.fixture
def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Events:
    monkeypatch.setattr(versions, "MANY_FILES", len(SIZES) - 1)
    return Events(tmp_path / "log")


def entries(lake: Path) -> list[list[dict[str, Any]]]:
    """Return the actions of each version of the table."""
    files = sorted((lake / A / "_delta_log").glob("*.json"))
    return [[json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in files]


def kinds(actions: list[dict[str, Any]]) -> Counter[str]:
    return Counter(kind for action in actions for kind in action)


def assert_published(spark: SparkSession, lake: Path, states: list[dict[int, int]]) -> None:
    """Check the newest publications: their number, and the table in each."""
    newest = [*history(spark, lake).values()][-len(states) :]
    assert [shown[A] for shown in newest] == states


@pytest.mark.soak
def test_a_version_of_inserts_only_adds_beside_a_truncate_of_another_table(
    spark: SparkSession, events: Events, tmp_path: Path
) -> None:
    lake, states = tmp_path / "lake", events.insert(2, 1, 1)
    events.log.transaction("30:3000", change("b", 3000))
    place = change("b", 4000).source
    added = Sent(A, 5, 5, {**place, "table": "a"}, "c")
    events.log.transaction("40:4000", added, Sent("public.b", 0, None, place, "t"))
    events.log.ingest(spark, lake, **EACH)
    assert_published(spark, lake, [*states, states[-1], {**states[-1], 5: 5}])
    assert kinds(entries(lake)[-1]) == {"commitInfo": 1, "txn": 1, "add": 1}
    assert table(spark, lake, "public.b") == {}


@contextmanager
def lacking_files(
    monkeypatch: pytest.MonkeyPatch, lake: Path
) -> Iterator[tuple[list[set[str]], set[str]]]:
    """Note the files that the disk does not have yet when a version names them, and the others."""
    durable: set[str] = set()
    lacking: list[set[str]] = []
    fsync, link = os.fsync, os.link
    old_files = {file.name for file in (lake / A).glob("*.parquet")}

    def noted_fsync(descriptor: int) -> None:
        fsync(descriptor)
        durable.add(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    def noted_link(entry: Path, target: Path) -> None:
        actions = [json.loads(line) for line in entry.read_text("utf-8").splitlines()]
        added = [action["add"] for action in actions if "add" in action]
        vectors = [body["deletionVector"] for body in added if "deletionVector" in body]
        named = {entry.name, *(body["path"] for body in added), *map(vector_path, vectors)}
        lacking.append(named - durable - old_files)
        link(entry, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", noted_fsync)
        patch.setattr(os, "link", noted_link)
        yield lacking, durable


def test_each_version_of_inserts_adds_a_file_in_order_and_the_last_joins_them_though_the_run_dies(
    spark: SparkSession, events: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the table wants its writes optimised. The disk has the files before a version.

    A table that takes only appends gets inserts, and refuses a change in either mode.
    """
    lake, states = tmp_path / "lake", events.insert(1)
    events.log.ingest(spark, lake, **EACH)
    want_optimised_writes(spark, lake)
    log_size = len(entries(lake))
    # Delta would read the smaller of two shuffled blocks first: the second one.
    states += events.insert(*SIZES, factor=982_451_653)
    states += events.insert(*SIZES, factor=0)

    with monkeypatch.context() as patch:
        patch.setattr(Publisher, "_publish", Mock(side_effect=CrashError))
        with pytest.raises(CrashError):
            events.log.ingest(spark, lake, **EACH)
    sizes = SIZES * 2
    *of_transactions, last = [entry for entry in entries(lake)[log_size:] if "add" in kinds(entry)]
    assert len(of_transactions) == len(sizes)
    for entry, size in zip(of_transactions, sizes, strict=True):
        assert kinds(entry) == {"commitInfo": 1, "txn": 1, "add": 1}
        [added] = (action["add"] for action in entry if "add" in action)
        assert "deletionVector" not in added
        # What a stream of the table gets.
        assert added["dataChange"] is True
        assert json.loads(added["stats"])["numRecords"] == size
    assert kinds(last) == {"commitInfo": 1, "remove": len(sizes), "add": 1}
    bodies = [body for action in last for kind, body in action.items() if kind != "commitInfo"]
    assert not any(body["dataChange"] for body in bodies)
    # The next run finds that no other writer changed a row, and changes joined rows.
    states += events.insert(2)
    for id_ in (2, 3):
        events.write({id_: 222}, "u")
        states.append(dict(events.rows))
    # A file of vectors is followed by another one before it is too large.
    monkeypatch.setattr(vector_file, "_MOST_OCTETS", 1)
    with lacking_files(monkeypatch, lake) as (lacking, durable):
        assert events.log.ingest(spark, lake, **EACH).warnings == ()
    assert_published(spark, lake, states)
    assert lacking == [set(), set(), set()]
    assert sum(name.endswith(".bin") for name in durable) > 2
    assert any(name.endswith(".parquet") for name in durable)

    spark.sql(f"ALTER TABLE delta.`{lake / A}` SET TBLPROPERTIES ('delta.appendOnly' = 'true')")
    # Rows that come again are among the new ones.
    events.send_again(1)
    *_, grouped = events.insert(1, 1)
    events.log.ingest(spark, lake, commit_mode="grouped")
    sink = open_sink(spark, events.log.configured(lake))
    state = sink.state(A)
    assert state is not None
    # Delta would refuse both, though no row is deleted.
    upkeep = Upkeep(
        oldest=state.version,
        keeps=timedelta(hours=1),
        tombstones_below=state.note.high,
        erases_values=True,
    )
    sink.tidy(state, upkeep)
    events.send_again(1)
    states = events.insert(*[1] * len(SIZES))
    events.write({1: 7}, "u")
    events.write({2: 8}, "u")
    # The inserts are a batch, and the changes behind them are the next one.
    with pytest.raises(LakeingestError, match="appendOnly"):
        events.log.ingest(spark, lake, **EACH, batch_max_events=str(len(SIZES)))
    assert_published(spark, lake, [grouped, *states])
    # The last version has joined the files of the others.
    assert kinds(entries(lake)[-1]) == {"commitInfo": 1, "remove": len(SIZES), "add": 1}
    with pytest.raises(LakeingestError, match="appendOnly"):
        events.log.ingest(spark, lake, commit_mode="grouped")
    assert table(spark, lake, A) == states[-1]


@pytest.mark.soak
def test_a_joining_version_whose_number_is_taken_is_left_out(
    spark: SparkSession, events: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, states = tmp_path / "lake", events.insert(*SIZES)

    def optimise(_table: str, commits: int) -> None:
        if commits == len(SIZES) - 1:
            spark.sql(f"OPTIMIZE delta.`{lake / A}`")

    with before_each_version(monkeypatch, optimise):
        summary = events.log.ingest(spark, lake, **EACH)
    assert summary.warnings == ()
    [information] = (action["commitInfo"] for action in entries(lake)[-1] if "commitInfo" in action)
    assert information["operation"] == "OPTIMIZE"
    assert "userMetadata" not in information
    states += events.insert(2)
    assert events.log.ingest(spark, lake, **EACH).warnings == ()
    assert_published(spark, lake, states)


def want_optimised_writes(spark: SparkSession, lake: Path) -> None:
    optimised = "'delta.autoOptimize.optimizeWrite' = 'true'"
    spark.sql(f"ALTER TABLE delta.`{lake / A}` SET TBLPROPERTIES ({optimised})")
