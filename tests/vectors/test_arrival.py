"""Whatever the order of arrival, each case leaves the row that the source had; on Delta."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.sink.merge_law import MISSING_VALUE
from tests.forms import SOFT, further
from tests.law.ingest import delta_sink
from tests.law.raw import CONNECTORS, RawIngest
from tests.vectors.arrival import (
    BINLOG,
    COLUMNS,
    GONE,
    OUT,
    POSTGRESQL,
    A,
    Event,
    Vector,
    c,
    r,
    u,
)
from tests.vectors.judged import Rows, wrong
from tests.vectors.wording import KEY, rounds

pytestmark = pytest.mark.slow

DDL = f"h BIGINT, id BIGINT, {COLUMNS}"

Tables = Callable[..., RawIngest]


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Tables:
    """Return an empty table that is fed by a connector; the same one again is a restart."""

    def made(connector: str, *, hard: bool = False, null_missing: bool = False) -> RawIngest:
        sink = delta_sink(spark, tmp_path, hard=hard, null_missing=null_missing)
        return RawIngest(spark, sink, CONNECTORS[connector], ddl=DDL, key=KEY)

    return made


def live(found: RawIngest) -> Rows:
    """Return the live rows by case and key."""
    rows: dict[int, dict[int, dict[str, Any]]] = {}
    for row in found.head().where(~F.col("_deleted")).collect():
        values = {**row.asDict(), "blob": row["blob"] and bytes(row["blob"])}
        rows.setdefault(row["h"], {})[row["id"]] = values
    return rows


@pytest.mark.parametrize(
    ("connector", "vectors", "hard"),
    [
        pytest.param("postgresql", POSTGRESQL, False, id="postgresql, soft"),
        further("mysql, files", BINLOG, True, id="mysql, hard"),
        further("postgresql", POSTGRESQL, True, id="postgresql, hard"),
        further("mysql, files", BINLOG, False, id="mysql, soft"),
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


@pytest.mark.soak
@SOFT
def test_a_deleted_row_stays_gone_after_compaction_cleaning_and_a_restart(
    spark: SparkSession, table: Tables, hard: bool
) -> None:
    """Case 19: case 18 with everything in between that takes old files away."""
    (case,) = (vector for vector in POSTGRESQL if vector.number == "18")
    first, second, late = rounds([case])
    ingest = table("postgresql", hard=hard)
    list(ingest.deliver([first, second]))
    path = ingest.sink.path("public.docs")
    spark.sql(f"OPTIMIZE delta.`{path}`")
    now = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        # VACUUM lists in as many tasks as this, 10,000 unless it is told otherwise.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    }
    for name, value in now.items():
        spark.conf.set(name, value)
    try:
        spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")
    finally:
        for name in now:
            spark.conf.unset(name)
    again = table("postgresql", hard=hard)
    again.resume()
    list(again.deliver([late]))
    assert live(again) == {}


@pytest.mark.soak
def test_a_placeholder_is_null_until_its_value_comes_where_that_is_asked_for(
    table: Tables,
) -> None:
    """Case 20."""
    lenient = table("postgresql", null_missing=True)
    later = Vector("20", "then its value comes", ((u(5, doc=OUT),), (c(4, doc=A),)), {})
    batches = rounds([later])
    list(lenient.deliver(batches[:1]))
    assert live(lenient)[0][1]["doc"] is None
    list(lenient.deliver(batches[1:]))
    row = live(lenient)[0][1]
    assert (row["x"], row["doc"]) == (5, A)


@pytest.mark.soak
def test_a_truncate_takes_what_is_below_it_whatever_comes_later(table: Tables) -> None:
    """Case 26: it reaches every key, so it has a table of its own."""
    case = Vector(
        "26",
        "a truncate",
        ((c(1), c(1, 2)), (Event("t", 5), c(6, 3)), (u(4, 2), r(9, 4))),
        {3: {"x": 6}},
    )
    ingest = table("postgresql")
    list(ingest.deliver(rounds([case])))
    assert wrong(live(ingest), [case]) == []
