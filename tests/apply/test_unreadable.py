"""Records that cannot be applied hold all behind them, until they are sent again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.factory import open_ledger
from lakeingest.apply.window.unreadable_records import Unreadable, unreadable_error
from lakeingest.errors import ConfigError, DataError
from lakeingest.frame_schemas import Kind
from lakeingest.source.contract import TopicPartition
from tests.apply.published import table
from tests.forms import further
from tests.logs.written import Sent, WrittenLog, place_of, topic_of

pytestmark = pytest.mark.slow

A = "public.a"
EACH = {"transaction_mode": "none"}


def place(number: int, snapshot: str = "false") -> dict[str, Any]:
    return place_of(A, number, number // 100 * 100, snapshot=snapshot)


def copied(id_: int, v: int, snapshot: str) -> Sent:
    return Sent(A, id_, v, place(10, snapshot), "r")


def changed(log: WrittenLog, number: int, *ids: int) -> None:
    """Write a transaction that gives each of these rows its number."""
    log.transaction(
        f"{number}:{number * 100}",
        *(Sent(A, id_, number, place(number * 100 - 50 + id_), "u") for id_ in ids),
    )


def read_up_to(spark: SparkSession, log: WrittenLog, lake: Path) -> Mapping[int, int]:
    """Return the offsets of the table's topic at which the next run begins."""
    return open_ledger(spark, log.configured(lake), "").head().frontier.offsets[topic_of(A)]


def test_a_snapshot_row_that_cannot_be_read_holds_the_snapshot_until_it_is_sent_again(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    log.put(copied(1, 0, "first"))
    log.raw(A, {"id": 2}, copied(2, 0, "true").value(None) + "}")
    log.put(copied(3, 0, "last"))
    changed(log, 2, 1, 3)
    message = r"at offset 1 of 'w\.public\.a' partition 0 cannot be read"
    with pytest.raises(DataError, match=message):
        log.ingest(spark, lake)
    assert not (lake / A).exists()
    log.put(copied(2, 0, "true"))
    assert log.ingest(spark, lake).batches == 2
    assert table(spark, lake, A) == {1: 2, 2: 0, 3: 2}
    # The next run begins behind the broken record, and behind the one that replaces it.
    assert read_up_to(spark, log, lake) == {0: 6}


def test_a_row_that_is_no_utf8_and_one_whose_key_is_none_hold_what_lies_behind_until_sent_again(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    changed(log, 2, 1, 2)
    changed(log, 3, 1)
    rows = Sent(A, 2, 4, place(351), "u"), Sent(A, 3, 4, place(352), "c")
    blocks = [{"id": "4:400", "total_order": number} for number in (1, 2)]
    text = rows[0].value(blocks[0]).encode().replace(b'"v": 4', b'"v": 4, "t": "\xff"')
    log.begin("4:400")
    log.raw(A, {"id": 2}, text)
    log.raw(A, None, rows[1].value(blocks[1]))
    log.spoil_key(A, b'{"id":3,"t":"\xff"}')
    log.end("4:400", {A: 2})
    changed(log, 5, 1)
    message = r"at offset 3 of 'w\.public\.a' .* \(2 such records.*no UTF-8"
    with pytest.raises(DataError, match=message):
        log.ingest(spark, lake)
    # Of the last transaction before it a row may be to come.
    assert table(spark, lake, A) == {1: 2, 2: 2}
    for row, block in zip(rows, blocks, strict=True):
        log.put(row, block)
    log.ingest(spark, lake)
    assert table(spark, lake, A) == {1: 5, 2: 4, 3: 4}
    assert read_up_to(spark, log, lake) == {0: 8}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("mode", "key"),
    [
        ("none", b'{"id":'),
        ("metadata", b'{"id":2,"t":"\xff"}'),
        ("none", b'{"id":2} x'),
        ("metadata", b'{"id":2} x'),
    ],
)
def test_a_record_whose_key_cannot_be_read_is_named_and_may_be_sent_again(
    spark: SparkSession, log: WrittenLog, lake: Path, mode: str, key: bytes
) -> None:
    changed(log, 2, 1)
    block = {"id": "3:300", "total_order": 1}
    row = Sent(A, 2, 3, place(252), "c")
    log.begin("3:300")
    log.raw(A, None, row.value(block))
    log.spoil_key(A, key)
    log.end("3:300", {A: 1})
    changed(log, 4, 1)
    with pytest.raises(DataError, match=r"offset 1 of 'w\.public\.a' partition 0 cannot be read"):
        log.ingest(spark, lake, transaction_mode=mode)
    if mode == "none":
        log.ingest(spark, lake, transaction_mode=mode, source_skip_records="w.public.a:0:1")
        assert table(spark, lake, A) == {1: 4}
    else:
        log.put(row, block)
        log.ingest(spark, lake)
        assert table(spark, lake, A) == {1: 4, 2: 3}


UNKNOWN_OPERATION = r"offset 1 .* other than c, u, d, r, t and m.*records as w\.public\.a:0:1"


def test_an_unknown_operation_is_named_and_how_to_skip_its_record() -> None:
    where = TopicPartition(topic_of(A), 0)
    unknown = Unreadable(where, 1, 1, "", Kind.UNKNOWN, has_op=True)
    with pytest.raises(DataError, match=UNKNOWN_OPERATION):
        raise unreadable_error({where: unknown}, whole=False)


@pytest.mark.soak
def test_without_transactions_an_unknown_operation_stops_the_run_behind_what_came_before(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    log.put(Sent(A, 1, 1, place(10), "c"))
    log.raw(A, {"id": 2}, Sent(A, 2, 1, place(11), "x").value(None))
    log.put(Sent(A, 1, 2, place(12), "u"))
    with pytest.raises(DataError, match=UNKNOWN_OPERATION):
        log.ingest(spark, lake, **EACH)
    assert table(spark, lake, A) == {1: 1}
    log.ingest(spark, lake, **EACH, source_skip_records="w.public.a:0:1")
    assert table(spark, lake, A) == {1: 2}


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [("public.b", "{", DataError), further("of.nobody", {"told": 1}, ConfigError)],
)
def test_without_transactions_a_partition_that_begins_with_such_a_record_holds_no_other_one(
    spark: SparkSession, log: WrittenLog, lake: Path, name: str, value: Any, kind: type[Exception]
) -> None:
    for number in range(1, 4):
        log.put(Sent(A, number, number, place(number), "c"))
        log.raw(name, {"id": number}, value)
    with pytest.raises(kind, match=rf"offset 0 of 'w\.{name}' partition 0"):
        log.ingest(spark, lake, **EACH, batch_max_events="2")
    assert table(spark, lake, A) == {1: 1, 2: 2, 3: 3}


@pytest.mark.parametrize("mode", [further("none"), "metadata"])
def test_rows_without_their_envelopes_are_named_and_make_no_empty_table(
    spark: SparkSession, log: WrittenLog, lake: Path, mode: str
) -> None:
    for id_ in (1, 2):
        log.raw(A, {"id": id_}, {"id": id_, "v": 1, "__op": "c", "__source_lsn": 10})
    log.begin("1:100")
    log.end("1:100", {A: 2})
    message = (
        r"offset 0 of 'w\.public\.a' partition 0 is not a Debezium event \(2 such .*"
        r"lakeingest\.source\.envelope=flattened"
    )
    with pytest.raises(ConfigError, match=message):
        log.ingest(spark, lake, transaction_mode=mode)
    assert not (lake / A).exists()
