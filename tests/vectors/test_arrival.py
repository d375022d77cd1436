"""Whatever the order of arrival, each case leaves the row that the source had; on Delta."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakeingest.sink.merge_law import MISSING_VALUE
from tests.law.ingest import delta_sink
from tests.law.raw import CONNECTORS, RawIngest
from tests.vectors.arrival import BINLOG, COLUMNS, GONE, OUT, POSTGRESQL, TOASTED, Vector, u
from tests.vectors.judged import Rows, wrong
from tests.vectors.wording import KEY, rounds

pytestmark = [pytest.mark.slow, pytest.mark.soak]

DDL = f"h BIGINT, id BIGINT, {COLUMNS}"

Tables = Callable[..., RawIngest]


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Tables:
    """Return an empty table that is fed by a connector."""

    def made(connector: str, *, hard: bool) -> RawIngest:
        sink = delta_sink(spark, tmp_path, hard=hard, null_missing=False)
        return RawIngest(spark, sink, CONNECTORS[connector], ddl=DDL, key=KEY)

    return made


def live(ingest: RawIngest) -> Rows:
    """Return the live rows by case and key."""
    rows: dict[int, dict[int, dict[str, Any]]] = {}
    for case, key, *values in ingest.live("h", "id", "x", *TOASTED):
        rows.setdefault(case, {})[key] = dict(zip(("x", *TOASTED), values, strict=True))
    return rows


@pytest.mark.parametrize(
    ("connector", "vectors", "hard"),
    [
        pytest.param("postgresql", POSTGRESQL, False, id="postgresql, soft"),
        pytest.param("mysql, files", BINLOG, True, id="mysql, hard"),
        pytest.param("postgresql", POSTGRESQL, True, id="postgresql, hard"),
        pytest.param("mysql, files", BINLOG, False, id="mysql, soft"),
    ],
)
def test_each_order_of_arrival_leaves_the_row_and_a_placeholder_with_no_value_before_it_none(
    table: Tables, connector: str, vectors: Sequence[Vector], hard: bool
) -> None:
    ingest = table(connector, hard=hard)
    list(ingest.deliver(rounds(vectors)))
    assert wrong(live(ingest), vectors) == []
    # Case 20: it stops the run and is never stored.
    place = (2_000_000, 5) if vectors is BINLOG else 5
    alone = Vector("20", "a value left out, nothing before it", ((u(place, 5, doc=OUT),),), GONE)
    with pytest.raises(Py4JJavaError, match=MISSING_VALUE):
        list(ingest.deliver(rounds([alone])))
    assert wrong(live(ingest), vectors) == []
