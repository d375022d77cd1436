"""A connector that starts over: its snapshot replaces the tables, in an epoch of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.apply.batch import writer
from lakeingest.errors import DataError, UsageError
from lakeingest.folders import LEDGER_FOLDER
from tests.apply.crash import crashing_at
from tests.apply.maintained import maintain_quickly
from tests.apply.published import tables
from tests.apply.test_second_snapshot import snapshot
from tests.forms import further
from tests.logs.shop import Shop
from tests.logs.written import Sent, WrittenLog, place_of
from tests.recordings.rust import queried

pytestmark = pytest.mark.slow

REPLACE = {"source_snapshot_again": "replace"}
PUBLISHED = "SELECT transactions FROM t WHERE kind = 'publication' ORDER BY batch"
BEFORE = {"public.a": {1: 11, 2: 20, 3: 30}, "public.b": {5: 50}, "public.c": {7: 70}}


def row(name: str, id_: int, v: int | None, *, before: int | None, lsn: int, ms: int) -> Sent:
    return Sent(f"public.{name}", id_, v, place_of(f"public.{name}", lsn, before, ts_ms=ms))


def commit(
    log: WrittenLog, xid: int, before: int | None, end: int, *rows: tuple[str, int, int | None]
) -> None:
    sent = [row(name, id_, v, before=before, lsn=end - 1, ms=end) for name, id_, v in rows]
    log.transaction(f"{xid}:{end}", *sent)


@pytest.fixture(scope="module")
def complete(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A snapshot and two transactions at 1,000 and above, by connector run ``one``; published."""
    folder = tmp_path_factory.mktemp("complete")
    shop = Shop(spark, WrittenLog(folder / "log", "postgresql", "one"), folder / "lake", {})
    snapshot(shop.log, 1_000, {"a": {1: 10, 2: 20}, "b": {5: 50}, "c": {7: 70}}, 900)
    commit(shop.log, 7, None, 1_100, ("a", 1, 11))
    commit(shop.log, 8, 1_100, 1_200, ("a", 3, 30))
    shop.run()
    return shop


@pytest.fixture
def log(complete: Shop, tmp_path: Path) -> WrittenLog:
    """A copy of its log; that of its lake is beside it."""
    return complete.copied(tmp_path).log


def start_over(log: WrittenLog) -> None:
    """The server was restored to before all of it, and lives on; the connector starts over.

    Not seen: 1 is changed, 2 and 3 are gone, 4 is new, ``c`` is empty.
    """
    log.run = "two"
    snapshot(log, 500, {"a": {1: 12, 4: 40}, "b": {5: 51}}, 2_000)
    commit(log, 7, None, 600, ("a", 4, 41), ("b", 6, 60))
    commit(log, 8, 600, 700, ("b", 5, None))


AFTER = {"public.a": {1: 12, 4: 41}, "public.b": {6: 60}, "public.c": {}}


@pytest.mark.parametrize(
    ("sent", "refused"),
    [
        further((6, 400, 500, ("a", 1, 13)), "started over", id="the log goes back"),
        further((9, None, 1_300, ("a", 1, 13)), "without its offsets", id="no offsets"),
        further((11, 1_200, 1_250), "", id="a transaction of other tables"),
    ],
)
def test_a_new_snapshot_replaces_what_a_run_stopped_at(
    spark: SparkSession, log: WrittenLog, lake: Path, sent: Any, refused: str
) -> None:
    commit(log, *sent)
    if refused:
        with pytest.raises(DataError, match=refused):
            log.ingest(spark, lake)
    start_over(log)
    log.ingest(spark, lake, **REPLACE)
    assert tables(spark, lake) == AFTER


@pytest.mark.soak
def test_a_connector_that_goes_on_without_its_offsets_stops_the_run(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    commit(log, 9, None, 1_300, ("a", 1, 13))
    with pytest.raises(DataError, match="without its offsets"):
        log.ingest(spark, lake)


def test_a_new_snapshot_replaces_the_tables_behind_what_was_complete_where_the_user_says_so(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    """Killed before it is published, it is not published behind a command, but by the next run."""
    assert tables(spark, lake) == BEFORE
    commit(log, 9, 1_200, 1_300, ("a", 2, 21))
    # Killed in mid-transaction: no END, and no row in another table.
    log.begin("10:1301")
    log.rows("10:1301", [row("b", 5, 99, before=1_300, lsn=1_310, ms=1_301)])
    start_over(log)
    with crashing_at("3.after-last-commit", writer, nth=2):
        log.ingest(spark, lake, **REPLACE)
    complete = {**BEFORE, "public.a": {1: 11, 2: 21, 3: 30}}
    assert tables(spark, lake) == complete
    config = log.configured(lake, **REPLACE)
    lakeingest.retire(spark, config, "public.b")
    maintain_quickly(spark, config, expires=False)
    others = {"public.a", "public.c"}
    assert tables(spark, lake) == {name: complete[name] for name in others}
    # The killed run opened the epoch: this one reads it off the ledger, and asks for nothing.
    log.ingest(spark, lake)
    assert tables(spark, lake) == {name: AFTER[name] for name in others}
    ledger = DeltaTable(str(lake / LEDGER_FOLDER))
    (opened,) = queried(ledger, "SELECT offsets FROM t WHERE kind = 'epoch'")["offsets"]
    assert {topic: dict(parts) for topic, parts in opened} == {
        "w.public.a": {"0": 5},
        "w.public.b": {"0": 2},
        "w.public.c": {"0": 1},
        "w.transaction": {"0": 6},
    }
    assert queried(ledger, PUBLISHED)["transactions"] == [0, 2, 1, 0, 0, 0, 2]
    # Nothing removed what the new snapshot lacks of it.
    with pytest.raises(UsageError, match=r"started over after the rows of table 'public\.b'"):
        lakeingest.retire(spark, config, "public.b", undo=True)
