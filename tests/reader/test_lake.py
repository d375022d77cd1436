"""A published lake as its readers ask for it."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakeingest.errors import ConfigError, UsageError
from lakeingest.frame_schemas import LEDGER
from lakeingest.reader import Lake, open_lake
from lakeingest.reader.lake import _completed
from tests.reader.small_lake import FIRST, LINES, NOTES, SECOND, THIRD, SmallLake

IN_BATCH = {
    1: [(9, 1, ""), (9, 2, None), (10, 1, "c")],
    2: [(9, 1, ""), (9, 2, None), (10, 1, "d")],
    3: [(9, 1, ""), (10, 1, "d")],
}
"""The table of lines as of each publication."""


@pytest.fixture
def lake(spark: SparkSession, small_lake: SmallLake) -> Lake:
    return open_lake(spark, small_lake.path)


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def published_at(lake: Lake) -> dict[int, datetime]:
    return {row["batch"]: row["published_at"] for row in lake.history().collect()}


def test_a_ledger_that_lacks_no_column_is_left_as_it_is(spark: SparkSession) -> None:
    """Spark Connect refuses to add no columns."""
    ledger = spark.createDataFrame([], LEDGER)
    assert _completed(ledger) is ledger
    old = _completed(ledger.drop("paths", "schemas"))
    assert {name: old.schema[name].dataType for name in ("paths", "schemas")} == {
        name: LEDGER[name].dataType for name in ("paths", "schemas")
    }


def test_without_as_of_the_newest_publication_is_shown(lake: Lake) -> None:
    assert lake.snapshot().batch == 3
    assert lake.tables() == [LINES, NOTES]
    assert lake.key(LINES) == ("order.id", "line")
    assert rows(lake.table(LINES)) == IN_BATCH[3]
    assert rows(lake.table(NOTES)) == [("n",)]


def test_a_number_is_a_batch(lake: Lake) -> None:
    snapshot = lake.snapshot(as_of=2)
    assert snapshot.batch == 2
    assert rows(snapshot.table(LINES)) == IN_BATCH[2]


def test_a_notebook_shows_what_it_has(lake: Lake, small_lake: SmallLake) -> None:
    assert repr(lake) == f"<Lake: {small_lake.path}>"
    assert repr(lake.snapshot(2)) == "<Snapshot: batch 2, 2 tables>"


def test_a_time_is_the_newest_publication_up_to_then(lake: Lake) -> None:
    times = published_at(lake)
    just_before = (times[3] - timedelta(microseconds=1)).astimezone()
    assert lake.snapshot(as_of=just_before).batch == 2
    assert lake.snapshot(as_of=just_before.isoformat()).batch == 2
    assert lake.snapshot(as_of=times[2].astimezone()).batch == 2
    with pytest.raises(UsageError, match=r"Nothing was published up to .* lake\.history\(\)"):
        lake.snapshot(as_of=(times[1] - timedelta(seconds=1)).astimezone())


@pytest.mark.parametrize(("id_", "batch"), [(FIRST, 1), (THIRD, 3)])
def test_text_is_the_publication_of_a_source_transaction(lake: Lake, id_: str, batch: int) -> None:
    assert lake.snapshot(as_of=id_).batch == batch
    assert lake.snapshot(as_of=f"tx:{id_}").batch == batch


def test_a_transaction_can_be_named_by_its_xid_and_the_newest_of_two_counts(lake: Lake) -> None:
    assert lake.snapshot(as_of="tx:754").batch == 2
    assert lake.snapshot(as_of="754").batch == 2
    assert lake.snapshot(as_of="753").batch == 3


def test_text_of_digits_is_never_taken_for_a_batch(lake: Lake) -> None:
    for text in ("2", "tx:2", "75", "tx:1000"):
        with pytest.raises(UsageError, match=r"lake\.transactions\(\).* by a number: as_of="):
            lake.snapshot(as_of=text)


def test_the_id_that_a_row_carries_is_answered_with_how_to_ask(lake: Lake) -> None:
    with pytest.raises(UsageError, match="ask for the xid alone, 'tx:754'"):
        lake.snapshot(as_of="754:1901")


def test_an_unknown_batch_is_answered_with_where_they_are_listed(lake: Lake) -> None:
    with pytest.raises(UsageError, match=r"There is no publication 4; lake\.history\(\)"):
        lake.snapshot(as_of=4)


def test_an_unknown_table_is_answered_with_those_there_are(lake: Lake) -> None:
    with pytest.raises(UsageError, match=f"'public.line'; it has: {LINES}, {NOTES}"):
        lake.snapshot().table("public.line")


def test_views_are_bound_to_their_snapshot(spark: SparkSession, lake: Lake) -> None:
    for batch in (1, 3):
        made = lake.snapshot(as_of=batch).create_views(f"at_{batch}_")
        assert made == [f"at_{batch}_public_lines", f"at_{batch}_public_notes"]
    assert rows(spark.table("at_1_public_lines")) == IN_BATCH[1]
    assert rows(spark.sql("SELECT * FROM at_3_public_lines")) == IN_BATCH[3]
    assert rows(spark.table("at_1_public_notes")) == [("n",)]


def test_metadata_shows_the_deleted_row_and_what_it_was_decided_by(lake: Lake) -> None:
    shown = lake.snapshot().table(LINES, metadata=True)
    assert shown.columns[-3:] == ["_position", "_deleted", "_column_positions"]
    lines = shown.select("`order.id`", "line", "_deleted")
    assert rows(lines) == [(9, 1, False), (9, 2, True), (10, 1, False)]


def test_history_lists_publications_and_transactions_the_sources(lake: Lake) -> None:
    history = [
        (row["batch"], row["transactions"], row["events"]) for row in lake.history().collect()
    ]
    assert history == [(3, 1, 1), (2, 1, 1), (1, 1, 4)]
    transactions = [(row["batch"], row["transaction_id"]) for row in lake.transactions().collect()]
    assert transactions == [(3, THIRD), (2, SECOND), (1, FIRST)]
    counted = lake.transactions().where("batch = 1").select("events", "events_by_table").first()
    assert counted is not None
    assert tuple(counted) == (4, {LINES: 3, NOTES: 1})


def test_schemas_tell_what_a_table_looked_like_since_which_batch(lake: Lake) -> None:
    schemas = [(row["batch"], row["columns"]) for row in lake.schemas(NOTES).collect()]
    assert schemas == [(1, "`note` STRING")]
    assert {row["collection"] for row in lake.schemas().collect()} == {LINES, NOTES}


def test_all_snapshots_come_oldest_first(lake: Lake) -> None:
    assert [snapshot.batch for snapshot in lake.snapshots()] == [1, 2, 3]


def test_where_nothing_was_written_there_is_no_lake(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no lake at"):
        open_lake(spark, str(tmp_path))
