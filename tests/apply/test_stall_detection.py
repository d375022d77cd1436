"""What is said of a transaction that lacks rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.errors import DataError
from tests.apply.written import Sent, WrittenLog

pytestmark = pytest.mark.slow


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
