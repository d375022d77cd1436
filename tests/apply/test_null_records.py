"""Null records where no transaction counts their deletes: beside a delete, or one by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.apply.window.contents import Contents, Portion
from lakeingest.apply.window.null_records import refuse_lone_null_records
from lakeingest.errors import DataError
from lakeingest.frame_schemas import Kind
from lakeingest.source.contract import TopicPartition
from tests.logs.changing import ID, Log, column

pytestmark = pytest.mark.slow

EACH = {"transaction.mode": "none"}
COLUMNS = (ID, column("v", "int64"))

BEGUN: dict[str, tuple[str, int | None]] = {
    "behind its delete": ("c1 d1 -1 c2", None),
    "behind its delete and other keys": ("d1 c2 -1", None),
    "twice behind its delete": ("d1 -1 -1", None),
    "behind another change of its key": ("c1 c2 -1", 2),
    "behind a row that came after its delete": ("d1 -1 c1 -1", 3),
    "without a key": ("c1 c2 -", None),
    "of a row that was never there": ("c2 -1 -3 c1", None),
}
"""Records of a partition that is read from its beginning; the offset of the one that is refused."""

GONE_ON: dict[str, tuple[str, int | None]] = {
    "its delete is in the window before": ("c1 d1 | -1 c2", None),
    "a null record of its key is": ("c2 -1 | -1 c2", None),
    "another change of its key is": ("d1 c1 | -1 c2", 2),
    "another key's delete is": ("d2 | -1 c2", 1),
    "what lay before is there no more": ("| -1 c2", 0),
    "its delete would be in this window": ("d1 | c2 -1", 2),
    "the second one of two": ("d1 | -1 -2", 2),
    "behind its delete again": ("d1 | -1 c1 d1 -1", None),
}
"""The same of one of which what stands before the bar was read before."""

CASES = [(*case, False) for case in BEGUN.values()] + [(*case, True) for case in GONE_ON.values()]


COLUMNS_READ = "topic string, partition int, offset long, kind string, op string, key binary"


def test_a_null_record_is_judged_by_what_lies_before_it(spark: SparkSession) -> None:
    rows = [
        (_topic(case), 0, 100 + offset, *_read(word))
        for case, (words, _, _) in enumerate(CASES)
        for offset, word in enumerate(words.replace("|", "").split())
    ]
    frame = spark.createDataFrame(rows, COLUMNS_READ).localCheckpoint()
    _judge(frame, rows, [case for case, (_, want, _) in enumerate(CASES) if want is None])
    for case, (_, want, _) in enumerate(CASES):
        if want is not None:
            message = f"at offset {100 + want} of '{_topic(case)}' partition 0 "
            with pytest.raises(DataError, match=message):
                _judge(frame, rows, [case])


def _topic(case: int) -> str:
    """Return a topic of its own, for deletes in other partitions of a topic count."""
    return f"t{case}"


def _judge(frame: DataFrame, rows: Sequence[tuple[Any, ...]], cases: Sequence[int]) -> None:
    """Judge one window that has the topics of these cases."""
    begins = {_topic(case): 100 + len(CASES[case][0].rpartition("|")[0].split()) for case in cases}
    read_before = {
        TopicPartition(_topic(case), 0): begins[_topic(case)] for case in cases if CASES[case][2]
    }
    of_cases = frame.where(F.col("topic").isin(*begins))
    is_before = F.col("offset") < F.create_map(*map(F.lit, chain(*begins.items())))[F.col("topic")]

    def before(firsts: Mapping[TopicPartition, int]) -> DataFrame:
        assert firsts == read_before
        return of_cases.where(is_before)

    kinds = {(topic, kind) for topic, _, at, kind, *_ in rows if at >= begins.get(topic, at + 1)}
    portions = [
        portion(TopicPartition(topic, 0), kind, begins[topic]) for topic, kind in sorted(kinds)
    ]
    window = of_cases.where(~is_before)
    refuse_lone_null_records(window, Contents(tuple(portions)), {*read_before}, before)


def test_a_null_record_may_lie_in_another_partition_than_its_delete(spark: SparkSession) -> None:
    here, there = TopicPartition("t", 0), TopicPartition("t", 1)
    rows = [("t", 0, offset, *_read(word)) for offset, word in enumerate(("c1", "-1", "-2"))]
    rows.append(("t", 1, 0, *_read("d1")))
    contents = Contents(
        (portion(here, Kind.ROW, 0), portion(here, Kind.NULL_RECORD, 1), portion(there, "row", 0))
    )
    frame = spark.createDataFrame(rows, COLUMNS_READ)
    with pytest.raises(DataError, match=r"at offset 2 .* tombstones\.on\.delete=false"):
        refuse_lone_null_records(frame, contents, {here, there}, lambda _: frame)
    refuse_lone_null_records(frame.where("key = X'31'"), contents, {here, there}, lambda _: frame)


def portion(where: TopicPartition, kind: str, first: int) -> Portion:
    return Portion(where, "", kind, 1, first, "", 0, frozenset())


def _read(word: str) -> tuple[str, str | None, bytearray | None]:
    key = bytearray(word[1:].encode()) or None
    return (Kind.NULL_RECORD, None, key) if word[0] == "-" else (Kind.ROW, word[0], key)


def test_a_null_record_that_comes_first_in_a_later_run_is_judged_by_what_lies_before(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Nothing but the record before has a schema, which this run has not met.
    log = Log(tmp_path, "avro")
    created = (("c", {"id": id_, "v": id_}) for id_ in (1, 2))
    log.commit(COLUMNS, *created, ("d", {"id": 1, "v": 1}))
    log.run(spark, EACH)
    # The first one belongs to the delete before it, the second one to none.
    for id_ in (1, 2):
        log._write(log._rows, log._key(id_), None)
    with pytest.raises(DataError, match="at offset 4 "):
        log.run(spark, EACH)
    assert log.rows("v") == {2: (2,)}
