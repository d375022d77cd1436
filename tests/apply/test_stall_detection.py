"""What is said of a transaction that lacks rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.stall_detection import Patience, refuse_stall
from lakeingest.apply.window.contents import Contents
from lakeingest.apply.window.incomplete_transaction import NO_END, IncompleteTransaction
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.window import Window
from lakeingest.errors import DataError
from lakeingest.topic_names import TopicNames
from tests.apply.written import Sent, WrittenLog

pytestmark = pytest.mark.slow


@pytest.mark.soak
def test_a_filtered_table_that_was_misspelt_is_named_beside_the_one_that_lacks_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its topic cannot tell: where a transform drops every row there is none."""
    log = WrittenLog(tmp_path / "log", "postgresql")
    place = {"schema": "public", "table": "a", "txId": 1, "lsn": 50, "sequence": '["1","50"]'}
    log.begin("1:100")
    log.rows("1:100", [Sent("public.a", 1, 10, place, "c")])
    log.end("1:100", {"public.a": 1, "public.secrets": 2})
    meant = {"transaction_filtered_collections": "public.secret,public.other"}
    told = (
        r"table 'public\.secrets', 0 are there.*filtered\.collections \(it names public\.secret\);"
    )
    with pytest.raises(DataError, match=told):
        log.ingest(spark, tmp_path / "lake", **meant)
    right = {"transaction_filtered_collections": "public.secrets"}
    summary = log.ingest(spark, tmp_path / "lake", **right)
    assert (summary.batches, summary.warnings) == (1, ())


NO_FRAME: Any = None
EMPTY = Window(WindowRanges(None, (), frozenset()), Contents(()), NO_FRAME, NO_FRAME, False, "")


def stalled(
    waiting: int, *, reason: str = "rows are missing", static: bool, continuous: bool
) -> str:
    """Return what is said of a window that an incomplete transaction blocks."""
    named_by = None if reason == NO_END else 7
    first = IncompleteTransaction(7, reason, "tx", "public.a", named_by=named_by, written_ms=1)
    window = replace(EMPTY, waiting=waiting, incomplete=first)
    patience = Patience(0, static=static, continuous=continuous)
    with pytest.raises(DataError) as error:
        refuse_stall(window, patience, TopicNames("shop"))
    return str(error.value)


@pytest.mark.parametrize(
    ("waiting", "reason", "said"),
    [
        (1, "rows are missing", "It holds back no other;"),
        (2, "rows are missing", "It holds back 1 later transaction;"),
        (4, "rows are missing", "It holds back 3 later transactions;"),
        # Without an END it is not among those that wait.
        (1, NO_END, "It holds back 1 later transaction;"),
    ],
)
def test_the_transactions_behind_an_incomplete_one_are_counted_without_it(
    waiting: int, reason: str, said: str
) -> None:
    assert said in stalled(waiting, reason=reason, static=True, continuous=False)


@pytest.mark.parametrize(
    ("static", "continuous", "remedy"),
    [
        (True, False, "if rows are only late, record the topics again"),
        (False, False, "if rows are only late, run again when they have arrived"),
        (False, True, "if rows are only late, raise lakeingest.transaction.timeout.seconds"),
    ],
)
def test_what_helps_late_rows_depends_on_how_the_run_waits(
    static: bool, continuous: bool, remedy: str
) -> None:
    assert remedy in stalled(1, static=static, continuous=continuous)
