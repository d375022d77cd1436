"""What a key is does not depend on the time zone of the session that a run was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.apply.run_session import run_session
from lakeingest.reader import open_lake
from tests.logs.written import Sent, WrittenLog, place_of

ZONE = "spark.sql.session.timeZone"
TABLE = "public.hours"

# 02:30 in Berlin, twice: before the clocks go back and after.
MOMENTS = ("2024-10-27T00:30:00Z", "2024-10-27T01:30:00Z")


@pytest.fixture
def in_zone(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Set the zone of the user's session; afterwards it is as it was."""
    before = spark.conf.get(ZONE) or "UTC"
    yield lambda zone: spark.conf.set(ZONE, zone)
    spark.conf.set(ZONE, before)


def test_a_run_works_in_utc_and_leaves_the_users_session_its_zone(
    spark: SparkSession, in_zone: Callable[[str], None]
) -> None:
    in_zone("Europe/Berlin")
    assert run_session(spark).conf.get(ZONE) == "UTC"
    assert spark.conf.get(ZONE) == "Europe/Berlin"


@pytest.mark.soak
@pytest.mark.slow
def test_moments_in_a_key_are_the_same_whatever_the_session_calls_them(
    spark: SparkSession, log: WrittenLog, lake: Path, in_zone: Callable[[str], None]
) -> None:
    def run(zone: str, lsn: int, v: int) -> None:
        in_zone(zone)
        rows = []
        for place, moment in enumerate(MOMENTS, lsn):
            source = place_of(TABLE, place, lsn - 1)
            rows.append(Sent(TABLE, moment, v, source, op="u" if v > 1 else "c"))
        log.transaction(f"{lsn}:{lsn}", *rows)
        columns = {f"table_{TABLE}_schema": "id TIMESTAMP, v BIGINT"}
        log.ingest(spark, lake, target_format="hudi", **columns)

    run("Europe/Berlin", 10, 1)
    run("America/New_York", 20, 2)
    in_zone("UTC")
    rows = open_lake(spark, str(lake)).table(TABLE)
    assert sorted(tuple(row) for row in rows.select(F.col("id").cast("string"), "v").collect()) == [
        ("2024-10-27 00:30:00", 2),
        ("2024-10-27 01:30:00", 2),
    ]
