"""A lake that an older lakeingest wrote is read and continued, as if this one had written it."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.reader import open_lake
from tests.apply.old_lakes import AFTER, BEFORE, LAKES, source_after, write
from tests.apply.published import read_table, read_tables
from tests.forms import further
from tests.logs.written import WrittenLog

pytestmark = pytest.mark.slow

RELEASES = sorted(path.name for path in (Path(__file__).parent / "data" / "old_lakes").iterdir())
KINDS = [kind if kind in ("delta-soft", "hudi-hard") else further(kind) for kind in LAKES]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_lake_of_an_older_release_is_read_and_continued(
    spark: SparkSession, log: WrittenLog, lake: Path, release: str, kind: str
) -> None:
    packed = Path(__file__).parent / "data" / "old_lakes" / release / f"{kind}.tar.xz"
    with tarfile.open(packed) as archive:
        archive.extractall(lake.parent, filter="data")
    before, after = source_after(BEFORE), source_after(BEFORE, AFTER)
    assert read_table(spark, lake, "public.a") == before["public.a"]
    write(log, (*BEFORE, *AFTER), 1)
    assert log.ingest(spark, lake, **LAKES[kind]).transactions == len(AFTER)
    assert read_tables(spark, lake, after) == after
    opened = open_lake(spark, str(lake))
    assert sorted(row["batch"] for row in opened.history().collect()) == [1, 2, 3]
    first = opened.snapshot(as_of=1)
    assert {row["id"]: row["v"] for row in first.table("public.a").collect()}[3] == 3
