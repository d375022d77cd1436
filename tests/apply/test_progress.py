"""Progress is how far the log was read: markers, messages and retention do not change that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakeingest.apply.factory import open_ledger
from lakeingest.apply.run import run_pipeline
from lakeingest.apply.window import progress
from lakeingest.apply.window.contents import Contents, Portion
from lakeingest.apply.window.offset_ranges import WindowRanges, plan_window_ranges
from lakeingest.apply.window.progress import frontier_behind, is_due
from lakeingest.apply.window.unreadable_records import Unreadable
from lakeingest.apply.window.window import Window
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import PUBLICATION, Frontier, Publication
from lakeingest.source import RecordedSource
from lakeingest.source.contract import OffsetRange, TopicPartition, Watermarks
from lakeingest.topic_names import TopicNames
from tests.apply.published import publication_of, table
from tests.apply.test_offset_ranges import ENDS, Log
from tests.logs.written import PREFIX, Sent, WrittenLog, place_of
from tests.recordings.rust import RustLake

ROWS = TopicPartition("px.a", 0)
BEHIND = Frontier(
    end_offset=7, end_position="1", offsets={"px.a": {0: 100}}, streaming=True, read_offset=9
)
HOUR = 3_600_000


def looked_at(*kinds: str, ends_read_to: int | None = 12) -> Window:
    """Return a window of offsets 100 to 150 without a batch; a record of each kind at 120."""
    rows = (OffsetRange("px.a", 0, 100, 150),)
    ranges = WindowRanges(OffsetRange("px.transaction", 0, 9, 12), rows, frozenset())
    portion = Portion(ROWS, "a", "", 1, 120, "", 0, frozenset(), first_new=120)
    contents = Contents(tuple(replace(portion, kind=kind) for kind in kinds))
    nothing: DataFrame = None  # type: ignore[assignment]  # nobody asks for rows
    return Window(ranges, contents, nothing, nothing, False, "", ends_read_to=ends_read_to)


def test_the_transaction_topic_is_read_on_from_behind_the_marker_of_a_kafka_transaction() -> None:
    log = Log(9, {ROWS: 100})
    assert plan_window_ranges(log, ENDS.topic, BEHIND, 1_000).nothing
    assert not plan_window_ranges(log, ENDS.topic, replace(BEHIND, read_offset=-1), 1_000).nothing


def test_an_older_ledger_goes_on_behind_its_last_end() -> None:
    text = Publication(frontier=BEHIND).to_json("p", PUBLICATION)
    assert '"read_offset": 9' in text
    older = publication_of(text.replace(', "read_offset": 9', "").replace('"at_ms": 0, ', ""))
    assert older.frontier.low_end == 8


def test_records_that_make_no_table_are_behind_the_frontier() -> None:
    after = frontier_behind(looked_at(Kind.FOREIGN, Kind.NULL_RECORD, Kind.MESSAGE), BEHIND, 0)
    assert after == replace(BEHIND, offsets={"px.a": {0: 150}}, read_offset=12)


@pytest.mark.parametrize("kind", [Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE])
def test_what_waits_for_its_transaction_is_read_again(kind: str) -> None:
    after = frontier_behind(looked_at(Kind.FOREIGN, kind, ends_read_to=None), BEHIND, 0)
    assert after == replace(BEHIND, offsets={"px.a": {0: 120}})


def test_rows_of_released_transactions_make_progress_due_and_are_known_by_their_offsets() -> None:
    window = looked_at(Kind.ROW)
    assert not window.contents.redelivered()
    (row,) = window.contents.portions
    again = replace(window, contents=Contents((replace(row, first_new=None),)))
    assert again.contents.redelivered()
    assert frontier_behind(again, BEHIND, 0).offsets == {"px.a": {0: 150}}


def test_a_record_that_cannot_be_read_is_read_again_until_it_was_sent_again() -> None:
    window = looked_at(Kind.FOREIGN, Kind.MALFORMED)
    unreadable_window = replace(window, unreadable={ROWS: Unreadable(ROWS, 120, 1, "")})
    assert frontier_behind(unreadable_window, BEHIND, 0).offsets == {"px.a": {0: 120}}
    assert frontier_behind(window, BEHIND, 0).offsets == {"px.a": {0: 150}}


def test_nothing_moves_before_the_first_publication_nor_while_a_transaction_waits() -> None:
    first = replace(BEHIND, streaming=False)
    assert frontier_behind(looked_at(Kind.FOREIGN), first, 0) == first
    assert frontier_behind(replace(looked_at(Kind.FOREIGN), waiting=1), BEHIND, 0) == BEHIND


def test_a_begin_that_stays_alone_for_hours_does_not_hold_the_transaction_topic() -> None:
    window = replace(looked_at(ends_read_to=None), alone_since=HOUR)
    reached = [frontier_behind(window, BEHIND, hours * HOUR).read_offset for hours in (2, 8)]
    assert reached == [9, 12]


def test_progress_alone_is_published_behind_many_records_or_after_hours() -> None:
    head = Publication(frontier=BEHIND, at_ms=HOUR)
    few = replace(BEHIND, read_offset=10)
    many = replace(BEHIND, offsets={"px.a": {0: 100 + progress.PROGRESS_RECORDS}})
    assert not is_due(head, few, 2 * HOUR)
    assert is_due(head, few, 8 * HOUR)
    assert is_due(head, replace(few, offsets={"px.a": {0: 5}}), 8 * HOUR)  # Made again.
    assert is_due(head, many, 2 * HOUR)
    assert not is_due(head, BEHIND, 8 * HOUR)


class Retained(RecordedSource):
    """A recorded log as a broker has it whose producer writes in Kafka's transactions.

    Attributes:
        retained: Whether retention has spared the records.
        readings: Ranges that were read.
    """

    retained = True
    readings = 0

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        """Behind the last record of each partition lies a marker."""
        watermarks = super().watermarks(topics)
        return {
            place: Watermarks(0 if self.retained else marks.high + 1, marks.high + 1)
            for place, marks in watermarks.items()
        }

    def read(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        self.readings += len(ranges)
        marks = super().watermarks([span.topic for span in ranges])
        highs = {place: watermarks.high for place, watermarks in marks.items()}
        ends = [min(span.end, highs[TopicPartition(span.topic, span.partition)]) for span in ranges]
        within = [replace(span, end=end) for span, end in zip(ranges, ends, strict=True)]
        return super().read([span for span in within if span.start < span.end])


def place(lsn: int) -> Mapping[str, object]:
    return place_of("public.a", lsn, lsn - 10, txId=lsn)


@pytest.mark.soak
@pytest.mark.slow
def test_an_idle_database_under_exactly_once_connect_is_not_read_again_and_has_lost_nothing(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.transaction("50:60", Sent("public.a", 1, 10, place(50), "c"))

    def run(*, retained: bool = True) -> tuple[int, int]:
        ends = f"{PREFIX}.transaction"
        source = Retained(spark, str(log.folder), TopicNames(PREFIX), transaction_topic=ends)
        source.retained = retained
        return run_pipeline(spark, log.configured(lake), source=source).batches, source.readings

    assert run()[0] == 1
    assert run(retained=False) == (0, 0)
    # Messages of nobody's: passed over in each run, until progress alone is published.
    log.marker("transaction")
    log.mark({"status": "nobody's", "id": "x"})
    assert run()[0] == 0
    monkeypatch.setattr(progress, "PROGRESS_RECORDS", 1)
    assert run()[0] == 1
    assert run(retained=False) == (0, 0)
    log.marker("transaction", "public.a")
    log.transaction("70:80", Sent("public.a", 2, 20, place(70), "c"))
    assert run()[0] == 1
    assert table(spark, lake, "public.a") == {1: 10, 2: 20}
    # What a killed connector sent again holds no progress until retention takes it.
    log.transaction("70:80", Sent("public.a", 2, 20, place(70), "c"))
    assert run()[0] == 1
    assert run() == (0, 0)
    published = RustLake(lake, "public").publications()
    assert [(one.batch, one.transactions) for one in published] == [(1, 1), (2, 0), (3, 1), (4, 0)]


@pytest.mark.slow
def test_an_end_counts_its_rows_though_its_begin_was_passed(
    spark: SparkSession, tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PROGRESS_RECORDS", 1)
    log = WrittenLog(tmp_path / "log", "mariadb")
    place = {"db": "shop", "table": "a", "file": "b.1"}
    first, late = (
        Sent("shop.a", n, n, {**place, "gtid": f"0-1-{n}", "pos": n}, "c") for n in (1, 2)
    )
    log.transaction("0-1-1", first)
    log.begin("0-1-2")
    assert log.ingest(spark, lake).batches == 2
    assert open_ledger(spark, log.configured(lake), "").head().frontier.low_end == 3
    log.rows("0-1-2", [late])
    log.end("0-1-2", {"shop.a": 1})
    log.ingest(spark, lake)
    assert table(spark, lake, "shop.a") == {1: 1, 2: 2}
