"""A topic whose head was removed: its first reading stops, or is accepted once for all."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.inspect.validate import validate_pipeline
from lakeingest.errors import DataError
from tests.apply.written import WrittenLog, change, table
from tests.forms import further

pytestmark = pytest.mark.slow

ACCEPTED = {"source_missing_head": "accept"}
MISSING = r"topic 'w\.public\.{}' \(table 'public\.{}'\) at offset 1 \(partition 0\)"


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["metadata", further("none")])
def test_a_topic_without_its_head_is_read_once_that_is_accepted(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    log, lake = WrittenLog(tmp_path / "log", "postgresql"), tmp_path / "lake"
    log.marker("public.a")
    log.transaction("1:100", change("a", 100), change("b", 100))
    settings = {"transaction_mode": mode}
    with pytest.raises(DataError, match=MISSING.format("a", "a")):
        validate_pipeline(spark, log.configured(lake, **settings))
    with pytest.raises(DataError, match=MISSING.format("a", "a")):
        log.ingest(spark, lake, **settings)
    assert not lake.exists()
    found = validate_pipeline(spark, log.configured(lake, **settings, **ACCEPTED))
    summary = log.ingest(spark, lake, **settings, **ACCEPTED)
    assert found.warnings == summary.warnings
    (warning,) = summary.warnings
    assert "at offset 1 (partition 0): what lay before is not in the lake" in warning
    log.transaction("2:200", change("a", 200))
    assert log.ingest(spark, lake, **settings).warnings == ()
    assert (table(spark, lake, "public.a"), table(spark, lake, "public.b")) == ({1: 200}, {1: 100})


@pytest.mark.soak
def test_a_topic_that_joins_later_without_its_head_stops_before_anything_of_it_is_published(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, lake = WrittenLog(tmp_path / "log", "postgresql"), tmp_path / "lake"
    log.transaction("1:100", change("a", 100))
    log.ingest(spark, lake)
    log.marker("public.late")
    log.transaction("2:200", change("a", 200), change("late", 200))
    with pytest.raises(DataError, match=MISSING.format("late", "late")):
        log.ingest(spark, lake)
    assert table(spark, lake, "public.a") == {1: 100}


@pytest.mark.soak
def test_a_transaction_whose_rows_went_with_an_accepted_head_is_not_taken_for_a_filtered_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, lake = WrittenLog(tmp_path / "log", "postgresql"), tmp_path / "lake"
    log.marker("public.a")
    log.begin("1:100")
    log.rows("1:100", [change("b", 100)])
    log.end("1:100", {"public.a": 1, "public.b": 1})
    log.transaction("2:200", change("a", 200))
    with pytest.raises(DataError, match="head of the table's topic is missing") as error:
        log.ingest(spark, lake, **ACCEPTED)
    assert "filtered.collections" not in str(error.value)


def test_a_row_whose_end_is_gone_stops_though_the_missing_head_is_accepted(
    spark: SparkSession, tmp_path: Path
) -> None:
    """No half transaction is applied, whatever is accepted."""
    log, lake = WrittenLog(tmp_path / "log", "postgresql"), tmp_path / "lake"
    log.marker("transaction")
    log.rows("1:100", [change("a", 100)])
    log.transaction("2:200", change("b", 200))
    with pytest.raises(DataError, match=r"'w\.transaction' \(the transaction topic\) at offset 1"):
        log.ingest(spark, lake)
    with pytest.raises(DataError, match="Transaction 1.* is not complete"):
        log.ingest(spark, lake, **ACCEPTED)
    assert not lake.exists()
