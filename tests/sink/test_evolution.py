"""What a changed schema does to the rows that are in a table, whatever its format."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, DoubleType, LongType

from lakeingest.errors import DataError
from lakeingest.sink.contract import Changeset
from tests.forms import HARD, sinks_and_deletes
from tests.sink.conftest import SINKS, Lakes
from tests.sink.lake import COLLECTION, DDL, Lake, Payload, delete, insert, update

# Real Delta and Hudi commits, some seconds each.
pytestmark = pytest.mark.slow

MORE = f"{DDL}, more STRING"


def filled(lake: Lake, *payloads: Payload, floor: str = "") -> Changeset:
    """Return the changeset that brings the column ``more``, whose default is "old"."""
    return replace(lake.changeset(*payloads, ddl=MORE, floor=floor), fills={"more": F.lit("old")})


@sinks_and_deletes("lakes", ("delta", "hudi-mor"))
def test_rows_of_the_table_get_the_default_of_a_new_column_in_the_commit_of_the_batch(
    lakes: Lakes, hard: bool
) -> None:
    lake = lakes(hard=hard)
    before = lake.apply(*(insert(id_, id_, n=id_, body=f"{id_}") for id_ in (1, 2, 3)))
    changes = filled(
        lake, Payload(1, 5, {"n": 5, "more": "new"}), delete(2, 6), insert(4, 7, n=4, more=None)
    )
    lake.state = lake.sink.apply(changes, lake.note(2), before)
    expected = {1: (5, None, "new"), 3: (3, "3", "old"), 4: (4, None, None)}
    assert lake.live("n", "body", "more") == expected
    assert len([version for version in lake.versions() if version > before.version]) == 1
    assert "more" not in lake.sink.read(COLLECTION, before.version).columns


@HARD
def test_a_key_that_is_used_again_has_nothing_in_columns_that_are_no_more(
    lakes: Lakes, hard: bool
) -> None:
    lake = lakes(hard=hard)
    lake.apply(*(insert(id_, id_, n=id_, body="old") for id_ in (1, 2, 3)), delete(9, 9))
    lake.apply(delete(1, 10))
    again = Payload(2, 12, {"n": 12}, first="d")
    lake.apply(insert(1, 11, n=11), again, Payload(3, 13, {"n": 13}), ddl="id BIGINT, n INT")
    assert lake.live("n", "body") == {1: (11, None), 2: (12, None), 3: (13, "old")}


@pytest.mark.soak
def test_a_value_that_is_nowhere_is_null_in_a_column_that_is_no_more(lakes: Lakes) -> None:
    lake = lakes()
    before = lake.apply(insert(1, 1, n=1, body="a", blob=b"", tags=[]))
    whole = {"n": 2, "blob": b"", "tags": []}
    changes = replace(
        lake.changeset(update(1, 2, **whole), update(2, 3, **whole)), forgiven=("body",)
    )
    lake.state = lake.sink.apply(changes, lake.note(2), before)
    assert lake.live("n", "body") == {1: (2, "a"), 2: (2, None)}


def test_a_table_at_a_relative_path_gets_its_first_timestamp_without_time_zone(
    spark: SparkSession, tmp_path: Path
) -> None:
    new_sink, root = SINKS["delta"], os.path.relpath(tmp_path)
    lake = Lake(spark, lambda **options: new_sink(spark, root, **options), {})
    lake.apply(insert(1, 1))
    lake.apply(
        insert(2, 2, noon=datetime.fromisoformat("2026-01-02T12:00:00")),
        ddl=f"{DDL}, noon TIMESTAMP_NTZ",
    )
    assert lake.live("noon") == {1: (None,), 2: (datetime.fromisoformat("2026-01-02T12:00:00"),)}


def test_types_are_widened_without_loss_or_refused_and_a_wider_key_keeps_its_tombstones(
    each_lakes: Lakes,
) -> None:
    narrow = "i INT, f FLOAT, d DECIMAL(6,2)"
    wide = "id BIGINT, i BIGINT, f DOUBLE, d DECIMAL(20,4)"
    lake = each_lakes(hard=True)
    rows = (insert(key, key, i=1, f=0.1, d=Decimal("12.34")) for key in (2, 3))
    lake.apply(*rows, delete(1, 5), ddl=f"id INT, {narrow}")
    large, larger = 2**40, 2**41
    values = {"i": 2**40, "f": 1e300, "d": Decimal("1.2345")}
    wider = (insert(large, 6), delete(larger, 9), delete(2, 7), insert(4, 6, **values))
    lake.apply(*wider, ddl=wide)
    kinds = [lake.head().schema[name].dataType for name in ("i", "f", "d")]
    assert kinds == [LongType(), DoubleType(), DecimalType(20, 4)]
    # What the float was, and not what its text says.
    old = (1, 0.10000000149011612, Decimal("12.3400"))
    new = (2**40, 1e300, Decimal("1.2345"))
    assert lake.live("i", "f", "d") == {3: old, 4: new, large: (None, None, None)}
    late = (Payload(1, 4, {"i": 4}), Payload(larger, 8, {"i": 8}))
    newer = Payload(4, 10, {"i": 3, "f": 0.25, "d": Decimal("0.5")})
    wide_key = Payload(large, 11, {"i": 5})
    lake.apply(*late, newer, wide_key, ddl=f"id BIGINT, {narrow}, `select` STRING")
    live = {3: (*old, None), 4: (3, 0.25, Decimal("0.5000"), None), large: (5, None, None, None)}
    assert lake.live("i", "f", "d", "`select`") == live
    with pytest.raises(DataError, match="'i' of 'public.docs' is bigint in the lake and string"):
        lake.apply(insert(5, 12, i="x"), ddl=wide.replace("i BIGINT", "i STRING"))
    assert lake.sink.state(COLLECTION) == lake.state
