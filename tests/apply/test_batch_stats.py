"""What summaries of a window's records say of its batches."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Row

from lakeingest.apply.batch_stats import batch_stats
from lakeingest.apply.window.contents import RowWithoutEnd, contents
from lakeingest.frame_schemas import Kind

_NOTHING = ("masked", "moved", "unpaired", "relocated", "gone_at", "come_at", "keyless", "size")
_OFFSETS = ("first_offset", "last_offset", "first_new", "first_ms", "source_ms")
_ENDS = ("unended", "first_end", "unplaced_end")
_UNKNOWN = ("run", "place", "sample_key", "first_key", *_ENDS)


def summary(kind: str, offset: int, **columns: Any) -> Row:
    """Return the summary of one record of partition 0, in the columns of ``summary.summarise``."""
    values: dict[str, Any] = {
        "batch": 1,
        "topic": "t",
        "partition": 0,
        "collection": "public.a",
        "kind": kind,
        "records": 1,
        "low": f"{offset:03}",
        "high": f"{offset:03}",
        "firsts": 0,
        "marks": [],
        "value_tags": [],
        "key_tags": [],
        "ops": ["u"],
        "sample": bytearray(f"row {offset}".encode()),
        "sampled": (True, offset),
        **dict.fromkeys(_NOTHING, 0),
        **dict.fromkeys(_OFFSETS, offset),
        **dict.fromkeys(_UNKNOWN),
        **columns,
    }
    return Row(**values)


def test_of_each_partition_only_the_newest_row_shows_the_table() -> None:
    rows = [
        summary(Kind.SNAPSHOT, 3),
        summary(Kind.ROW, 7),
        summary(Kind.ROW, 9, batch=2, ops=["d"], sampled=(False, 9)),
        summary(Kind.SNAPSHOT, 8, batch=2),
        summary(Kind.ROW, 5, partition=1),
        summary(Kind.TRUNCATE, 10, sample=None, sampled=None),
        summary(Kind.MALFORMED, 11, sample=None, sampled=None),
    ]
    stats = batch_stats(rows)
    assert [one.sample for one in stats if one.sample] == [b"row 7", b"row 8", b"row 5"]
    assert [(one.rows, one.floor) for one in stats if one.first_offset == 10] == [(0, "010")]
    assert not any(one.first_offset == 11 for one in stats)


def test_what_a_window_holds_does_not_depend_on_its_batches() -> None:
    rows = [
        summary(Kind.ROW, 7, first_new=None, first_end=3),
        summary(Kind.ROW, 4, batch=None, unended=Row("004", "tx"), marks=[]),
        summary(Kind.ROW, 9, batch=2, records=3, last_offset=12, first_end=5, unplaced_end=5),
    ]
    (portion,) = contents(rows).portions
    assert (portion.records, portion.first_offset, portion.last_offset) == (5, 4, 12)
    assert (portion.highest, portion.first_ms, portion.source_ms) == ("009", 4, 9)
    assert (portion.first_new, portion.first_end, portion.unplaced_end) == (4, 3, 5)
    assert portion.unended == RowWithoutEnd("004", "tx")
    assert len(contents([*rows, summary(Kind.TRUNCATE, 13)]).portions) == 2


def test_only_the_first_transaction_of_all_may_not_say_which_commit_is_before_it() -> None:
    first = summary(Kind.ROW, 4, first_end=3, unplaced_end=3)
    later = summary(Kind.ROW, 9, first_end=5, unplaced_end=5)
    of_first = contents([first])
    assert [of_first.unplaced_end(applied=applied) for applied in (False, True)] == [None, 3]
    assert contents([first, later]).unplaced_end(applied=False) == 5
