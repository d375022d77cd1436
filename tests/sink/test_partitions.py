"""Partitioned tables: a key is in one partition, whatever its changes say of it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know

from lakeingest.apply.spark_errors import spark_errors_of
from lakeingest.errors import ConfigError, DataError
from tests.forms import HARD, further, sinks_and_deletes
from tests.sink.conftest import Lakes
from tests.sink.lake import COLLECTION, NAMES, Lake, Payload, at, delete, insert, successor, update
from tests.sink.test_hudi import SERVICES, table_type_of

# Real commits, some seconds each.
pytestmark = pytest.mark.slow


def folders(lake: Lake) -> set[str]:
    """Return the names of the table's folders."""
    paths = Path(lake.sink.path(COLLECTION)).iterdir()
    return {path.name for path in paths if path.is_dir() and not path.name.startswith((".", "_d"))}


@HARD
def test_a_row_that_moves_is_found_where_it_is_and_nowhere_else_also_when_its_batch_comes_again(
    partitioned: Lakes, hard: bool
) -> None:
    lake = partitioned("n", hard=hard)
    rows = (insert(2, 2, n=1), insert(3, 3, n=1), insert(4, 4, n=2))
    lake.apply(insert(1, 1, n=1, body="a"), *rows, insert(6, 1, n=1), insert(7, 1, n=1))
    assert folders(lake) == {"n=1", "n=2"}
    moves = (Payload(1, 5, {"n": 2, "body": "b"}), Payload(3, 5, {"n": 2}), Payload(6, 5, {"n": 2}))
    # A delete knows its key alone.
    lake.apply(*moves, delete(4, 7), delete(7, 7), insert(5, 5, n=2))
    expected = {1: (2, "b"), 2: (1, None), 3: (2, None), 5: (2, None), 6: (2, None)}
    assert lake.live("n", "body") == expected
    lake.restart()
    late = (Payload(1, 4, {"n": 1, "body": "late"}), Payload(7, 6, {"n": 2}))
    back, away = Payload(6, 8, {"n": 1}), Payload(2, 8, {"n": None})
    batch = (*late, back, away, delete(3, 6), insert(4, 8, n=7))
    unpublished = lake.apply(*batch)
    everything = lake.everything(unpublished.version)
    table = [json.loads(row) for row in everything]
    live = [(row["id"], row.get("n"), row.get("body")) for row in table if not row[NAMES.deleted]]
    others = [(2, None, None), (4, 7, None), (5, 2, None), (6, 1, None)]
    assert sorted(live) == [(1, 2, "b"), *others]
    # A row that is gone is marked, or taken away, where it was.
    gone = sorted((row["id"], row["n"]) for row in table if row[NAMES.deleted])
    assert gone == ([] if hard else [(3, 2), (7, 1)])
    lake.restart()
    assert lake.state == unpublished
    note = successor(lake.note(lake.batch), 2, "run 2")
    again = lake.sink.apply(lake.changeset(*batch), note, unpublished)
    assert lake.everything(again.version) == everything


TEXTS = ["..", "a/b x=y %2F ä", None]


@sinks_and_deletes(
    "each_partitioned", ("delta", "hudi-cow", "hudi-mor"), "delta-hard", "hudi-mor-soft"
)
def test_a_partition_that_an_update_or_a_delete_leaves_out_is_the_rows_whatever_its_text(
    each_partitioned: Lakes, hard: bool
) -> None:
    lake = each_partitioned("body", hard=hard)
    rest = {"blob": b"b", "tags": ["t"]}
    rows = dict(enumerate(TEXTS))
    # What an older change supplies later moves the row, which has its position already.
    newer = {"n": 10, "body": "a/b", **rest}
    moved = Payload(9, 109, newer, dict.fromkeys(("body", *rest), at(1)), "c")
    beside = (insert(id_, 20, n=id_, body="a/b", **rest) for id_ in (7, 8))
    inserts = (insert(n, n + 1, n=n, body=text, **rest) for n, text in rows.items())
    lake.apply(moved, *beside, *inserts)
    root = Path(lake.sink.path(COLLECTION))
    assert not [path for path in root.parent.rglob("*.parquet") if root not in path.parents]
    late = Payload(8, 10, {"n": 0, "body": "late", **rest})
    updates = (update(n, n + 101, n=n + 10) for n in rows)
    lake.apply(update(9, 50, n=0, body="supplied"), *updates, delete(7, 110), late)
    assert lake.live("n", "body", *rest) == {
        **{n: (n + 10, text, b"b", ["t"]) for n, text in rows.items()},
        8: (8, "a/b", b"b", ["t"]),
        9: (10, "supplied", b"b", ["t"]),
    }


@pytest.mark.parametrize("text", ["", further("__HIVE_DEFAULT_PARTITION__")])
def test_a_text_that_no_folder_keeps_stops_the_batch(partitioned: Lakes, text: str) -> None:
    lake = partitioned("body")
    with pytest.raises(DataError, match="would be read as NULL"), spark_errors_of(COLLECTION):
        lake.apply(insert(1, 1, body="b"), insert(2, 2, body=text))
    assert lake.sink.state(COLLECTION) is None


def test_a_partition_of_key_columns_needs_no_look_at_the_table(
    partitioned: Lakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("lakeingest.sink.hudi.sink.merged_rows")
    lake = partitioned("id")
    lake.apply(insert(1, 1, n=1), insert(2, 2, n=2), insert(3, 5, n=5), delete(4, 5))
    lake.apply(
        *(Payload(1, 3, {"n": 3}), delete(2, 4), Payload(3, 4, {"n": 4}), Payload(4, 3, {"n": 3}))
    )
    assert lake.live() == {1: (3,), 3: (5,)}


@HARD
def test_partitions_of_every_kind_are_found_by_a_filter_and_all_reached_by_a_truncate(
    partitioned: Lakes, hard: bool
) -> None:
    lake = partitioned("d", "b", "big", hard=hard)
    ddl = "id BIGINT, d DATE, b BOOLEAN, big BIGINT, n INT"
    day = date(2020, 2, 29)
    yes, no = {"d": day, "b": True}, {"d": day, "b": False}
    first = (insert(1, 1, **yes, big=2**40, n=1), insert(2, 2, **no, big=-1), insert(5, 3))
    lake.apply(*first, insert(3, 9, **yes, big=3), insert(4, 9, **yes, big=3), ddl=ddl)
    where = F.col("d") == F.lit(day)
    rows = lake.head().where(where & F.col("b") & (F.col("big") == 2**40)).select("id", "n")
    assert [tuple(row) for row in rows.collect()] == [(1, 1)]
    assert lake.head().where(where).count() == 4
    others = {3: (day, 3), 4: (day, 3)}
    assert lake.live("d", "big") == {1: (day, 2**40), 2: (day, -1), 5: (None, None), **others}
    wide = ddl.replace("n INT", "n BIGINT")
    lake.apply(insert(2, 6, **yes, big=1), Payload(3, 10, {**yes, "big": 1}), floor=at(5), ddl=wide)
    assert lake.live("d", "big") == {2: (day, 1), 3: (day, 1), 4: (day, 3)}


def test_a_partitioned_delta_table_is_widened_also_if_the_session_overwrites_single_partitions(
    delta_lake: Lake,
) -> None:
    delta_lake.partition = ("id",)
    delta_lake.apply(insert(1, 1, n=1), ddl="id BIGINT, n INT")
    mode = "spark.sql.sources.partitionOverwriteMode"
    delta_lake.spark.conf.set(mode, "dynamic")
    try:
        delta_lake.apply(insert(2, 2, n=2**40), ddl="id BIGINT, n BIGINT")
    finally:
        delta_lake.spark.conf.unset(mode)
    assert delta_lake.live() == {1: (1,), 2: (2**40,)}


@pytest.mark.soak
def test_hudis_own_readers_find_each_key_once_also_when_files_were_compacted(
    hudi_lake: Lake,
) -> None:
    hudi_lake.partition = ("n",)
    hudi_lake.restart(given=SERVICES[table_type_of(hudi_lake)])
    hudi_lake.apply(insert(1, 1, n=1), insert(9, 1, n=1))
    hudi_lake.apply(Payload(1, 3, {"n": 2}))
    hudi_lake.apply(Payload(1, 2, {"n": 3}))
    hudi_lake.apply(Payload(1, 4, {"n": 1}))
    rows = hudi_lake.raw().select("_hoodie_record_key", "_hoodie_partition_path", "n").collect()
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
def test_a_column_name_that_hudi_keeps_or_cannot_have_is_refused(
    hudi_lake: Lake, name: str
) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' of 'public.docs' has a name that Hudi keeps"):
        hudi_lake.apply(insert(1, 1), ddl=f"id BIGINT, {name} BOOLEAN")
    with pytest.raises(ConfigError, match="'odd.name' of 'public.docs' cannot be in a Hudi table"):
        hudi_lake.apply(insert(1, 1), ddl="id BIGINT, `odd.name` STRING")
    assert hudi_lake.sink.state(COLLECTION) is None


@pytest.mark.soak
def test_how_folders_are_named_cannot_change_under_a_table(hudi_lake: Lake) -> None:
    hudi_lake.partition = ("n",)
    hudi_lake.restart(given={"hoodie.datasource.write.hive_style_partitioning": "false"})
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
