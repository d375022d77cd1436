"""BEGINs and ENDs that are lost or come again: nothing is published without their rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.batch import publish
from lakeingest.errors import DataError
from lakeingest.reader import open_lake
from tests.apply.crash import crashing_at
from tests.apply.published import table
from tests.forms import further
from tests.logs.written import Sent, WrittenLog, place_of

pytestmark = pytest.mark.slow


def insert(id_: int, before: int, lsn: int) -> Sent:
    return Sent("public.a", id_, id_, place_of("public.a", lsn, before), "c")


@pytest.mark.soak
@pytest.mark.parametrize("begun", [True, False], ids=["END is lost", "BEGIN and END are lost"])
def test_nothing_is_published_past_a_transaction_without_end(
    spark: SparkSession, log: WrittenLog, lake: Path, begun: bool
) -> None:
    log.transaction("1:100", insert(1, 90, 99))
    if begun:
        log.begin("2:100")
    log.rows("2:150", [insert(2, 100, 150)])
    log.transaction("3:300", insert(3, 200, 250))
    named = "2:100" if begun else "2"
    lost = "is not complete \\(the END of a later transaction.*its own is not before it"
    with pytest.raises(
        DataError, match=f"Transaction {named} {lost}.*holds back 1 later transaction;"
    ):
        log.ingest(spark, lake)
    assert table(spark, lake, "public.a") == {1: 1}


def test_nothing_but_a_truncate_of_mariadb_is_over_without_an_end(
    spark: SparkSession, tmp_path: Path, lake: Path
) -> None:
    log = WrittenLog(tmp_path / "log", "mariadb")
    for n, op in enumerate("tccc", 1):
        id_, v = f"0-1-{n}", None if op == "t" else n
        place = {"db": "shop", "table": "a", "gtid": id_, "file": "b.000001", "pos": n}
        log.begin(id_)
        log.rows(id_, [Sent("shop.a", n, v, place, op)])
        if n in (2, 4):
            log.end(id_, {"shop.a": 1})
    message = "Transaction 0-1-3 is not complete .it has rows.*holds back 1 later transaction; .*XA"
    with pytest.raises(DataError, match=message):
        log.ingest(spark, lake)
    assert table(spark, lake, "shop.a") == {2: 2}


@pytest.mark.soak
def test_nothing_is_published_past_a_transaction_whose_end_comes_behind_what_passed_it(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    """Somebody sent it again: its order is not that of the topic."""
    log.transaction("1:100", insert(1, 90, 99))
    log.begin("2:100")
    log.rows("2:150", [insert(2, 100, 150)])
    log.transaction("3:300", insert(3, 200, 250))
    log.begin("2:100")
    log.end("2:200", {"public.a": 1})
    with pytest.raises(DataError, match="Transaction 2:200 is not complete .the END of a later"):
        log.ingest(spark, lake)
    assert table(spark, lake, "public.a") == {1: 1}


@pytest.mark.parametrize("keyless", [further("append"), "full-row"])
def test_rows_without_a_key_that_unnamed_lives_of_the_connector_repeat_are_there_once(
    spark: SparkSession, log: WrittenLog, lake: Path, keyless: str
) -> None:
    """Killed twice in one transaction, before Debezium 3.3: each life numbers its rows anew."""
    rows = [replace(insert(n, 100, 110 + n), key=False) for n in range(1, 7)]
    before = {"id": 3, "v": 3}
    source = place_of("public.a", 190, 100)
    gone = replace(rows[2], v=None, op="d", before=before, source=source)
    log.transaction("1:100", replace(insert(9, 90, 99), key=False))
    for life in (rows[:3], rows[2:5], [*rows[4:], gone]):
        log.begin("2:111")
        log.rows("2:111", life if keyless == "full-row" else [r for r in life if r is not gone])
    log.end("2:200", {"public.a": 3 if keyless == "full-row" else 2})
    log.ingest(spark, lake, **{"table.public.a.keyless": keyless})
    there = [1, 2, 4, 5, 6, 9] if keyless == "full-row" else [1, 2, 3, 4, 5, 6, 9]
    # A row that is there twice would be an error.
    assert sorted(table(spark, lake, "public.a")) == there


def test_a_transaction_that_lacks_rows_is_published_in_part_where_the_user_says_so(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    in_part = {"transaction_timeout_action": "apply-partial"}
    log.transaction("1:100", insert(1, 90, 99))
    log.begin("2:100")
    log.rows("2:111", [insert(2, 100, 110)])
    log.end("2:200", {"public.a": 3})
    log.transaction("3:300", insert(4, 200, 250))
    with crashing_at("4.before-publication", publish, nth=2):
        log.ingest(spark, lake, **in_part)
    assert table(spark, lake, "public.a") == {1: 1}
    (warning,) = (text for text in log.ingest(spark, lake, **in_part).warnings if "2:200" in text)
    assert "is published in part (fewer rows than END counts): END counts 3 rows" in warning
    assert table(spark, lake, "public.a") == {1: 1, 2: 2, 4: 4}
    transactions = open_lake(spark, str(lake)).transactions().orderBy("end_offset").collect()
    assert [row["missing_by_table"] for row in transactions] == [None, {"public.a": 2}, None]
    # One row comes late, and nobody has to ask for it. The other one never does.
    log.rows("2:111", [insert(3, 100, 111)])
    log.transaction("4:400", insert(5, 300, 350))
    assert "2:200" not in " ".join(log.ingest(spark, lake).warnings)
    assert table(spark, lake, "public.a") == {1: 1, 2: 2, 3: 3, 4: 4, 5: 5}
