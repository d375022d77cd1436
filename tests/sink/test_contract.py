"""What every sink must do (DESIGN §9), whatever its format."""

from __future__ import annotations

import shutil
from unittest.mock import Mock

import pytest

from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.errors import ConfigError, DataError, FencedError
from tests.forms import HARD, sinks_and_deletes
from tests.sink.conftest import SINKS, Lakes
from tests.sink.lake import (
    COLLECTION,
    DDL,
    FILLABLE,
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


@sinks_and_deletes("lakes", (*SINKS, "delta-large"), "delta-hard")
def test_a_deleted_row_stays_gone_also_where_a_crash_left_its_tombstone_before_the_table(
    lakes: Lakes, hard: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same batch makes the crash good, and what comes late brings the row back in no run."""
    lake = lakes(hard=hard)
    before = lake.apply(insert(1, 1, n=1), insert(2, 2, n=2), delete(3, 4))
    batch = (delete(1, 5), insert(2, 2, n=2))
    with monkeypatch.context() as crash:
        crash.setattr(type(lake.sink), "_commit", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            lake.apply(*batch)
    lake.restart()
    assert lake.state == before
    lake.apply(*batch)
    assert lake.live() == {2: (2,)}
    assert lake.head().count() == (1 if hard else 3)
    lake.restart()
    lake.apply(insert(1, 4, n=4), insert(3, 6, n=6))
    assert lake.live() == {2: (2,), 3: (6,)}


@pytest.mark.soak
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
    lakes: Lakes,
) -> None:
    lake = lakes()
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


def test_a_repeated_delete_at_the_position_of_a_live_row_hides_none_of_its_values(
    lakes: Lakes,
) -> None:
    """The delete was of the row that had the key before; a later update omits a value."""
    lake = lakes()
    lake.apply(insert(1, 5, n=1, body="b"))
    lake.apply(Payload(1, 7, {"n": 7}, dict.fromkeys(FILLABLE, f"{at(5)}!"), first="d"))
    assert lake.live("n", "body") == {1: (7, "b")}


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


@sinks_and_deletes("lakes", ("delta", "hudi-mor"), "delta-hard")
def test_after_a_fence_an_older_writer_changes_nothing_and_its_unpublished_batch_comes_again(
    lakes: Lakes, hard: bool
) -> None:
    """The batch that was committed but not published is applied again, and changes no row.

    The fence, which does not know of that batch, takes it up.
    """
    lake = lakes(hard=hard, null_missing=True)
    known_state = lake.apply(insert(1, 1, n=1, body="a"), insert(2, 2, n=2))
    batch = (update(1, 5, n=5), delete(2, 6), insert(3, 7, n=7))
    unpublished = lake.apply(*batch)
    lake.restart()
    assert lake.state == unpublished
    fenced = lake.sink.fence(known_state, 2, "run 2")
    assert fenced.note.same_progress(unpublished.note)
    for change in (insert(4, 9, n=2), Payload(1, 9, {"n": 9}), delete(1, 9)):
        with pytest.raises(FencedError):
            lake.apply(change)
    assert lake.sink.state(COLLECTION) == fenced
    # Nor the schema.
    for ddl in (f"{DDL}, added STRING", DDL.replace("n INT", "n BIGINT")):
        with pytest.raises(FencedError):
            lake.apply(insert(4, 9, n=2), ddl=ddl)
        assert lake.sink.state(COLLECTION) == fenced
    everything = lake.everything(unpublished.version)
    assert lake.everything(fenced.version) == everything
    note = successor(lake.note(2), 2, "run 2")
    lake.state = lake.sink.apply(changeset(lake.spark, batch), note, fenced)
    assert lake.everything(lake.state.version) == everything


def test_a_table_of_another_pipeline_or_run_is_not_touched(lakes: Lakes) -> None:
    lake, rival = lakes(), lakes()
    first = rival.apply(insert(1, 1, n=1))
    later = lake.note(1, writer=2, run="run 2")
    with pytest.raises(FencedError, match="created table"):
        lake.sink.apply(changeset(lake.spark, [insert(2, 2, n=2)]), later, None)
    assert lake.sink.state(COLLECTION) == first
    with pytest.raises(ConfigError, match="belongs to pipeline 'contract', not to 'other'"):
        lake.restart(pipeline="other")
