"""What only the Hudi sink does, and what Hudi alone would have done."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import functions as F

from lakeingest.engine.hudi.table import HUDI_COLUMNS
from lakeingest.errors import ConfigError, DataError, FencedError, TransientError
from lakeingest.folders import LEDGER_FOLDER, TOMBSTONES
from lakeingest.sink.contract import Changeset
from lakeingest.sink.hudi.commit import HudiTable
from lakeingest.sink.hudi.options import HudiSettings, write_options
from tests.forms import HARD, further
from tests.recordings.rust import queried
from tests.sink.lake import COLLECTION, NAMES, Lake, Payload, at, changeset, delete, insert, update

# Real Hudi commits, some seconds each.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("was", "becomes"), [("DECIMAL(6,1)", "DECIMAL(8,3)"), further("FLOAT", "DOUBLE")]
)
def test_a_key_whose_texts_would_change_is_not_widened(
    hudi_lake: Lake, was: str, becomes: str
) -> None:
    """Hudi would write each row a second time."""

    def payloads(kind: str, position: int) -> Changeset:
        made = hudi_lake.changeset(Payload(1, position, {"n": position}), ddl="id BIGINT, n INT")
        half = (F.col("id") + F.lit(0.1)).cast(was).cast(kind)
        return replace(made, frame=made.frame.withColumn("id", half))

    before = hudi_lake.sink.apply(payloads(was, 1), hudi_lake.note(1), None)
    with pytest.raises(DataError, match="'id' of 'public.docs' is of its key"):
        hudi_lake.sink.apply(payloads(becomes, 2), hudi_lake.note(2), before)
    assert hudi_lake.sink.state(COLLECTION) == before


EVERY_TYPE = {
    "zoneless": (
        "ARRAY<TIMESTAMP_NTZ>",
        [datetime.fromisoformat("2020-01-02T03:04:05.123456"), None],
    ),
    "texts": ("ARRAY<STRING>", ["a", None]),
    "ancient": ("DATE", date(1, 1, 2)),
    "instant": ("TIMESTAMP", datetime.fromisoformat("0001-01-02T03:04:05.123456")),
    "wall": ("TIMESTAMP_NTZ", datetime.fromisoformat("0001-01-02T03:04:05.123456")),
    "small": ("SMALLINT", 3),
    "exact": ("DECIMAL(38,18)", Decimal("12345678901234567890.123456789012345678")),
    "words": ("MAP<STRING,STRING>", {"a": None}),
    "nothing": ("STRING", ""),
}


def test_values_of_every_type_come_back_as_they_were(hudi_lake: Lake) -> None:
    ddl = ", ".join(["id BIGINT", *(f"{name} {kind}" for name, (kind, _) in EVERY_TYPE.items())])
    values = {name: value for name, (_, value) in EVERY_TYPE.items()}
    hudi_lake.apply(insert(1, 1, **values), ddl=ddl)
    hudi_lake.apply(insert(2, 2, **values), ddl=ddl)
    expected = hudi_lake.spark.createDataFrame([tuple(values.values())], ddl.partition(", ")[2])
    columns = list(values)
    assert hudi_lake.head().select(*columns).collect() == expected.select(*columns).collect() * 2


def test_a_commit_of_a_stopped_writer_is_found_before_anything_is_published(
    hudi_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old writer looked at the token, was stopped, and goes on after the new one's fence."""
    known_state = hudi_lake.apply(insert(1, 1, n=1))
    fenced = hudi_lake.sink.fence(known_state, 2, "run 2")
    note = hudi_lake.note(2, writer=2, run="run 2")
    published = hudi_lake.sink.apply(hudi_lake.changeset(delete(1, 3)), note, fenced)
    with pytest.raises(FencedError):
        hudi_lake.apply(insert(2, 2, n=2))
    assert hudi_lake.sink.state(COLLECTION) == published
    with monkeypatch.context() as stopped:
        stopped.setattr(HudiTable, "newest_note", lambda _: (-1, None))
        with pytest.raises(FencedError):
            hudi_lake.apply(insert(2, 2, n=2))
    hudi_lake.restart(foreign=True)
    with pytest.raises(DataError, match="had been replaced by a later one"):
        hudi_lake.sink.state(COLLECTION, published.version)
    later = changeset(hudi_lake.spark, [insert(3, 3, n=3)])
    note = hudi_lake.note(3, writer=2, run="run 2")
    with pytest.raises(FencedError, match="Another writer committed"):
        hudi_lake.sink.apply(later, note, published)


CLEANED = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
COMPACTED = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
SERVICES = {"COPY_ON_WRITE": CLEANED, "MERGE_ON_READ": {**CLEANED, **COMPACTED}}
"""Every commit is compacted, and everything older is cleaned away; by table type."""


def instants(path: Path, action: str) -> int:
    """Count the completed instants of an action in a table's timeline."""
    return len(list((path / ".hoodie" / "timeline").glob(f"*_*.{action}")))


def table_type_of(lake: Lake) -> str:
    """Return the table type by the folder that the fixture made."""
    return "MERGE_ON_READ" if "hudi-mor" in lake.sink.path(COLLECTION) else "COPY_ON_WRITE"


@HARD
def test_a_deleted_row_and_what_is_published_stay_however_often_a_table_is_cleaned(
    hudi_lake: Lake, hard: bool
) -> None:
    """RFC-39, "Current Limitations": insert at 1, delete at 3, and an update of 2 that is late.

    Hudi's own payload brings the row back. Compacted and started again in between; then one run
    after another starts, and of each another table's part of the batch fails. Meanwhile it is
    cleaned, and each run is sent what is late once more.
    """
    table_type = table_type_of(hudi_lake)
    services = SERVICES[table_type]
    hudi_lake.options["hard"] = hard
    hudi_lake.restart(given=services)
    hudi_lake.apply(insert(1, 1, n=1), insert(9, 1, n=1))
    compacted = hudi_lake.apply(delete(1, 3), Payload(9, 3, {"n": 3}))
    assert hudi_lake.live(version=compacted.version) == {9: (3,)}
    hudi_lake.restart(given=services)
    assert hudi_lake.state == compacted
    hudi_lake.apply(Payload(9, 4, {"n": 4}))
    published = hudi_lake.apply(Payload(1, 2, {"n": 2}), Payload(9, 8, {"n": 8}))
    hudi_lake.restart(given=services)
    path = Path(hudi_lake.sink.path(COLLECTION))
    if table_type == "MERGE_ON_READ":
        assert instants(path, "commit") >= 2, "it was not compacted"
    else:
        assert instants(path, "commit") == hudi_lake.batch, "a commit is not a batch"
    fenced = published
    ahead = hudi_lake.changeset(Payload(1, 2, {"n": 2}), Payload(9, 9, {"n": 9}))
    for writer in (2, 3):
        run = f"run {writer}"
        fenced = hudi_lake.sink.fence(fenced, writer, run)
        note = hudi_lake.note(hudi_lake.batch + 1, writer=writer, run=run)
        fenced = hudi_lake.sink.apply(ahead, note, fenced)
    assert instants(path, "clean") > 0
    assert hudi_lake.live(version=published.version) == {9: (8,)}
    assert hudi_lake.live(version=fenced.version) == {9: (9,)}


@pytest.mark.soak
def test_a_compaction_that_fails_does_not_fail_the_commit_that_has_landed(hudi_lake: Lake) -> None:
    """Of a copy-on-write table any does: Hudi knows compaction for merge-on-read alone."""
    hudi_lake.restart(given={**COMPACTED, "hoodie.compaction.strategy": "no.such.Strategy"})
    hudi_lake.apply(insert(1, 1, n=1))
    state = hudi_lake.apply(Payload(1, 2, {"n": 2}))
    assert hudi_lake.sink.state(COLLECTION) == state
    assert hudi_lake.live() == {1: (2,)}


SEVERAL_WRITERS = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": ("org.apache.hudi.client.transaction.lock.InProcessLockProvider"),
}


@pytest.mark.soak
def test_a_lock_that_a_killed_writer_left_is_named(hudi_lake: Lake) -> None:
    tries = {
        f"hoodie.write.lock.{key}": value
        for name, value in (("num_retries", "1"), ("wait_time_ms_between_retry", "50"))
        for key in (name, f"client.{name}")
    }
    provider = "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
    hudi_lake.restart(given={**SEVERAL_WRITERS, **tries, "hoodie.write.lock.provider": provider})
    before = hudi_lake.apply(insert(1, 1, n=1))
    (Path(hudi_lake.sink.path(COLLECTION)) / ".hoodie" / "lock").write_text("{}")
    with pytest.raises(TransientError, match="lock of Hudi table 'public.docs'.*filesystem.expire"):
        hudi_lake.apply(Payload(1, 2, {"n": 2}))
    assert hudi_lake.sink.state(COLLECTION) == before


def rolled_back_by_a_rival(*_: object) -> None:
    """Fail as Hudi does where two writers roll one commit back."""
    message = "org.apache.hudi.exception.HoodieRollbackException: Failed to rollback"
    raise RuntimeError(message)


def test_a_commit_that_a_killed_writer_left_does_not_bar_what_is_published_later(
    hudi_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among several writers Hudi rolls it back in its cleaner only, which is off."""
    hudi_lake.restart(given=SEVERAL_WRITERS)
    before = hudi_lake.apply(insert(1, 1, n=1))
    folder = Path(hudi_lake.sink.path(COLLECTION)) / ".hoodie"
    action = "deltacommit" if table_type_of(hudi_lake) == "MERGE_ON_READ" else "commit"
    left = folder / "timeline" / f"{before.version}.{action}.requested"
    left.touch()
    beat = folder / ".heartbeat" / str(before.version)
    beat.touch()
    os.utime(beat, (time.time() + 3600,) * 2)
    with monkeypatch.context() as impatient:
        impatient.setattr("lakeingest.sink.hudi.unfinished_commits._MARGIN_SECONDS", -3600)
        with pytest.raises(TransientError, match="Another writer's commit"):
            hudi_lake.apply(Payload(1, 2, {"n": 2}))
    with monkeypatch.context() as rival:
        rival.setattr(
            "lakeingest.sink.hudi.unfinished_commits.roll_back_failed", rolled_back_by_a_rival
        )
        with pytest.raises(TransientError, match="Another writer .* committed"):
            hudi_lake.apply(Payload(1, 2, {"n": 2}))
    assert hudi_lake.sink.state(COLLECTION) == before
    os.utime(beat, (time.time() - 3600,) * 2)
    published = hudi_lake.apply(Payload(1, 2, {"n": 2}))
    assert hudi_lake.live(version=published.version) == {1: (2,)}
    assert not left.exists()


def test_another_number_of_buckets_is_refused_and_so_are_marks_where_hudi_removes_rows(
    hudi_lake: Lake,
) -> None:
    """With other buckets Hudi would write rows twice.

    Rows that are marked later would be removed all the same, and a late change would bring them
    back.
    """
    hudi_lake.options["hard"] = True
    hudi_lake.restart()
    before = hudi_lake.apply(*(insert(n, n, n=n) for n in range(1, 20)))
    with pytest.raises(ConfigError, match=r"Set lakeingest\.deletes=hard again"):
        hudi_lake.restart(hard=False)
    hudi_lake.restart(given={"hoodie.bucket.index.num.buckets": "7"})
    with pytest.raises(ConfigError, match="'bucket SIMPLE 4'.*says 'bucket SIMPLE 7'"):
        hudi_lake.apply(*(Payload(n, 20 + n, {"n": n}) for n in range(1, 20)))
    assert hudi_lake.sink.state(COLLECTION) == before
    assert len(hudi_lake.live()) == 19


@pytest.mark.soak
def test_a_table_that_was_moved_is_gone_on_with(hudi_lake: Lake) -> None:
    """Hudi refuses to write to a table by another name, and ours is the folder's."""
    hudi_lake.restart(hard=True)
    hudi_lake.apply(insert(1, 1, n=1), delete(2, 1))
    old = Path(hudi_lake.sink.path(COLLECTION))
    for suffix in ("", TOMBSTONES):
        Path(f"{old}{suffix}").rename(old.parent / f"moved{suffix}")
    hudi_lake.restart(hard=True, paths={COLLECTION: "moved"})
    hudi_lake.apply(Payload(1, 2, {"n": 2}), delete(3, 2))
    assert hudi_lake.live() == {1: (2,)}


@pytest.mark.soak
@pytest.mark.parametrize("batches", [2, 4])
def test_a_table_that_is_the_whole_lake_leaves_the_ledger_in_it_alone(
    hudi_lake: Lake, batches: int
) -> None:
    services = {**SERVICES[table_type_of(hudi_lake)], "hoodie.metadata.enable": "true"}
    hudi_lake.restart(paths={COLLECTION: "."}, given=services)
    ledger = f"{hudi_lake.sink.path(COLLECTION)}/{LEDGER_FOLDER}"
    rows = pa.table({"id": [1, 2, 3]})
    for number in range(1, batches + 1):
        write_deltalake(ledger, rows, mode="append")
        hudi_lake.apply(Payload(1, number, {"n": number}), insert(number + 1, number, n=0))
    assert hudi_lake.live()[1] == (batches,)
    by_hudi = hudi_lake.spark.read.format("hudi").option("hoodie.metadata.enable", "true")
    assert by_hudi.load(hudi_lake.sink.path(COLLECTION)).count() == batches + 1
    assert sorted(queried(DeltaTable(ledger), "SELECT id FROM t")["id"]) == sorted(
        [1, 2, 3] * batches
    )


def test_a_foreign_upsert_is_found_and_a_column_that_it_adds_between_our_commits_keeps_its_values(
    hudi_lake: Lake,
) -> None:
    """The schema of our own last commit is remembered: not beyond a commit of another's."""
    ddl = "id BIGINT, n INT"
    for position in (1, 2):
        version = hudi_lake.apply(Payload(1, position, {"n": position}), ddl=ddl).version
    assert hudi_lake.sink.state(COLLECTION, version) == hudi_lake.state
    path = hudi_lake.sink.path(COLLECTION)
    rows = hudi_lake.raw()
    assert not {*HUDI_COLUMNS} & {*hudi_lake.head().columns}
    assert NAMES.record_key not in rows.columns, "Hudi's users know a key of numbers by itself"
    rows = rows.drop(*HUDI_COLUMNS).withColumn("added", F.lit(7)).localCheckpoint()
    options = write_options(HudiSettings(), COLLECTION, ("id",), NAMES, hard=False)
    options["hoodie.datasource.write.table.type"] = table_type_of(hudi_lake)
    rows.write.format("hudi").options(**options).mode("append").save(path)
    with pytest.raises(DataError, match="changed the rows of table 'public.docs': UPSERT"):
        hudi_lake.sink.state(COLLECTION, version)
    # In a batch that is under way it is found behind the commit, before anything is published.
    with pytest.raises(DataError, match="UPSERT"):
        hudi_lake.apply(Payload(1, 3, {"n": 3}), ddl=ddl)
    hudi_lake.restart(foreign=True)
    assert hudi_lake.live("n", "added") == {1: (3, 7)}


def test_a_table_with_partial_rows_is_read_only_for_late_or_partial_ones(
    hudi_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ddl = "id BIGINT, n INT, body STRING"
    rows = [Payload(id_, 5, {"n": 5, "body": "a"}, {"body": at(1)}, "c") for id_ in (1, 2)]
    hudi_lake.apply(*rows, ddl=ddl)
    # Late, but above the body that the row has from before.
    hudi_lake.apply(Payload(1, 3, {"n": 3, "body": "b"}), ddl=ddl)
    assert hudi_lake.live("n", "body") == {1: (5, "b"), 2: (5, "a")}
    with monkeypatch.context() as patch:
        patch.delattr("lakeingest.sink.hudi.sink.merged_rows")
        hudi_lake.apply(Payload(2, 6, {"n": 6, "body": "c"}), delete(1, 6), ddl=ddl)
    assert hudi_lake.live("n", "body") == {2: (6, "c")}
    hudi_lake.apply(update(2, 8, n=8), Payload(1, 7, {"n": 7, "body": "d"}), ddl=ddl)
    assert hudi_lake.live("n", "body") == {1: (7, "d"), 2: (8, "c")}
