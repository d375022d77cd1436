"""What every sink must do (DESIGN §9), whatever its format."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.errors import ConfigError, DataError, FencedError
from tests.forms import HARD, further, sinks_and_deletes
from tests.sink.conftest import SINKS, Lakes
from tests.sink.lake import (
    COLLECTION,
    DDL,
    NAMES,
    Payload,
    at,
    changeset,
    delete,
    insert,
    successor,
    update,
)

# Real Delta commits, some seconds each.
pytestmark = pytest.mark.slow


@pytest.mark.soak
def test_the_first_commit_creates_the_table_and_carries_its_note(lakes: Lakes) -> None:
    lake = lakes()
    assert lake.sink.state(COLLECTION) is None
    state = lake.apply(insert(1, 1, n=1), insert(2, 2, n=2))
    assert lake.live() == {1: (1,), 2: (2,)}
    assert state.note.high == at(2)
    assert state.note.key == ("id",)
    assert lake.sink.state(COLLECTION) == state
    assert state.note.end_offset == lake.note(1).end_offset
    assert lake.sink.path(COLLECTION).endswith(COLLECTION)


def test_tombstones_that_were_left_beside_a_deleted_table_are_named_before_it_is_made_anew(
    lakes: Lakes,
) -> None:
    """They carry higher tokens than the new lake's first writers, who would be fenced for ever."""
    lake = lakes(hard=True, paths={COLLECTION: "."})
    lake.apply(insert(1, 1, n=1), delete(2, 2))
    lake.sink.refuse_foreign_files(COLLECTION)
    path = lake.sink.path(COLLECTION)
    shutil.rmtree(path)
    lake.restart()
    with pytest.raises(ConfigError, match=f"'{path}__tombstones' holds.*Delete that folder"):
        lake.sink.refuse_foreign_files(COLLECTION)
    shutil.rmtree(f"{path}__tombstones")
    lake.sink.refuse_foreign_files(COLLECTION)


@pytest.mark.soak
def test_an_upsert_updates_known_keys_and_inserts_new_ones_in_one_commit(lakes: Lakes) -> None:
    lake = lakes()
    first = lake.apply(insert(1, 1, n=1, body="a"))
    second = lake.apply(Payload(1, 2, {"n": 10, "body": "b"}), insert(2, 3, n=2))
    assert lake.versions() == [second.version, first.version]
    assert lake.live("n", "body") == {1: (10, "b"), 2: (2, None)}


@pytest.mark.soak
def test_an_older_change_that_comes_later_changes_nothing(lakes: Lakes) -> None:
    lake = lakes()
    lake.apply(Payload(1, 5, {"n": 5}))
    lake.apply(Payload(1, 3, {"n": 3}))
    assert lake.live() == {1: (5,)}


@sinks_and_deletes("lakes", (*SINKS, "delta-large"), "delta-hard")
def test_a_deleted_row_stays_gone_also_where_a_crash_left_its_tombstone_before_the_table(
    lakes: Lakes, hard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same batch makes the crash good, and what comes late brings the row back in no run."""
    lake = lakes(hard=hard)
    before = lake.apply(insert(1, 1, n=1), insert(2, 2, n=2), delete(3, 4))
    batch = (delete(1, 5), insert(2, 2, n=2))
    with monkeypatch.context() as crash:
        crash.setattr(type(lake.sink), "_commit", _die)
        with pytest.raises(KeyboardInterrupt):
            lake.apply(*batch)
    lake.restart()
    assert lake.state == before
    lake.apply(*batch)
    assert lake.live() == {2: (2,)}
    assert lake.head().count() == (1 if hard else 3)
    lake.apply(Payload(1, 3, {"n": 3}, first="u"))
    assert lake.live() == {2: (2,)}
    lake.restart()
    lake.apply(insert(1, 4, n=4))
    assert lake.live() == {2: (2,)}
    lake.apply(insert(1, 6, n=6))
    assert lake.live() == {1: (6,), 2: (2,)}


def _die(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.soak
@HARD
def test_a_delete_of_an_unknown_key_still_buries_what_comes_late(lakes: Lakes, hard: bool) -> None:
    lake = lakes(hard=hard)
    lake.apply(delete(1, 5))
    assert lake.live() == {}
    lake.restart()
    lake.apply(insert(1, 4, n=4), insert(2, 6, n=6))
    assert lake.live() == {2: (6,)}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        pytest.param("body", "old", "new", id="string"),
        further("blob", b"old", b"new", id="binary"),
        further("tags", ["old", "x"], ["new"], id="array"),
    ],
)
def test_an_unavailable_value_is_kept_and_a_late_middle_change_supplies_it(
    lakes: Lakes, name: str, old: object, new: object
) -> None:
    lake = lakes()
    full = {"body": "b", "blob": b"b", "tags": ["b"], name: old}
    lake.apply(insert(1, 1, n=1, **full))
    lake.apply(update(1, 5, n=5))
    assert lake.live("n", name) == {1: (5, old)}
    lake.apply(update(1, 3, n=3, **{name: new}))
    assert lake.live("n", name) == {1: (5, new)}
    lake.apply(update(1, 2, n=2, **{name: old}))
    assert lake.live("n", name) == {1: (5, new)}


@pytest.mark.soak
def test_a_null_that_was_sent_is_a_value_and_not_a_missing_one(lakes: Lakes) -> None:
    lake = lakes()
    lake.apply(insert(1, 1, n=1, body="text", blob=b"b", tags=["t"]))
    lake.apply(update(1, 2, n=2, body=None))
    lake.apply(update(1, 3, n=3))
    assert lake.live("n", "body", "blob") == {1: (3, None, b"b")}


@pytest.mark.soak
def test_a_value_that_is_nowhere_is_refused_and_no_table_is_made(each_lakes: Lakes) -> None:
    lake = each_lakes()
    with pytest.raises(DataError, match="no earlier value"), spark_errors_of(COLLECTION):
        lake.apply(update(1, 2, n=1))
    assert lake.sink.state(COLLECTION) is None


@pytest.mark.soak
def test_a_value_that_is_nowhere_is_null_and_marked_where_the_user_wants_it(lakes: Lakes) -> None:
    lake = lakes(null_missing=True)
    lake.apply(update(1, 5, n=5, body="b"))
    assert lake.live("n", "body", "blob") == {1: (5, "b", None)}
    (row,) = lake.head().select(NAMES.column_positions).collect()
    assert row[0] == {"blob": "!", "tags": "!"}
    lake.apply(insert(1, 1, n=1, blob=b"b"))
    assert lake.live("n", "body", "blob") == {1: (5, "b", b"b")}


@pytest.mark.soak
@HARD
def test_a_changed_key_moves_its_row_with_values_from_the_old_key(lakes: Lakes, hard: bool) -> None:
    lake = lakes(hard=hard)
    lake.apply(insert(1, 1, n=1, body="b", blob=b"b", tags=["t"]))
    carried = dict.fromkeys(("blob", "tags"), at(2) + at(1))
    moved = Payload(7, 2, {"n": 1, "body": "new", "blob": b"b", "tags": ["t"]}, carried, "c")
    lake.apply(delete(1, 2), moved)
    assert lake.live("body", "blob", "tags") == {7: ("new", b"b", ["t"])}
    lake.apply(update(7, 3, n=3))
    assert lake.live("n", "body", "blob") == {7: (3, "new", b"b")}


@HARD
def test_a_truncate_sweeps_everything_below_it_and_nothing_above(lakes: Lakes, hard: bool) -> None:
    lake = lakes(hard=hard)
    lake.apply(insert(1, 1, n=1), insert(2, 2, n=2), insert(3, 9, n=9))
    state = lake.apply(insert(2, 6, n=6), floor=at(5))
    assert lake.live() == {2: (6,), 3: (9,)}
    assert state.note.floor == at(5)
    lake.apply(insert(4, 10, n=10))
    lake.restart()
    assert lake.state is not None
    assert lake.state.note.floor == at(5)


def test_an_empty_changeset_carries_progress_and_one_with_a_value_that_is_nowhere_none(
    each_lakes: Lakes,
) -> None:
    lake = each_lakes()
    first = lake.apply()
    assert lake.live() == {}
    lake.apply(insert(1, 1, n=1))
    last = lake.apply()
    assert last.version > first.version
    assert lake.live() == {1: (1,)}
    assert lake.sink.state(COLLECTION) == last
    with pytest.raises(DataError, match="no earlier value"), spark_errors_of(COLLECTION):
        lake.apply(update(2, 2, n=1))
    assert lake.sink.state(COLLECTION) == last


@pytest.mark.soak
def test_the_same_changeset_again_changes_no_row(each_lakes: Lakes) -> None:
    lake = each_lakes(null_missing=True)
    lake.apply(insert(1, 1, n=1, body="a"), insert(2, 2, n=2, body="b"))
    batch = (update(1, 5, n=5), delete(2, 6), update(3, 7, n=7), insert(4, 8, n=8))
    once, twice = lake.apply(*batch), lake.apply(*batch)
    assert lake.everything(once.version) == lake.everything(twice.version)


def test_a_repeated_token_is_not_applied_twice_by_its_run_and_fences_another_one(
    lakes: Lakes,
) -> None:
    lake = lakes(null_missing=True)
    before = lake.apply(insert(1, 1, n=1))
    again = changeset(lake.spark, [insert(2, 2, n=2)])
    assert lake.sink.apply(again, lake.note(1), before).version == before.version
    assert lake.live() == {1: (1,)}
    # To be appended, and to be merged.
    for other in (again, changeset(lake.spark, [update(2, 2, n=2)])):
        with pytest.raises(FencedError):
            lake.sink.apply(other, lake.note(1, run="x"), before)
    assert lake.sink.state(COLLECTION) == before


@HARD
def test_after_a_fence_an_older_writer_changes_nothing_and_its_unpublished_batch_comes_again(
    each_lakes: Lakes, hard: bool
) -> None:
    """The batch that was committed but not published is applied again, and changes no row."""
    lake = each_lakes(hard=hard, null_missing=True)
    lake.apply(insert(1, 1, n=1, body="a"), insert(2, 2, n=2))
    batch = (update(1, 5, n=5), delete(2, 6), insert(3, 7, n=7))
    unpublished = lake.apply(*batch)
    lake.restart()
    assert lake.state == unpublished
    fenced = lake.sink.fence(unpublished, 2, "run 2")
    assert fenced.note.batch == unpublished.note.batch
    for change in (insert(4, 9, n=2), Payload(1, 9, {"n": 9}), delete(1, 9)):
        with pytest.raises(FencedError):
            lake.apply(change)
    assert lake.sink.state(COLLECTION) == fenced
    # Nor the schema.
    for ddl in (f"{DDL}, added STRING", DDL.replace("n INT", "n BIGINT")):
        with pytest.raises(FencedError):
            lake.apply(insert(4, 9, n=2), ddl=ddl)
        assert lake.sink.state(COLLECTION) == fenced
    assert lake.everything(fenced.version) == lake.everything(unpublished.version)
    note = successor(lake.note(2), 2, "run 2")
    lake.state = lake.sink.apply(changeset(lake.spark, batch), note, fenced)
    assert lake.everything(lake.state.version) == lake.everything(unpublished.version)


@pytest.mark.soak
def test_a_fence_takes_up_what_the_older_writer_committed_meanwhile(lakes: Lakes) -> None:
    lake = lakes()
    known = lake.apply(insert(1, 1, n=1))
    last = lake.apply(insert(2, 2, n=2))
    fenced = lake.sink.fence(known, 2, "run 2")
    assert fenced.note.batch == last.note.batch
    assert fenced.note.high == last.note.high
    goes_on = successor(lake.note(3), 2, "run 2")
    lake.state = lake.sink.apply(changeset(lake.spark, [insert(3, 3, n=3)]), goes_on, fenced)
    assert lake.live() == {1: (1,), 2: (2,), 3: (3,)}


@pytest.mark.soak
def test_a_version_can_be_read_while_later_ones_are_written(lakes: Lakes) -> None:
    lake = lakes()
    versions = [lake.apply(Payload(1, number, {"n": number})).version for number in (1, 2, 3)]
    assert [lake.live(version=version) for version in versions] == [{1: (n,)} for n in (1, 2, 3)]


@pytest.mark.soak
def test_a_new_column_is_added_and_null_in_older_rows(lakes: Lakes) -> None:
    lake = lakes()
    lake.apply(insert(1, 1, n=1))
    wide = f"{DDL}, `select` STRING"
    lake.apply(insert(2, 2, n=2, **{"select": "hello"}), ddl=wide)
    assert lake.live("n", "`select`") == {1: (1, None), 2: (2, "hello")}
    lake.apply(Payload(1, 3, {"n": 3, "select": "late"}), ddl=wide)
    assert lake.live("n", "`select`") == {1: (3, "late"), 2: (2, "hello")}
    assert lake.head().columns[-3:] == list(NAMES.names)


@pytest.mark.soak
@HARD
def test_a_type_that_does_not_fit_is_refused_and_nothing_is_committed(
    lakes: Lakes, hard: bool
) -> None:
    lake = lakes(hard=hard)
    before = lake.apply(insert(1, 1, n=1))
    with pytest.raises(DataError, match="'n' of 'public.docs' is int in the lake and string"):
        lake.apply(insert(2, 2, n="two"), delete(1, 3), ddl=DDL.replace("n INT", "n STRING"))
    assert lake.sink.state(COLLECTION) == before
    assert lake.live() == {1: (1,)}


@pytest.mark.soak
def test_a_column_that_the_changeset_does_not_have_is_null_in_new_rows(lakes: Lakes) -> None:
    lake = lakes()
    lake.apply(insert(1, 1, n=1, body="a"))
    lake.apply(insert(2, 2, n=2), ddl="id BIGINT, n INT")
    lake.apply(Payload(1, 3, {"n": 3}), insert(3, 4, n=4), ddl="id BIGINT, n INT")
    assert lake.live("n", "body") == {1: (3, "a"), 2: (2, None), 3: (4, None)}


def test_a_table_of_another_pipeline_is_not_touched(lakes: Lakes) -> None:
    lake = lakes()
    lake.apply(insert(1, 1, n=1))
    with pytest.raises(ConfigError, match="belongs to pipeline 'contract', not to 'other'"):
        lake.restart(pipeline="other")


def test_a_table_that_another_run_creates_first_is_fenced(lakes: Lakes) -> None:
    lake, rival = lakes(), lakes()
    first = rival.apply(insert(1, 1, n=1))
    later = lake.note(1, writer=2, run="run 2")
    with pytest.raises(FencedError, match="created table"):
        lake.sink.apply(changeset(lake.spark, [insert(2, 2, n=2)]), later, None)
    assert lake.sink.state(COLLECTION) == first


@pytest.mark.soak
def test_a_table_with_a_path_has_its_tombstones_beside_it(lakes: Lakes, tmp_path: Path) -> None:
    lake = lakes(hard=True, paths={COLLECTION: "deep/docs"})
    lake.apply(insert(1, 1, n=1), insert(2, 2, n=2))
    lake.apply(delete(1, 5))
    folders = sorted(path.relative_to(tmp_path).parts[1:] for path in tmp_path.glob("*/lake/*/*"))
    assert folders == [("lake", "deep", "docs"), ("lake", "deep", "docs__tombstones")]
    lake.restart()
    lake.apply(insert(1, 4, n=4))
    assert lake.live() == {2: (2,)}
