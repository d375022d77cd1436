"""The text by which Hudi finds a row whose key it cannot keep itself."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lakeingest.sink.hudi.record_key import with_record_key
from tests.sink.lake import NAMES

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
    found = keys(spark)
    assert [text for text in found if not ends(text)] == []
    assert len(set(found)) == len(TEXTS)


def test_a_record_key_that_hudi_could_write_before_stays_as_it_was(spark: SparkSession) -> None:
    plain = [f'["{a}","{b}"]' for a, b in TEXTS]
    found = keys(spark)
    assert [text for text in found if text in plain] == [text for text in plain if ends(text)]


@pytest.mark.parametrize(
    "more",
    [{"hoodie.index.type": "SIMPLE"}, {GENERATOR: "o.a.h.keygen.ComplexKeyGenerator"}],
    ids=["no buckets", "named"],
)
def test_where_hudi_does_not_look_for_columns_every_key_stays(
    spark: SparkSession, more: dict[str, str]
) -> None:
    assert keys(spark, **more) == [f'["{a}","{b}"]' for a, b in TEXTS]
