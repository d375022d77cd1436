"""Which unreadable records hold a partition back: one partition per case, one job for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from lakeingest.frame_schemas import CHANGE, Kind
from lakeingest.position import after
from lakeingest.transaction.unreadable import unreplaced_records
from tests.transaction.frames import change_of


@dataclass(frozen=True)
class At:
    """A record: place in the source's log (0: it cannot be read), key, and what it is."""

    place: int
    key: str | None = None
    kind: str = Kind.ROW
    counted: bool = True
    masked: bool = False


BAD = 0


def bad(key: str | None = None, kind: str = Kind.MALFORMED) -> At:
    return At(BAD, key, kind)


def snapshot(key: str) -> At:
    return At(1, key, Kind.SNAPSHOT, counted=False)


Cases = dict[str, tuple[Sequence[At], tuple[int, int, int] | None]]
"""Name: records, and (first offset held, how many, place reached) or none."""

STREAMED: Cases = {
    "the last record": ([At(5), bad("k")], (1, 1, 5)),
    "the first record": ([bad("k"), At(5)], (0, 1, 0)),
    "an operation that nobody knows": ([At(5), bad("k", Kind.UNKNOWN)], (1, 1, 5)),
    "another message of Debezium's": ([At(5), At(BAD, None, Kind.FOREIGN)], None),
    "sent again behind later rows": ([At(5), bad("k"), At(8), At(9), At(6, "k")], None),
    "sent again with another key": ([At(5), bad("?"), At(8), At(6, "k")], None),
    "sent again at once": ([At(5), bad("k"), At(6, "k"), At(8)], None),
    "sent again with all since then": ([At(5), bad("k"), At(4), At(5), At(6, "k"), At(8)], None),
    "the key's next change": ([At(5), bad("k"), At(8, "l"), At(9, "k")], (1, 1, 5)),
    "an old row again": ([At(2), At(5), bad("k"), At(8), At(2)], (2, 1, 5)),
    "a row of before again": ([At(5), bad("k"), At(8), At(3, "k")], (1, 1, 5)),
    "a row of later again": ([At(5), bad("k"), At(8), At(9), At(8)], (1, 1, 5)),
    "the next row without a key": ([At(5), bad(), At(6)], (1, 1, 5)),
    "sent again without a key": ([At(5), bad(), At(8), At(6)], None),
    "a chunk row that leaves a column out": (
        [At(5), bad("k"), At(6, "k", counted=False, masked=True)],
        (1, 1, 5),
    ),
    "two, one sent again": ([At(5), bad("?"), bad("?"), At(8), At(6, "k")], (1, 2, 5)),
    "two sent again": ([At(5), bad("?"), bad("?"), At(9), At(6, "k"), At(7, "l")], None),
    "two, the first sent again": ([At(5), bad("k"), At(8), bad("l"), At(9), At(6, "k")], (3, 1, 8)),
}

INITIAL: Cases = {
    "a snapshot row": ([snapshot("a"), bad("k"), snapshot("b")], (1, 1, 0)),
    "a snapshot row sent again": ([snapshot("a"), bad("k"), snapshot("b"), snapshot("k")], None),
    "a snapshot row that changed later": ([snapshot("a"), bad("k"), At(6, "k")], (1, 1, 0)),
    "a streamed row": ([snapshot("a"), At(5), bad("k"), At(6, "k")], None),
}


EACH: Cases = {
    "the first record, and an old row again": ([bad("k"), At(8, "l"), At(2, "m")], (0, 1, 0)),
    "the first record, sent again": ([bad("k"), At(8, "l"), At(6, "k")], None),
    "sent again with another key": ([At(5), bad("?"), At(8), At(6, "k")], None),
}


def local_checkpoint(
    spark: SparkSession, cases: Sequence[Sequence[At]], released: str, *, initial: bool
) -> dict[int, tuple[int, int, str]]:
    rows = []
    for partition, records in enumerate(cases):
        for offset, record in enumerate(records):
            change = change_of(
                partition=partition,
                offset=offset,
                kind=record.kind,
                op="x" if record.kind == Kind.UNKNOWN else None,
                position=after(0, record.place) if record.place else None,
                identity=hash((record.place, record.key)),
                transaction_key="1" if record.counted and record.place else None,
                may_be_masked=record.masked,
                key=record.key.encode() if record.key else None,
            )
            rows.append(change)
    frame = spark.createDataFrame(rows, CHANGE).coalesce(1)
    return {
        row["partition"]: (row["first"]["offset"], row["records"], row["first"]["reached"])
        for row in unreplaced_records(frame, released, initial=initial).collect()
    }


@pytest.mark.parametrize(
    ("cases", "released", "initial"),
    [(STREAMED, after(0, 4), False), (INITIAL, "", True), (EACH, "", False)],
    ids=["streamed", "initial", "each on its own"],
)
def test_an_unreadable_record_holds_its_partition_unless_it_was_sent_again(
    spark: SparkSession, cases: Cases, released: str, initial: bool
) -> None:
    holds = local_checkpoint(
        spark, [records for records, _ in cases.values()], released, initial=initial
    )
    expected = {
        name: None if hold is None else (*hold[:2], after(0, hold[2]) if hold[2] else "")
        for name, (_, hold) in cases.items()
    }
    assert {name: holds.get(number) for number, name in enumerate(cases)} == expected
