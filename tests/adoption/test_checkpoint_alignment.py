"""Where checkpoints that count offsets lie between source transactions."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.apply.adoption import checkpoint_alignment as module
from lakeingest.apply.adoption.checkpoint_alignment import Alignment, align_checkpoints
from lakeingest.apply.run_session import run_session
from lakeingest.apply.table.record_schemas import CarriedSchemas
from lakeingest.apply.window.window import PipelineLog
from lakeingest.decode.encodings import Encodings
from lakeingest.errors import ConfigError, DataError, TransientError
from lakeingest.plan.spec import PipelineSpec
from lakeingest.position import after
from lakeingest.source.contract import TopicPartition
from tests.logs.postgresql import TRANSACTIONS, Log, Row, above, topic

# Half a dozen small jobs each.
pytestmark = pytest.mark.slow

A, B, A1 = ("a", 0), ("b", 0), ("a", 1)


class Where:
    """Finds the place of tables in a log that a test writes."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = run_session(spark), folder

    def __call__(self, log: Log, at: dict[Row, int], margin: int | None = None) -> Alignment:
        source = log.source(self._spark, self._folder, sorted({table for table, _ in at}))
        spec = PipelineSpec("postgresql", Encodings())
        pipeline = PipelineLog(source, TRANSACTIONS, spec, F.lit(True), CarriedSchemas())
        offsets = {TopicPartition(topic(name), part): at for (name, part), at in at.items()}
        return align_checkpoints(pipeline, offsets, margin)


@pytest.fixture(scope="module")
def where(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Where:
    return Where(spark, tmp_path_factory.mktemp("log"))


def starts(alignment: Alignment) -> dict[Row, int]:
    """Return where each partition is read from."""
    return {
        (name.rpartition(".")[2], partition): offset
        for name, parts in alignment.frontier.offsets.items()
        for partition, offset in parts.items()
    }


def end(number: int) -> int:
    """Return the offset of the END of a transaction, where each has a BEGIN."""
    return 2 * number - 1


@pytest.mark.soak
def test_checkpoints_between_two_transactions_are_gone_on_from_as_they_are(where: Where) -> None:
    log = Log().snapshot(A).transaction(1, A).transaction(2, A, B).transaction(3, A)
    alignment = where(log, {A: 3, B: 1})
    assert (alignment.frontier.end_offset, alignment.frontier.end_position) == (end(2), above(2))
    assert starts(alignment) == {A: 3, B: 1}
    assert alignment.through is None
    assert alignment.frontier.streaming


@pytest.mark.soak
def test_a_transaction_of_which_the_tables_hold_a_part_is_read_again_whole(where: Where) -> None:
    log = Log().transaction(1, A, B).transaction(2, A, B, A1).transaction(3, A, B)
    alignment = where(log, {A: 1, B: 2, A1: 1})
    assert alignment.frontier.end_offset == end(1)
    assert starts(alignment) == {A: 1, B: 1, A1: 0}
    assert (alignment.through, alignment.position) == (end(2), above(2))


def test_tables_far_apart_begin_where_the_one_behind_is_and_reach_where_the_first_is(
    where: Where, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few records that what is needed is found in the second look only.
    monkeypatch.setattr(module, "DEPTH", 1)
    log = Log()
    for number in range(1, 13):
        log.transaction(number, A, B)
    alignment = where(log, {A: 11, B: 7})
    assert alignment.frontier.end_offset == end(7)
    assert starts(alignment) == {A: 7, B: 7}
    assert alignment.through == end(11)


@pytest.mark.soak
def test_everything_read_leaves_nothing_to_read_again(where: Where) -> None:
    alignment = where(Log().transaction(1, A, B).transaction(2, A), {A: 2, B: 1})
    assert (alignment.frontier.end_offset, alignment.through) == (end(2), None)
    assert starts(alignment) == {A: 2, B: 1}


def test_before_the_first_end_the_snapshot_is_below_and_all_transactions_are_above(
    where: Where,
) -> None:
    log = Log().snapshot(A).snapshot(A, "last").transaction(1, A).transaction(2, A)
    alignment = where(log, {A: 2})
    assert (alignment.frontier.end_offset, alignment.frontier.end_position) == (-1, after(0))
    assert (starts(alignment), alignment.through) == ({A: 2}, None)


def test_a_connector_that_sent_transactions_again_is_read_from_behind_the_repetition(
    where: Where,
) -> None:
    log = Log().transaction(1, A).transaction(2, A).transaction(3, A, end=False)
    log.transaction(2, A).transaction(3, A).transaction(4, A)
    # Offsets of A: 1 2 3 | 2 3 4. In the table: up to the repeated 2, so of 3 something, too.
    alignment = where(log, {A: 4})
    assert alignment.frontier.end_position == above(2)
    assert starts(alignment) == {A: 4}
    assert alignment.position == above(3)


def test_rows_that_may_be_on_their_way_are_waited_for_by_going_back(where: Where) -> None:
    log = Log().transaction(1, A, B).transaction(2, A, B, seconds=700).transaction(3, A)
    log.transaction(4, A, seconds=700)
    alignment = where(log, {A: 4, B: 2}, margin=600)
    assert alignment.frontier.end_offset == end(1)
    assert starts(alignment) == {A: 1, B: 1}
    assert alignment.through == end(4)


@pytest.mark.soak
def test_a_part_of_a_transaction_that_is_not_over_cannot_be_taken_over_yet(where: Where) -> None:
    log = Log().transaction(1, A).transaction(2, A, end=False)
    with pytest.raises(TransientError, match="no END in 't1.transaction' yet"):
        where(log, {A: 2}, margin=0)


def test_a_snapshot_that_is_not_over_is_to_be_finished_first(where: Where) -> None:
    log = Log().snapshot(A).snapshot(A).snapshot(A, "last")
    with pytest.raises(ConfigError, match="not finished the initial snapshot.*t1.public.a"):
        where(log, {A: 1})
    with pytest.raises(ConfigError, match="not finished the initial snapshot"):
        where(Log().snapshot(A).snapshot(A), {A: 2})
    assert where(log, {A: 3}).frontier.end_offset == -1


def thinned() -> Log:
    """Return a log of which retention took the rows of two transactions."""
    log = Log(first=5).transaction(1, A, gone="a").transaction(2, B, A, gone="ab")
    return log.transaction(3, A, B).transaction(4, A, B)


@pytest.mark.soak
def test_rows_below_the_checkpoints_may_be_gone(where: Where) -> None:
    # B's table is at 3, A's at 4.
    assert starts(where(thinned(), {A: 7, B: 6})) == {A: 6, B: 6}


def test_rows_that_retention_took_are_missed_before_anything_is_written(where: Where) -> None:
    lost = Log(first=5).transaction(1, B).transaction(2, A, B, gone="a").transaction(3, A, B)
    with pytest.raises(DataError, match="Retention removed rows of"):
        where(lost, {A: 6, B: 6})
    with pytest.raises(DataError, match="offset 3 is wanted but is gone"):
        where(thinned(), {A: 3, B: 6})
