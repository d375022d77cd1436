"""A connector that was killed amid a transaction, before Debezium counted such a one whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.errors import DataError
from tests.repro.history import History

pytestmark = pytest.mark.slow


def test_rows_of_a_killed_connector_do_not_stand_for_as_many_that_are_under_way(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of two rows the first was sent before the kill; END counts the second one alone."""
    history = History(spark, "killed-tail-late", tmp_path)
    with pytest.raises(DataError, match="no incarnation of the connector sent all rows"):
        history.run(1)
    assert history.run(2).transactions == 1
    assert history.ids("public.a") == [1, 2]
