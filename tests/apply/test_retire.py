"""A table that the source dropped leaves the pipeline, as a user retires it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply import lake, run, table_choice
from lakeingest.apply.batch import writer
from lakeingest.apply.inspect import pipeline_status, validate_pipeline
from lakeingest.apply.retire import Retirement
from lakeingest.apply.window import progress
from lakeingest.errors import (
    ConfigError,
    DataError,
    FencedError,
    TransientError,
    UnavailableError,
    UsageError,
)
from lakeingest.reader import open_lake
from tests.apply.crash import crashing_at
from tests.apply.shop import GONE, Shop, begun_shop, row
from tests.apply.written import topic_of
from tests.forms import further

pytestmark = pytest.mark.slow

KEPT = "public.a"
LISTED = ",".join(map(topic_of, (KEPT, GONE)))


@pytest.mark.parametrize("format_", ["delta", further("hudi")])
def test_a_table_that_the_source_dropped_is_retired_and_older_snapshots_show_it(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    shop = begun_shop(spark, tmp_path, format_)
    files = sorted((shop.lake / GONE).rglob("*"))
    shop.log.drop(GONE)
    shop.commit(a=30)
    with pytest.raises(UnavailableError, match=r"w\.public\.b"):
        shop.run(source_topics=LISTED)
    done = shop.retire(source_topics=LISTED)
    assert done == Retirement(2, GONE)
    # Its list of topics may stay as it is.
    said = shop.run(source_topics=LISTED)
    assert (said.transactions, said.warnings) == (1, ())
    assert shop.tables() == {KEPT: {1: 10, 2: 20, 3: 30}}
    published = open_lake(spark, str(shop.lake))
    older = published.snapshot(as_of=1).table(GONE)
    assert {r["id"]: r["v"] for r in older.collect()} == {1: 11, 2: 21}
    assert [sorted(s.tables()) for s in published.snapshots()] == [[KEPT, GONE], [KEPT], [KEPT]]
    assert sorted((shop.lake / GONE).rglob("*")) == files
    # The lake needs its folder no more.
    shutil.rmtree(shop.lake / GONE)
    shop.commit(a=40)
    assert shop.run().transactions == 1
    assert shop.tables()[KEPT][4] == 40


@pytest.mark.soak
def test_a_table_of_which_nothing_is_left_can_be_retired(shop: Shop) -> None:
    shop.log.drop(GONE)
    shutil.rmtree(shop.lake / GONE)
    shop.commit(a=30)
    shop.retire()
    assert shop.run().transactions == 1
    assert shop.tables() == {KEPT: {1: 10, 2: 20, 3: 30}}


def test_rows_that_arrive_afterwards_are_not_mixed_into_it_and_are_told_of(shop: Shop) -> None:
    shop.log.drop(GONE)
    shop.retire()
    # Made anew at the source, under the same name: its topic begins at offset 0 again.
    shop.commit(a=30, b=31)
    shop.commit(b=41)
    shop.commit(b=51)
    shop.commit(a=60)
    said = shop.run()
    assert (said.transactions, said.pending_transactions) == (4, 0)
    assert shop.tables() == {KEPT: {1: 10, 2: 20, 3: 30, 6: 60}}
    (warning,) = said.warnings
    assert f"'{GONE}' is retired since batch 2; " in warning
    assert "not read: 1." in warning
    config = shop.log.configured(shop.lake, **shop.settings)
    assert validate_pipeline(shop.spark, config).warnings == (warning,)
    status = pipeline_status(shop.spark, config)
    assert status["retired_tables"] == [GONE]
    assert status["records_not_applied"] == 0
    assert shop.run().nothing_new


@pytest.mark.soak
def test_a_transaction_that_waits_for_its_rows_becomes_whole_without_them(shop: Shop) -> None:
    rows = [row(KEPT, 3, 1, 3, 30), row(GONE, 3, 2, 3, 31)]
    shop.log.begin("3:3100")
    shop.log.rows("3:3100", rows[:1])
    shop.log.end("3:3100", {KEPT: 1, GONE: 1})
    with pytest.raises(Exception, match=GONE):
        shop.run()
    shop.retire()
    assert shop.run().transactions == 1
    assert shop.tables() == {KEPT: {1: 10, 2: 20, 3: 30}}


@pytest.mark.parametrize("format_", ["delta", further("hudi")])
def test_it_is_taken_up_again_from_where_it_was_left(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    shop = begun_shop(spark, tmp_path, format_)
    shop.retire()
    shop.commit(a=30, b=31)
    shop.commit(a=40)
    shop.run()
    assert shop.retire(undo=True) == Retirement(4, GONE, 1)
    # Not before it is at the commit of the others.
    assert [*shop.tables()] == [KEPT]
    shop.commit(a=50, b=51)
    said = shop.run()
    assert (said.batches, said.warnings) == (1, ())
    assert shop.tables() == {
        KEPT: {1: 10, 2: 20, 3: 30, 4: 40, 5: 50},
        GONE: {1: 11, 2: 21, 3: 31, 5: 51},
    }


@pytest.mark.soak
def test_rows_of_one_that_is_taken_up_again_are_not_passed_over_while_the_source_is_at_rest(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PROGRESS_RECORDS", 1)
    shop.retire()
    shop.commit(a=30, b=31)
    shop.run()
    shop.retire(undo=True)
    assert shop.run().batches == 1
    assert shop.tables()[GONE] == {1: 11, 2: 21, 3: 31}
    assert shop.run().batches == 0
    shop.commit(b=41)
    shop.run()
    assert shop.tables()[GONE] == {1: 11, 2: 21, 3: 31, 4: 41}


def test_one_that_is_taken_up_again_is_not_shown_before_all_of_its_rows_are_read(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PROGRESS_RECORDS", 1)
    shop.retire()
    for v in (31, 41, 51, 61):
        shop.commit(a=v - 1, b=v)
    shop.run()
    shop.retire(undo=True)
    assert shop.run(batch_max_events="2", window_max_records="2").batches == 1
    assert shop.tables()[GONE] == {1: 11, 2: 21, 3: 31, 4: 41, 5: 51, 6: 61}


@pytest.mark.soak
def test_a_run_killed_before_it_publishes_redelivered_rows_is_recovered(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PROGRESS_RECORDS", 1)
    shop.retire()
    shop.commit(a=30, b=31)
    shop.run()
    shop.retire(undo=True)

    with crashing_at("3.after-last-commit", writer):
        shop.run()
    assert shop.run().batches == 1
    assert shop.tables()[GONE] == {1: 11, 2: 21, 3: 31}


@pytest.mark.soak
def test_a_published_table_whose_topic_is_not_read_any_more_stops_the_run(shop: Shop) -> None:
    shop.commit(a=30, b=31)
    with pytest.raises(ConfigError, match=r"'public\.b' is published .* lakeingest retire"):
        shop.run(source_topics=topic_of(KEPT))
    assert shop.tables() == {KEPT: {1: 10, 2: 20}, GONE: {1: 11, 2: 21}}
    shop.retire()
    shop.run(source_topics=topic_of(KEPT))
    assert shop.tables() == {KEPT: {1: 10, 2: 20, 3: 30}}


@pytest.mark.soak
@pytest.mark.parametrize("null_records", [0, 1])
def test_one_that_had_no_rows_since_is_shown_again_at_once(shop: Shop, null_records: int) -> None:
    shop.retire()
    for _ in range(null_records):
        shop.log.raw(GONE, {"id": 1}, None)
    shop.commit(a=30)
    shop.run()
    assert shop.retire(undo=True) == Retirement(4, GONE, null_records)
    assert shop.tables()[GONE] == {1: 11, 2: 21}
    shop.commit(a=40, b=41)
    shop.run()
    assert shop.tables()[GONE] == {1: 11, 2: 21, 4: 41}


def test_one_whose_topic_was_made_anew_is_not_taken_up_again(shop: Shop) -> None:
    shop.log.drop(GONE)
    shop.retire()
    shop.commit(a=30, b=31)
    with pytest.raises(DataError, match="deleted and made again"):
        shop.retire(undo=True)
    shop.run()
    assert shop.tables() == {KEPT: {1: 10, 2: 20, 3: 30}}


@pytest.mark.parametrize(
    "place",
    [further("4.before-publication"), "4.after-publication"],
)
def test_a_command_that_is_killed_is_done_or_not_and_runs_go_on(shop: Shop, place: str) -> None:
    with crashing_at(place, table_choice):
        shop.retire()
    done = place == "4.after-publication"
    assert ([*shop.tables()] == [KEPT]) is done
    if done:
        with pytest.raises(UsageError, match="retired already, since batch 2"):
            shop.retire()
    else:
        shop.retire()
    shop.commit(a=30)
    shop.run()
    assert shop.tables() == {KEPT: {1: 10, 2: 20, 3: 30}}


def test_a_killed_run_must_finish_first(shop: Shop) -> None:
    shop.commit(a=30, b=31)
    with crashing_at("3.after-last-commit", writer):
        shop.run()
    # The topic is gone with the table, and with it the row that the killed run had read.
    shop.log.drop(GONE)
    with pytest.raises(TransientError, match="Run the pipeline .*filtered.collections=public.b"):
        shop.retire()
    shop.run(transaction_filtered_collections=GONE)
    shop.retire()
    shop.commit(a=40)
    shop.run()
    assert shop.tables() == {KEPT: {1: 10, 2: 20, 3: 30, 4: 40}}


@pytest.mark.soak
@pytest.mark.parametrize("place", ["read_lake", further("take_over")])
def test_a_run_that_was_under_way_when_a_table_was_retired_stops_and_reads_it_no_more(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    step = getattr(lake, place)

    def overtaken(*arguments: object) -> object:
        monkeypatch.undo()
        shop.retire()
        return step(*arguments)

    shop.commit(a=30, b=31)
    monkeypatch.setattr(run, place, overtaken)
    with pytest.raises(FencedError, match="retired, or taken up again, since this run began"):
        shop.run()
    assert [*shop.tables()] == [KEPT]
    shop.run()
    assert shop.tables() == {KEPT: {1: 10, 2: 20, 3: 30}}


@pytest.mark.parametrize("undo", [False, further(True)])
def test_a_run_that_read_the_lake_while_the_command_published_stops_before_it_writes(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, undo: bool
) -> None:
    """Its claim is the later one, so nobody fences it."""
    step = lake.read_lake

    def while_publishing(*arguments: Any) -> object:
        read: list[object] = []

        def failpoint(name: str) -> None:
            if name == "4.before-publication":
                read.append(step(*arguments))

        monkeypatch.undo()
        with monkeypatch.context() as patch:
            patch.setattr(table_choice, "failpoint", failpoint)
            shop.retire(undo=undo)
        return read[0]

    if undo:
        shop.retire()
    shop.commit(a=30, b=31)
    monkeypatch.setattr(run, "read_lake", while_publishing)
    with pytest.raises(FencedError, match="retired, or taken up again, since this run began"):
        shop.run()
    assert shop.tables()[KEPT] == {1: 10, 2: 20}
    shop.run()
    assert shop.tables()[KEPT] == {1: 10, 2: 20, 3: 30}
    assert shop.tables().get(GONE) == ({1: 11, 2: 21, 3: 31} if undo else None)


def test_rows_of_a_retired_table_on_another_topic_stop_the_run(shop: Shop) -> None:
    shop.retire()
    shop.commit(a=30, b=31)
    shop.log.rename(topic_of(GONE), "w.routed")
    with pytest.raises(ConfigError, match=r"'w\.routed' holds rows of table 'public\.b'"):
        shop.run()


@pytest.mark.soak
def test_a_name_that_is_not_published_is_refused_with_the_nearest_one(shop: Shop) -> None:
    with pytest.raises(UsageError, match=r"no table 'public\.bb' is published; did you mean"):
        shop.retire(table="public.bb")
    with pytest.raises(UsageError, match=r"no table 'public\.b' is retired; there are: none"):
        shop.retire(undo=True)
