"""What only the Delta sink does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import NoReturn

import deltalake
import pytest
from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.commit_note import CommitNote
from lakeingest.engine.delta.files import DataFile
from lakeingest.engine.delta.transaction import DeltaTransaction
from lakeingest.errors import ConfigError, DataError, FencedError, TransientError
from lakeingest.sink.contract import Upkeep
from lakeingest.sink.delta import rewrite, sink
from lakeingest.sink.merge_law import MISSING_VALUE
from tests.forms import further, sinks_and_deletes
from tests.sink.lake import COLLECTION, DDL, NAMES, Lake, Payload, at, delete, insert, update


def operations(lake: Lake) -> list[str]:
    """Return how the table was written, commit by commit, the first one left out."""
    *after_the_first, _ = (
        f"{commit['operation']} {commit['operationParameters'].get('mode', '')}".strip()
        for commit in deltalake.DeltaTable(lake.sink.path(COLLECTION)).history()
    )
    return after_the_first[::-1]


def fill_two_files(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the rows 1 and 2, each into a file that is not taken for a tiny one."""
    monkeypatch.setattr(rewrite, "TINY_BYTES", 0)
    lake.apply(insert(1, 1, n=1))
    lake.apply(insert(2, 2, n=2))


@pytest.mark.parametrize("either_lake", ["delta", further("delta-public")], indirect=True)
def test_inserts_of_new_keys_are_appended_and_of_other_changes_only_their_files_written_again(
    either_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = either_lake
    monkeypatch.setattr(rewrite, "WHOLE_BYTES", 0)
    fill_two_files(lake, monkeypatch)
    before = set(lake.head().inputFiles())
    lake.apply(insert(3, 3, n=3), Payload(2, 4, {"n": 4}))
    merge = "MERGE" if "delta-public" in lake.sink.path(COLLECTION) else "WRITE Overwrite"
    assert operations(lake) == ["WRITE Append", merge]
    assert len(before & set(lake.head().inputFiles())) == 1
    assert lake.live() == {1: (1,), 2: (4,), 3: (3,)}


def test_a_tiny_table_is_rewritten_in_one_commit_also_for_new_keys_or_a_new_column(
    delta_lake: Lake,
) -> None:
    delta_lake.apply(insert(1, 1, n=1))
    delta_lake.apply(insert(2, 2, n=2))
    assert operations(delta_lake) == ["WRITE Overwrite"]
    assert len(delta_lake.head().inputFiles()) == 1
    assert delta_lake.live() == {1: (1,), 2: (2,)}
    changes = (Payload(1, 3, {"n": 3, "more": "x"}), insert(3, 4, n=4, more="y"))
    delta_lake.apply(*changes, ddl=f"{DDL}, more STRING")
    assert operations(delta_lake) == ["WRITE Overwrite"] * 2
    assert delta_lake.live("n", "more") == {1: (3, "x"), 2: (2, None), 3: (4, "y")}
    assert delta_lake.head().columns[-4:] == ["more", *NAMES.names]


@pytest.mark.parametrize(
    ("either_lake", "dead"),
    [
        pytest.param("delta", False, id="delta-live"),
        pytest.param("delta", True, id="delta-deleted"),
        further("delta-public", False, id="delta-public-live"),
        further("delta-public", True, id="delta-public-deleted"),
    ],
    indirect=["either_lake"],
)
def test_an_insert_of_a_key_that_exists_is_not_appended(either_lake: Lake, dead: bool) -> None:
    lake = either_lake
    lake.apply(insert(1, 1, n=1), insert(2, 2, n=2))
    if dead:
        lake.apply(delete(1, 3))
    lake.apply(insert(1, 4, n=4), insert(3, 5, n=5))
    assert operations(lake)[-1] in ("MERGE", "WRITE Overwrite")
    assert lake.live() == {1: (4,), 2: (2,), 3: (5,)}


@sinks_and_deletes("either_lake", ("delta", "delta-public"), "delta-hard")
def test_a_dot_in_a_columns_name_is_part_of_the_name(either_lake: Lake, hard: bool) -> None:
    ddl = "`i.d` BIGINT, `n.n` INT, `bo.dy` STRING"
    lake = either_lake
    lake.options["hard"] = hard
    lake.restart()
    first = {"n.n": 1, "bo.dy": "a"}
    lake.apply(*(Payload(id_, id_, first, first="c") for id_ in (1, 2, 3, 5)), ddl=ddl)
    gone = (delete(1, 6), delete(5, 6))
    changes = (*gone, update(2, 7, **{"n.n": 2}), Payload(4, 7, first, first="c"))
    lake.apply(*changes, ddl=f"{ddl}, `ne.w` INT")
    live = lake.head().where(~F.col(NAMES.deleted)).drop(*NAMES.names).orderBy("`i.d`").collect()
    a = "a"
    assert live == [(2, 2, a, None), (3, 1, a, None), (4, 1, a, None)]
    # A key that exists is not appended, also where its row is marked as deleted; 5 is late.
    again = (Payload(id_, at_, first, first="c") for id_, at_ in ((1, 9), (5, 5), (6, 9)))
    lake.apply(*again, ddl=ddl)
    assert hard or operations(lake)[-1] in ("MERGE", "WRITE Overwrite")
    keys = lake.head().where(~F.col(NAMES.deleted)).select("`i.d`").collect()
    assert sorted(row[0] for row in keys) == [1, 2, 3, 4, 6]


def test_a_key_that_another_writer_appended_again_stands_for_no_new_row(
    delta_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewrite, "WHOLE_BYTES", 0)
    delta_lake.restart(foreign=True)
    fill_two_files(delta_lake, monkeypatch)
    again = delta_lake.head().where("id = 1")
    again.write.format("delta").mode("append").save(delta_lake.sink.path(COLLECTION))
    delta_lake.apply(Payload(1, 3, {"n": 3}), insert(3, 4, n=4))
    assert operations(delta_lake)[-1] == "WRITE Overwrite"
    rows = delta_lake.head().select("id", "n").collect()
    assert sorted(map(tuple, rows)) == [(1, 3), (1, 3), (2, 2), (3, 4)]


def test_rows_without_a_position_are_to_be_deleted_first(delta_lake: Lake) -> None:
    delta_lake.restart(foreign=True)
    version, path = delta_lake.apply(insert(1, 1, n=1)).version, delta_lake.sink.path(COLLECTION)
    delta_lake.spark.range(7, 8).write.format("delta").mode("append").save(path)
    with pytest.raises(DataError, match=f"Delete the rows whose {NAMES.position} is NULL"):
        delta_lake.sink.state(COLLECTION, version)
    DeltaTable.forPath(delta_lake.spark, path).delete(F.col(NAMES.position).isNull())
    delta_lake.apply(insert(7, 2, n=7))
    assert delta_lake.live() == {1: (1,), 7: (7,)}


def test_a_large_changeset_and_a_table_with_an_unknown_feature_are_left_to_the_engine(
    delta_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta_lake.apply(insert(1, 1, n=1))
    with monkeypatch.context() as limited:
        limited.setattr(sink, "SMALL_BYTES", 10)
        delta_lake.apply(Payload(1, 2, {"n": 2}))
    assert operations(delta_lake) == ["MERGE"]
    path = delta_lake.sink.path(COLLECTION)
    delta_lake.spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    delta_lake.restart()
    delta_lake.apply(insert(2, 2, n=2), Payload(1, 3, {"n": 3}))
    assert operations(delta_lake)[-1] == "MERGE"
    assert delta_lake.live() == {1: (3,), 2: (2,)}


def test_maintenance_between_our_reading_and_our_commit_fences_nobody(
    delta_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_two_files(delta_lake, monkeypatch)
    write = DeltaTransaction.write

    def optimized_first(self: DeltaTransaction, frame: DataFrame) -> tuple[DataFile, ...]:
        written = write(self, frame)
        monkeypatch.undo()
        delta_lake.spark.sql(f"OPTIMIZE delta.`{delta_lake.sink.path(COLLECTION)}`")
        return written

    monkeypatch.setattr(DeltaTransaction, "write", optimized_first)
    change = Payload(1, 3, {"n": 3})
    with pytest.raises(TransientError, match="OPTIMIZE") as conflict:
        delta_lake.apply(change)
    assert not isinstance(conflict.value, FencedError)
    delta_lake.apply(change)
    assert delta_lake.live() == {1: (3,), 2: (2,)}


@pytest.mark.parametrize("change", [insert, update], ids=["append", "rewrite"])
def test_a_rival_that_commits_between_our_reading_and_our_commit_wins(
    delta_lake: Lake, monkeypatch: pytest.MonkeyPatch, change: Callable[..., Payload]
) -> None:
    monkeypatch.setattr(rewrite, "TINY_BYTES", 0)
    known_state = delta_lake.apply(insert(1, 1, n=1, body="b", blob=b"b", tags=["t"]))
    write = DeltaTransaction.write

    def rival_first(self: DeltaTransaction, frame: DataFrame) -> tuple[DataFile, ...]:
        written = write(self, frame)
        monkeypatch.undo()
        delta_lake.sink.fence(known_state, 2, "run 2")
        return written

    monkeypatch.setattr(DeltaTransaction, "write", rival_first)
    with pytest.raises(FencedError):
        delta_lake.apply(change(1 if change is update else 2, 2, n=2))
    assert delta_lake.live() == {1: (1,)}
    fenced = delta_lake.sink.state(COLLECTION)
    assert fenced is not None
    assert fenced.note.run == "run 2"


@pytest.mark.parametrize("either_lake", ["delta", further("delta-public")], indirect=True)
def test_a_fence_that_knew_too_little_hides_no_progress(
    either_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = either_lake
    known_state = lake.apply(insert(1, 1, n=1))
    last = lake.apply(insert(2, 2, n=2))

    def killed(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    # Before it could see that the older writer had committed meanwhile.
    monkeypatch.setattr(CommitNote, "same_progress", killed)
    with pytest.raises(KeyboardInterrupt):
        lake.sink.fence(known_state, 2, "run 2")
    monkeypatch.undo()
    state = lake.sink.state(COLLECTION)
    assert state is not None
    assert state.note.same_progress(last.note)
    assert state.note.run == "run 2"
    assert lake.sink.fence(state, 3, "run 3").note.same_progress(last.note)


def test_maintenance_takes_the_old_tombstones_and_leaves_the_young_ones_of_both_kinds(
    delta_lake: Lake,
) -> None:
    delta_lake.options["hard"] = True
    delta_lake.restart()
    delta_lake.apply(insert(3, 3, n=3), delete(1, 4), delete(2, 6))
    delta_lake.restart(hard=False)
    state = delta_lake.apply(delete(4, 4), delete(5, 6))
    below = Upkeep(oldest=state.version, keeps=timedelta(hours=1), tombstones_below=at(6))
    delta_lake.sink.tidy(state, below)
    # What would be older than the retention must not come any more; what is not, may.
    late = (insert(id_, at_, n=id_) for id_, at_ in ((1, 1), (2, 5), (4, 1), (5, 5)))
    delta_lake.apply(*late)
    assert delta_lake.live() == {1: (1,), 3: (3,), 4: (4,)}


def test_a_delta_table_of_somebody_else_is_a_configuration_error(delta_lake: Lake) -> None:
    path = delta_lake.sink.path(COLLECTION)
    delta_lake.spark.range(3).write.format("delta").save(path)
    with pytest.raises(ConfigError, match="belongs to no lakeingest pipeline"):
        delta_lake.restart()
    assert delta_lake.spark.read.format("delta").load(path).count() == 3


@pytest.mark.soak
def test_a_users_optimize_in_between_is_harmless(
    delta_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_two_files(delta_lake, monkeypatch)
    last = delta_lake.state
    assert last is not None
    table = DeltaTable.forPath(delta_lake.spark, delta_lake.sink.path(COLLECTION))
    table.optimize().executeCompaction()
    delta_lake.restart()
    assert delta_lake.state is not None
    assert delta_lake.state.version == last.version + 1
    assert delta_lake.state.note == last.note
    delta_lake.apply(Payload(1, 3, {"n": 3}))
    assert delta_lake.live() == {1: (3,), 2: (2,)}


@pytest.mark.soak
def test_rows_that_were_removed_stay_deleted_when_others_are_marked(delta_lake: Lake) -> None:
    delta_lake.options["hard"] = True
    delta_lake.restart()
    delta_lake.apply(delete(1, 6), insert(9, 1, n=1))
    delta_lake.restart(hard=False)
    delta_lake.apply(Payload(9, 7, {"n": 7}), Payload(1, 3, {"n": 3}))
    assert delta_lake.live() == {9: (7,)}


def test_a_row_that_lacks_a_value_fails_the_write_though_no_event_of_its_batch_looked_so(
    delta_lake: Lake,
) -> None:
    """A snapshot's row may hold the placeholder as a text; only its decoding shows it."""
    lacks = replace(delta_lake.changeset(update(2, 5, n=1)), masked=False)
    with pytest.raises(Py4JJavaError, match=MISSING_VALUE):
        delta_lake.sink.apply(lacks, delta_lake.note(1), None)
