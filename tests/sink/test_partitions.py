"""Partitioned tables: a key is in one partition, whatever its changes say of it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know

from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.engine.hudi_table import READ_OPTIONS
from lakeingest.errors import ConfigError, DataError
from tests.forms import HARD, further
from tests.sink.conftest import Lakes
from tests.sink.lake import COLLECTION, NAMES, Lake, Payload, at, delete, insert, successor, update
from tests.sink.test_hudi import SERVICES, table_type_of

# Real commits, some seconds each.
pytestmark = pytest.mark.slow


def folders(lake: Lake) -> set[str]:
    """Return the names of the table's folders."""
    found = Path(lake.sink.path(COLLECTION)).iterdir()
    return {path.name for path in found if path.is_dir() and not path.name.startswith((".", "_d"))}


@HARD
def test_a_row_that_moves_is_found_where_it_is_and_nowhere_else(
    each_partitioned: Lakes, hard: bool
) -> None:
    lake = each_partitioned("n", hard=hard)
    lake.apply(insert(1, 1, n=1, body="a"), insert(2, 2, n=1), insert(3, 3, n=2))
    assert folders(lake) == {"n=1", "n=2"}
    lake.apply(Payload(1, 5, {"n": 2, "body": "b"}))
    moved = {1: (2, "b"), 2: (1, None), 3: (2, None)}
    assert lake.live("n", "body") == moved
    lake.apply(Payload(1, 4, {"n": 1, "body": "late"}))
    assert lake.live("n", "body") == moved
    # A delete knows its key alone.
    lake.apply(delete(1, 6), delete(3, 7))
    assert lake.live("n", "body") == {2: (1, None)}
    # It is marked, or taken away, where it was.
    gone = lake.head().where(NAMES.deleted).select("id", "n").collect()
    assert sorted(map(tuple, gone)) == ([] if hard else [(1, 2), (3, 2)])
    lake.restart()
    lake.apply(Payload(1, 5, {"n": 1}))
    assert lake.live() == {2: (1,)}
    lake.apply(insert(1, 8, n=7), Payload(2, 8, {"n": None}))
    assert lake.live() == {1: (7,), 2: (None,)}


@HARD
def test_a_batch_with_moves_again_changes_nothing(partitioned: Lakes, hard: bool) -> None:
    lake = partitioned("n", hard=hard)
    lake.apply(insert(1, 1, n=1), insert(2, 2, n=1), insert(3, 3, n=2))
    batch = (Payload(1, 5, {"n": 2}), delete(2, 6), Payload(3, 7, {"n": 1}))
    unpublished = lake.apply(*batch)
    lake.restart()
    assert lake.state == unpublished
    lake.state = lake.sink.fence(unpublished, 2, "run 2")
    note = successor(lake.note(2), 2, "run 2")
    lake.state = lake.sink.apply(lake.changeset(*batch), note, lake.state)
    assert lake.live() == {1: (2,), 3: (1,)}
    assert lake.everything(lake.state.version) == lake.everything(unpublished.version)


@HARD
def test_a_truncate_reaches_every_partition(partitioned: Lakes, hard: bool) -> None:
    lake = partitioned("n", hard=hard)
    lake.apply(insert(1, 1, n=1), insert(2, 2, n=2), insert(3, 9, n=3))
    lake.apply(insert(2, 6, n=1), floor=at(5))
    assert lake.live() == {2: (1,), 3: (3,)}
    lake.apply(Payload(2, 4, {"n": 2}), Payload(3, 10, {"n": 1}))
    assert lake.live() == {2: (1,), 3: (1,)}


TEXTS = ["a/b", "..", "x=y", "%2F", "ä b", None]


def test_a_partition_that_an_update_leaves_out_is_the_rows_whatever_its_text(
    each_partitioned: Lakes,
) -> None:
    lake = each_partitioned("body")
    rest = {"blob": b"b", "tags": ["t"]}
    rows = dict(enumerate(TEXTS))
    lake.apply(*(insert(n, n + 1, n=n, body=text, **rest) for n, text in rows.items()))
    root = Path(lake.sink.path(COLLECTION))
    assert not [path for path in root.parent.rglob("*.parquet") if root not in path.parents]
    lake.apply(*(update(n, n + 101, n=n + 10) for n in rows))
    assert lake.live("n", "body") == {n: (n + 10, text) for n, text in rows.items()}
    # What an older change supplies later moves the row, which has its position already.
    lake.apply(update(0, 50, n=0, body="supplied"))
    assert lake.live("n", "body")[0] == (10, "supplied")


@pytest.mark.parametrize("text", ["", further("__HIVE_DEFAULT_PARTITION__")])
def test_a_text_that_no_folder_keeps_stops_the_batch(partitioned: Lakes, text: str) -> None:
    lake = partitioned("body")
    before = lake.apply(insert(1, 1, body="b"))
    with pytest.raises(DataError, match="would be read as NULL"), spark_errors_of(COLLECTION):
        lake.apply(insert(2, 2, body=text))
    assert lake.sink.state(COLLECTION) == before


def test_a_partition_of_key_columns_needs_no_look_at_the_table(
    partitioned: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("lakeingest.sink.hudi.sink.merged_rows")
    lake = partitioned("id")
    lake.apply(insert(1, 1, n=1), insert(2, 2, n=2))
    lake.apply(Payload(1, 3, {"n": 3}), delete(2, 4))
    lake.apply(Payload(1, 2, {"n": 2}), Payload(2, 3, {"n": 5}))
    assert lake.live() == {1: (3,)}


def test_partitions_of_every_kind_are_found_by_a_filter(partitioned: Lakes) -> None:
    lake = partitioned("d", "b", "big")
    ddl = "id BIGINT, d DATE, b BOOLEAN, big BIGINT, n INT"
    day = date(2020, 2, 29)
    lake.apply(insert(1, 1, d=day, b=True, big=2**40, n=1), insert(2, 2), ddl=ddl)
    lake.apply(Payload(2, 3, {"d": day, "b": False, "big": -1}), ddl=ddl)
    where = F.col("d") == F.lit(day)
    found = lake.head().where(where & F.col("b") & (F.col("big") == 2**40)).select("id", "n")
    assert [tuple(row) for row in found.collect()] == [(1, 1)]
    assert lake.head().where(where).count() == 2
    lake.apply(Payload(1, 4, {"d": day, "b": True, "big": 5}), ddl=ddl.replace("n INT", "n BIGINT"))
    assert lake.live("big") == {1: (5,), 2: (-1,)}
    lake.apply(
        Payload(1, 5, {"d": None, "b": True, "big": 5}), ddl=ddl.replace("n INT", "n BIGINT")
    )
    assert lake.live("d") == {1: (None,), 2: (day,)}


@pytest.mark.soak
def test_hudis_own_readers_find_each_key_once_also_when_files_were_compacted(
    hudi_lake: Lake,
) -> None:
    hudi_lake.partition = ("n",)
    services = SERVICES[table_type_of(hudi_lake)]
    hudi_lake.restart(given=services)
    hudi_lake.apply(insert(1, 1, n=1), insert(9, 1, n=1))
    hudi_lake.apply(Payload(1, 3, {"n": 2}))
    hudi_lake.apply(Payload(1, 2, {"n": 3}))
    hudi_lake.apply(Payload(1, 4, {"n": 1}))
    path = hudi_lake.sink.path(COLLECTION)
    raw = hudi_lake.spark.read.format("hudi").options(**READ_OPTIONS).load(path)
    rows = raw.select("_hoodie_record_key", "_hoodie_partition_path", "n").collect()
    assert sorted(map(tuple, rows)) == [("1", "n=1", 1), ("9", "n=1", 1)]


def test_a_column_that_makes_no_folders_is_refused(partitioned: Lakes) -> None:
    lake = partitioned("blob")
    with pytest.raises(ConfigError, match=r"'blob' of 'public.docs' is binary.*\.partition"):
        lake.apply(insert(1, 1, n=1, blob=b"b"))
    assert lake.sink.state(COLLECTION) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hoodie.datasource.write.hive_style_partitioning": "false"}, "two dots"),
        ({"hoodie.index.type": "GLOBAL_BLOOM"}, "an index within partitions"),
    ],
)
def test_settings_under_which_rows_could_get_lost_are_refused(
    hudi_lake: Lake, given: dict[str, str], said: str
) -> None:
    hudi_lake.partition = ("body",)
    hudi_lake.restart(given=given)
    with pytest.raises(ConfigError, match=said):
        hudi_lake.apply(insert(1, 1, n=1, body="b"))
    assert hudi_lake.sink.state(COLLECTION) is None


@pytest.mark.parametrize("name", ["_hoodie_is_deleted", further("_hoodie_record_key")])
def test_a_column_with_a_name_of_hudis_is_refused(hudi_lake: Lake, name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' of 'public.docs' has a name that Hudi keeps"):
        hudi_lake.apply(insert(1, 1), ddl=f"id BIGINT, {name} BOOLEAN")
    assert hudi_lake.sink.state(COLLECTION) is None


def test_how_folders_are_named_cannot_change_under_a_table(hudi_lake: Lake) -> None:
    hudi_lake.partition = ("n",)
    plain = {"hoodie.datasource.write.hive_style_partitioning": "false"}
    hudi_lake.restart(given=plain)
    before = hudi_lake.apply(insert(1, 1, n=1))
    assert folders(hudi_lake) == {"1"}
    hudi_lake.restart()
    with pytest.raises(ConfigError, match="'bucket SIMPLE 4, folders value'"):
        hudi_lake.apply(Payload(1, 2, {"n": 1}))
    assert hudi_lake.sink.state(COLLECTION) == before


@pytest.mark.soak
def test_what_is_corrected_after_a_first_batch_that_failed_is_asked_a_new_folder_for(
    hudi_lake: Lake,
) -> None:
    """Hudi has written the settings down by then, and says no more than that they conflict."""
    hudi_lake.partition = ("body",)
    with pytest.raises(DataError), spark_errors_of(COLLECTION):
        hudi_lake.apply(insert(1, 1, n=1, body=""))
    hudi_lake.batch, hudi_lake.partition = 0, ("n",)
    with pytest.raises(ConfigError, match="'public.docs' with other settings.*Delete all that is"):
        hudi_lake.apply(insert(1, 1, n=1, body=""))
