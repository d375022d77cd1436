"""Null records where no transaction counts their deletes: beside a delete, or one by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply import each_event
from lakeingest.apply.contents import Contents, Portion
from lakeingest.apply.null_records import refuse_lone_null_records
from lakeingest.errors import DataError
from lakeingest.shape import Kind
from lakeingest.source.contract import TopicPartition
from tests.apply.changing import ID, Log, column

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
    "its delete may be in the window before": ("-1 c2", None),
    "its delete would be in this window": ("c2 -1", 1),
    "the second one of two": ("-1 -2", 1),
    "behind its delete again": ("-1 c1 d1 -1", None),
}
"""The same of one of which something was read before."""

CASES = [(words, want, False) for words, want in BEGUN.values()] + [
    (words, want, True) for words, want in GONE_ON.values()
]


def test_a_null_record_is_judged_by_what_lies_before_it(spark: SparkSession) -> None:
    rows = [
        ("t", case, 100 + offset, *_read(word))
        for case, (words, _, _) in enumerate(CASES)
        for offset, word in enumerate(words.split())
    ]
    frame = spark.createDataFrame(
        rows, "topic string, partition int, offset long, kind string, op string, key binary"
    ).localCheckpoint()
    for case, (_, want, read_before) in enumerate(CASES):
        where = TopicPartition("t", case)
        kinds = {kind for _, partition, _, kind, *_ in rows if partition == case}
        found = Contents(
            tuple(Portion(where, "", kind, 1, 100, "", 0, frozenset()) for kind in kinds)
        )
        of_case = frame.where(f"partition = {case}")
        known = {where} if read_before else set()
        if want is None:
            refuse_lone_null_records(of_case, found, known)
            continue
        with pytest.raises(DataError, match=f"at offset {100 + want} of 't' partition {case} "):
            refuse_lone_null_records(of_case, found, known)


def _read(word: str) -> tuple[str, str | None, bytearray | None]:
    key = bytearray(word[1:].encode()) or None
    return (Kind.NULL_RECORD, None, key) if word[0] == "-" else (Kind.ROW, word[0], key)


def null_record(log: Log, id_: int) -> None:
    log._write(log._rows, json.dumps({"id": id_}), None)


def test_a_delete_that_comes_as_a_null_record_only_stops_the_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path)
    log.commit(COLUMNS, ("c", {"id": 1, "v": 1}), ("c", {"id": 2, "v": 2}))
    null_record(log, 2)
    with pytest.raises(DataError, match=r"delete\.tombstone\.handling\.mode=rewrite"):
        log.run(spark, EACH)
    with monkeypatch.context() as unguarded:
        unguarded.setattr(each_event, "refuse_lone_null_records", lambda *_: None)
        log.run(spark, EACH)
    assert log.rows(spark, "v") == {1: (1,), 2: (2,)}
