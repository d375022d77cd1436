"""A server that takes over with lower numbers: its transactions are the newer ones, from END on."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.apply.factory import open_ledger
from lakeingest.apply.window import failover_epochs
from lakeingest.errors import DataError
from lakeingest.folders import LEDGER_FOLDER
from tests.apply.published import table
from tests.logs.written import PREFIX, Sent, WrittenLog, topic_of
from tests.recordings.rust import queried

pytestmark = pytest.mark.slow

A, B = "0e4d5dcd-a33b-11ea-80f1-02010a22a99e", "7c1de3f2-3fd2-11e6-9cdc-42010af000bc"
C = "9f2e6a10-7b1c-11ee-b962-0242ac120002"
TABLE = "shop.a"


def row(gtid: str, id_: int, v: int | None, op: str | None = None, *, nth: int = 0) -> Sent:
    # Where the new server's file begins again, too.
    place = {"file": "mysql-bin.000001", "pos": 100 * int(gtid.rpartition(":")[2]), "row": nth}
    return Sent(TABLE, id_, v, {"db": "shop", "table": "a", "gtid": gtid, **place}, op)


def commit(log: WrittenLog, gtid: str, *rows: tuple[int, int | None]) -> None:
    log.transaction(gtid, *(row(gtid, id_, v, nth=nth) for nth, (id_, v) in enumerate(rows)))


@pytest.fixture
def log(tmp_path: Path) -> WrittenLog:
    """A server whose last transactions are A:98 to A:100."""
    made = WrittenLog(tmp_path / "log", "mysql")
    for number in (98, 99, 100):
        commit(made, f"{A}:{number}", (1, number), (number, number))
    return made


def opened(lake: Path) -> list[tuple[str, dict[str, dict[str, int]], str]]:
    """Return the epochs of the ledger: domain, from where it holds, what positions begin with."""
    columns = "transaction_id, offsets, end_position"
    query = f"SELECT {columns} FROM t WHERE kind = 'epoch' ORDER BY end_position"  # noqa: S608
    epochs = queried(DeltaTable(f"{lake}/{LEDGER_FOLDER}"), query)
    offsets = [{topic: dict(parts) for topic, parts in each} for each in epochs["offsets"]]
    return [*zip(epochs["transaction_id"], offsets, epochs["end_position"], strict=True)]


@pytest.mark.soak
def test_a_failover_in_one_window_orders_the_new_server_above_the_old_one(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    # The old server's last statement has no END (MariaDB); it is over when the new one begins.
    log.connector = "mariadb"
    log.begin(f"{A}:101")
    log.rows(f"{A}:101", [row(f"{A}:101", 0, None, "t")])
    commit(log, f"{B}:3", (1, 3), (2, 2))
    commit(log, f"{B}:4", (1, 4), (98, None))
    log.ingest(spark, lake, batch_max_events="1")
    assert table(spark, lake, TABLE) == {1: 4, 2: 2}
    assert opened(lake) == [(B, {f"{PREFIX}.transaction": {"0": 7}}, "00011")]


def test_an_epoch_survives_a_restart_and_neither_what_comes_again_nor_rows_without_end_open_one(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    commit(log, f"{B}:3", (1, 3), (2, 3))
    log.ingest(spark, lake)
    earlier_rows = {98: 98, 99: 99, 100: 100}
    assert table(spark, lake, TABLE) == {1: 3, 2: 3, **earlier_rows}
    assert [domain for domain, _, _ in opened(lake)] == [B]
    # The connector goes back over the seam, and on; then the old server returns.
    for number in (99, 100):
        commit(log, f"{A}:{number}", (1, number), (number, number))
    commit(log, f"{B}:3", (1, 3), (2, 3))
    commit(log, f"{B}:4", (2, 4))
    commit(log, f"{A}:101", (3, 101))
    # Rows of a third server wait for their END: nothing of them is published, and they are read
    # again, though the number of their transaction is lower than that of the newest one.
    waiting = {topic: len(records) for topic, records in log._topics.items()}
    log.begin(f"{C}:1")
    log.rows(f"{C}:1", [row(f"{C}:1", 1, 1)])
    log.ingest(spark, lake)
    assert table(spark, lake, TABLE) == {1: 3, 2: 4, 3: 101, **earlier_rows}
    assert [domain for domain, _, _ in opened(lake)] == [B, A]
    frontier = open_ledger(spark, log.configured(lake), "").head().frontier
    assert frontier.low(topic_of(TABLE), 0) == waiting[topic_of(TABLE)]
    assert frontier.low_end == waiting[f"{PREFIX}.transaction"]


@pytest.mark.soak
def test_servers_that_take_turns_are_refused(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover_epochs, "MAX_EPOCHS", 3)
    for number in range(1, 3):
        commit(log, f"{B}:{number}", (1, number))
        commit(log, f"{A}:{100 + number}", (1, number))
    with pytest.raises(DataError, match="servers that take turns"):
        log.ingest(spark, lake)


def tagged(log: WrittenLog, gtid: str, at: int, *rows: tuple[str, int, int]) -> None:
    """Write a transaction at an offset of the binlog; rows are table, key and value."""
    place = {"db": "shop", "gtid": gtid, "file": "b.000009"}
    sent = (
        Sent(f"shop.{name}", id_, v, {**place, "table": name, "pos": at + nth})
        for nth, (name, id_, v) in enumerate(rows)
    )
    log.transaction(gtid, *sent)


def tagged_every_other(log: WrittenLog) -> None:
    for number in range(1, 4):
        tagged(log, f"{A}:billing:{number}", 1_000 * number, ("a", 1, -number), ("a", 2, number))
        # Of tables that are not read, and so without rows.
        tagged(log, f"{A}:audit:{90 - number}", 1_000 * number + 300)
        tagged(log, f"{A}:{100 + number}", 1_000 * number + 500, ("a", 1, number))


@pytest.mark.soak
def test_a_server_that_tags_every_other_transaction_opens_one_epoch(
    spark: SparkSession, log: WrittenLog, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover_epochs, "MAX_EPOCHS", 3)
    log.ingest(spark, lake)
    tagged_every_other(log)
    log.ingest(spark, lake, commit_max_transactions="2")
    now = {1: 3, 2: 3, 98: 98, 99: 99, 100: 100}
    assert table(spark, lake, TABLE) == now
    assert [domain for domain, _, _ in opened(lake)] == [f"{A}:*"]
    # The connector goes back before the first tag, and on.
    commit(log, f"{A}:100", (1, 100), (100, 100))
    tagged_every_other(log)
    tagged(log, f"{A}:audit:90", 9_000, ("a", 2, 9))
    log.ingest(spark, lake)
    assert table(spark, lake, TABLE) == now | {2: 9}
    # Another server takes over; when the first one returns, its place cannot be told.
    commit(log, f"{B}:1", (1, 10))
    log.ingest(spark, lake)
    assert table(spark, lake, TABLE) == now | {1: 10, 2: 9}
    tagged(log, f"{A}:104", 10_000, ("a", 1, 11))
    with pytest.raises(DataError, match="the source's log started over"):
        log.ingest(spark, lake)
