"""A table that the source dropped leaves the pipeline, as a user retires it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply import lake, run
from lakeingest.apply.batch import writer
from lakeingest.apply.choice import table_choice
from lakeingest.apply.choice.retire import Retirement
from lakeingest.apply.inspect.status import pipeline_status
from lakeingest.apply.inspect.validate import validate_pipeline
from lakeingest.apply.window import progress
from lakeingest.errors import DataError, FencedError, TransientError, UnavailableError, UsageError
from lakeingest.reader import open_lake
from tests.apply.crash import crashing_at
from tests.forms import further
from tests.logs.shop import GONE, Shop, begun_shop, row
from tests.logs.written import topic_of

pytestmark = pytest.mark.slow

KEPT = "public.a"
LISTED = ",".join(map(topic_of, (KEPT, GONE)))


@pytest.mark.parametrize("format_", ["delta", further("hudi")])
def test_a_dropped_table_is_retired_once_a_killed_run_is_finished_and_older_snapshots_show_it(
    spark: SparkSession, shop: Shop, tmp_path: Path, format_: str
) -> None:
    if format_ == "hudi":
        shop = begun_shop(spark, tmp_path / "hudi", format_)
    shop.commit(a=30, b=31)
    with crashing_at("3.after-last-commit", writer):
        shop.run()
    # The topic is gone with the table, and with it the row that the killed run had read.
    shop.log.drop(GONE)
    message = "Run the pipeline .*filtered.collections=public.x,public.b this once"
    with pytest.raises(TransientError, match=message):
        shop.retire(transaction_filtered_collections="public.x")
    finished = shop.run(transaction_filtered_collections=GONE)
    assert any("w.public.b' does not exist any more" in warning for warning in finished.warnings)
    shop.commit(a=40)
    with pytest.raises(UnavailableError, match=r"w\.public\.b"):
        shop.run(source_topics=LISTED)
    with crashing_at("4.after-publication", table_choice):
        shop.retire(source_topics=LISTED)
    assert [*shop.tables()] == [KEPT]
    with pytest.raises(UsageError, match="retired already, since batch 3"):
        shop.retire()
    published = open_lake(spark, str(shop.lake))
    older = published.snapshot(as_of=1).table(GONE)
    assert {r["id"]: r["v"] for r in older.collect()} == {1: 11, 2: 21}
    # The lake needs its folder no more, and its list of topics may stay as it is.
    shutil.rmtree(shop.lake / GONE)
    said = shop.run(source_topics=LISTED)
    assert (said.transactions, said.warnings) == (1, ())
    assert shop.tables() == {KEPT: {1: 10, 2: 20, 3: 30, 4: 40}}
    tables = [sorted(s.tables()) for s in published.snapshots()]
    assert tables == [[KEPT, GONE], [KEPT, GONE], [KEPT], [KEPT]]


@pytest.mark.soak
def test_a_table_of_which_nothing_is_left_can_be_retired(shop: Shop) -> None:
    shop.log.drop(GONE)
    shutil.rmtree(shop.lake / GONE)
    shop.commit(a=30)
    shop.retire()
    assert shop.run().transactions == 1
    assert shop.tables() == {KEPT: {1: 10, 2: 20, 3: 30}}


def test_rows_of_a_topic_that_was_made_anew_are_neither_taken_up_nor_mixed_in_but_told_of(
    shop: Shop,
) -> None:
    shop.log.drop(GONE)
    assert shop.retire() == Retirement(2, GONE)
    # Made anew at the source, under the same name: its topic begins at offset 0 again.
    shop.commit(a=30, b=31)
    with pytest.raises(DataError, match="deleted and made again"):
        shop.retire(undo=True, transaction_filtered_collections=GONE)
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


def overtaken_run(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run; right after the run read the lake, the command publishes, and the run must stop.

    Its claim is the later one, so nobody fences it.
    """
    step = lake.read_lake

    def while_publishing(*arguments: Any) -> object:
        read: list[object] = []

        def failpoint(name: str) -> None:
            if name == "4.before-publication":
                read.append(step(*arguments))

        overtaking.undo()
        with monkeypatch.context() as patch:
            patch.setattr(table_choice, "failpoint", failpoint)
            shop.retire()
        return read[0]

    with monkeypatch.context() as overtaking:
        overtaking.setattr(run, "read_lake", while_publishing)
        with pytest.raises(FencedError, match="retired, or taken up again, since this run began"):
            shop.run()


@pytest.mark.parametrize("format_", ["delta", further("hudi")])
def test_it_is_taken_up_again_from_where_it_was_left_and_shown_once_all_its_rows_are_read(
    spark: SparkSession, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    """A run under way stops before it writes."""
    if format_ == "hudi":
        shop = begun_shop(spark, tmp_path / "hudi", format_)
    monkeypatch.setattr(progress, "PROGRESS_RECORDS", 1)
    for v in (31, 41, 51):
        shop.commit(a=v - 1, b=v)
    files = sorted((shop.lake / GONE).rglob("*"))
    overtaken_run(shop, monkeypatch)
    assert shop.tables() == {KEPT: {1: 10, 2: 20}}
    shop.commit(a=60)
    shop.run()
    rows = {1: 10, 2: 20, 3: 30, 4: 40, 5: 50, 6: 60}
    assert shop.tables() == {KEPT: rows}
    assert sorted((shop.lake / GONE).rglob("*")) == files
    assert shop.retire(undo=True) == Retirement(4, GONE, 3)
    # Not before it is at the commit of the others.
    assert [*shop.tables()] == [KEPT]
    said = shop.run(batch_max_events="2", window_max_records="2")
    assert (said.batches, said.warnings) == (1, ())
    assert shop.tables() == {KEPT: rows, GONE: {1: 11, 2: 21, 3: 31, 4: 41, 5: 51}}


@pytest.mark.soak
def test_one_that_has_its_waiting_rows_already_is_shown_with_the_next_transaction_of_another(
    shop: Shop,
) -> None:
    shop.settings["commit_mode"] = "per-transaction"
    shop.retire()
    # A restarted connector sends the last transaction again.
    shop.log.transaction("2:2100", row(KEPT, 2, 1, 2, 20), row(GONE, 2, 2, 2, 21))
    shop.retire(undo=True)
    shop.commit(a=30)
    shop.run()
    assert shop.tables() == {KEPT: {1: 10, 2: 20, 3: 30}, GONE: {1: 11, 2: 21}}
