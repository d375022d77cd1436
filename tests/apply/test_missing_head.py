"""A topic whose head was removed: its first reading stops, and no half transaction is applied."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.inspect.validate import validate_pipeline
from lakeingest.errors import DataError
from tests.logs.written import WrittenLog, change

pytestmark = pytest.mark.slow

ACCEPTED = {"source_missing_head": "accept"}


def test_a_row_whose_end_is_gone_stops_though_the_missing_head_is_accepted(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    """No half transaction is applied, whatever is accepted."""
    log.marker("transaction")
    log.rows("1:100", [change("a", 100)])
    log.transaction("2:200", change("b", 200))
    with pytest.raises(DataError, match=r"'w\.transaction' \(the transaction topic\) at offset 1"):
        log.ingest(spark, lake)
    with pytest.raises(DataError, match="Transaction 1.* is not complete"):
        log.ingest(spark, lake, **ACCEPTED)
    assert not lake.exists()


@pytest.mark.soak
def test_an_accepted_head_is_told_by_a_look_and_by_the_run(
    spark: SparkSession, log: WrittenLog, lake: Path
) -> None:
    log.marker("public.a")
    log.transaction("1:100", change("a", 100))
    looked = validate_pipeline(spark, log.configured(lake, **ACCEPTED))
    (warning,) = log.ingest(spark, lake, **ACCEPTED).warnings
    assert warning in looked.warnings
    assert "what lay before is not in the lake" in warning
