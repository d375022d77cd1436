"""The text by which Hudi finds a row whose key it cannot keep itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakeingest.sink.hudi.record_key import with_record_key
from tests.sink.lake import META, NAMES, Lake, changeset

KEY = ("a", "b")
GENERATOR = "hoodie.datasource.write.keygenerator.class"
BUCKETS = {"hoodie.index.type": "BUCKET", GENERATOR: "o.a.h.keygen.NonpartitionedKeyGenerator"}


def ends(text: str) -> bool:
    """Return whether Hudi's search for columns in a key ends (``extractRecordKeysByFields``)."""
    if "," not in text or ":" not in text:
        return True
    place = 0
    while place < len(text):
        first = text.index(":", place)
        colon = text.find(":", first + 1)
        if colon < 0:
            return True
        while text.rfind(",", 0, colon + 1) < first:
            colon = text.find(":", colon + 1)
            if colon < 0:
                return False
        place = text.rfind(",", 0, colon + 1) + 1
    return True


TEXTS = [
    ("1", "2024-10-27 00:30:00"),
    ("2024-10-27 00:30:00", "1"),
    ("0001-01-01", "0001-01-01 00:00:00"),
    ("a:b", "c:d"),
    ("a:b:c", "d,e:f"),
    ("a:b", "c"),
    ("a,b", "c:d:e"),
    ("x", "y"),
    ("x,b:y", "z"),
    ("::", ",:"),
    (",", "::"),
]


def keys(spark: SparkSession, **more: str) -> list[str]:
    frame = spark.createDataFrame(TEXTS, "a STRING, b STRING")
    made = with_record_key(frame, KEY, (NAMES.record_key,), {**BUCKETS, **more})
    return [row[NAMES.record_key] for row in made.collect()]


def test_a_record_key_never_keeps_hudi_looking_for_columns_for_ever(spark: SparkSession) -> None:
    record_keys = keys(spark)
    assert [text for text in record_keys if not ends(text)] == []
    assert len(set(record_keys)) == len(TEXTS)


def test_a_record_key_that_hudi_could_write_before_stays_as_it_was(spark: SparkSession) -> None:
    plain = [f'["{a}","{b}"]' for a, b in TEXTS]
    assert [text for text in keys(spark) if text in plain] == [text for text in plain if ends(text)]


@pytest.mark.parametrize(
    "more",
    [{"hoodie.index.type": "SIMPLE"}, {GENERATOR: "o.a.h.keygen.ComplexKeyGenerator"}],
    ids=["no buckets", "named"],
)
def test_where_hudi_does_not_look_for_columns_every_key_stays(
    spark: SparkSession, more: dict[str, str]
) -> None:
    assert keys(spark, **more) == [f'["{a}","{b}"]' for a, b in TEXTS]


@pytest.fixture
def other_zone(spark: SparkSession) -> Iterator[None]:
    """Let the machine be in another zone, whose clock is a minute behind UTC.

    Not a zone ahead: Hudi makes no instant before the last one that this JVM has made. It waits
    until it can, so not one far behind either.
    """
    jvm: Any = spark._jvm
    zones, before = jvm.java.util.TimeZone, jvm.java.util.TimeZone.getDefault()
    zones.setDefault(zones.getTimeZone("GMT-00:01"))
    yield
    zones.setDefault(before)


def instant(moment: datetime) -> int:
    """Return the version that a commit of a moment has, in UTC."""
    return int(moment.strftime("%Y%m%d%H%M%S000"))


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.usefixtures("other_zone")
def test_keys_of_text_are_told_apart_and_instants_are_in_utc_whatever_the_zone_of_the_machine(
    hudi_lake: Lake,
) -> None:
    """Hudi itself would write both keys as ``a:x,b:y,b:z``, and refuse the empty one.

    In a zone of its own instants would go back once a year, and with the next machine. The test is
    in a file of short ones: the other worker waits, and so does this one until that worker's test
    is over. Late in a run, where short files are, both are brief.
    """
    ddl = "a STRING, b STRING, n INT"
    keys = [("x,b:y", "z"), ("x", "y,b:z"), ("", ""), ('"', ",")]
    rows = [(a, b, at) for at, (a, b) in enumerate(keys)]
    begun, versions = [], []
    for position in ("1", "2"):
        begun.append(instant(datetime.now(timezone.utc)))
        frame = hudi_lake.spark.createDataFrame(
            [(*row, position, False, None, "c", None) for row in rows], f"{ddl}, {META}"
        )
        payloads = changeset(hudi_lake.spark, [], "a STRING, b STRING, n INT")
        payloads = replace(payloads, frame=frame, key=("a", "b"), low="1", high=position)
        hudi_lake.batch += 1
        note = hudi_lake.note(hudi_lake.batch)
        hudi_lake.state = hudi_lake.sink.apply(payloads, note, hudi_lake.state)
        versions.append(hudi_lake.state.version)
    assert versions[0] < versions[1]
    assert all(moment <= version for moment, version in zip(begun, versions, strict=True))
    lake_rows = [(row["a"], row["b"], row["n"]) for row in hudi_lake.head().collect()]
    assert sorted(lake_rows) == sorted(rows)
    assert NAMES.record_key in hudi_lake.raw().columns
