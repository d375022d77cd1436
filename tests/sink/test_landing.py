"""Large Delta tables: rows that change are hidden, and only new rows are written."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import functions as F

from lakeingest.engine.delta.files import DataFile, listed_files
from lakeingest.engine.delta.log import newest_snapshot
from lakeingest.sink.delta import landing, rewrite
from lakeingest.sink.delta.key_range import KeyRange
from lakeingest.sink.delta.landing import files_to_compact
from tests.forms import with_all
from tests.sink.lake import COLLECTION, Lake, Payload, delete, insert


def files(lake: Lake) -> dict[str, int]:
    """Return the number of hidden rows of each data file."""
    listed = listed_files(newest_snapshot(lake.spark, lake.sink.path(COLLECTION)))
    assert listed is not None
    return {file.name: file.hidden_rows for file in listed}


def features(lake: Lake) -> set[str]:
    detail = lake.spark.sql(f"DESCRIBE DETAIL delta.`{lake.sink.path(COLLECTION)}`").first()
    return set(detail["tableFeatures"]) if detail else set()


def numbered(lake: Lake, start: int, stop: int) -> None:
    lake.apply(*(insert(number, number, n=number) for number in range(start, stop)))


@pytest.mark.slow
def test_a_changed_row_is_hidden_and_its_file_is_not_written_again(large_lake: Lake) -> None:
    numbered(large_lake, 1, 9)
    before = files(large_lake)
    state = large_lake.apply(Payload(2, 20, {"n": 3}), delete(5, 21), insert(30, 22, n=30))
    after = files(large_lake)
    assert len(after) == len(before) + 1
    assert before.keys() < after.keys()
    assert sum(after.values()) == 2
    rows = large_lake.live()
    assert rows == {**{n: (n,) for n in (1, 3, 4, 6, 7, 8, 30)}, 2: (3,)}
    assert large_lake.live(version=state.version) == rows


@with_all
def test_another_engine_reads_what_is_not_hidden(
    large_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "SMALL_FILES", 10)
    numbered(large_lake, 1, 9)
    large_lake.apply(*(Payload(number, 20, {"n": 50}) for number in (1, 8)))
    state = large_lake.apply(Payload(3, 30, {"n": 60}), insert(9, 31, n=9))
    assert any(files(large_lake).values())
    rows = large_lake.live()
    assert rows == large_lake.live(version=state.version)
    assert len(rows) == 9


@with_all
@pytest.mark.parametrize("deletion_vectors", [True, False])
def test_a_table_gets_the_feature_when_it_has_grown_and_only_where_it_is_wanted(
    delta_lake: Lake, monkeypatch: pytest.MonkeyPatch, deletion_vectors: bool
) -> None:
    delta_lake.restart(deletion_vectors=deletion_vectors)
    numbered(delta_lake, 1, 10)
    delta_lake.apply(Payload(1, 20, {"n": 10}))
    monkeypatch.setattr(landing, "LARGE_ROWS", 9)
    delta_lake.apply(Payload(1, 21, {"n": 10}))
    assert "deletionVectors" not in features(delta_lake)
    monkeypatch.setattr(landing, "LARGE_ROWS", 8)
    delta_lake.apply(Payload(2, 30, {"n": 20}))
    delta_lake.apply(Payload(3, 40, {"n": 30}))
    assert ("deletionVectors" in features(delta_lake)) == deletion_vectors
    assert any(files(delta_lake).values()) == deletion_vectors
    assert delta_lake.live() == {1: (10,), 2: (20,), 3: (30,), **{n: (n,) for n in range(4, 10)}}


@with_all
def test_a_table_of_which_no_row_changes_never_gets_the_feature(
    delta_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "LARGE_ROWS", 0)
    monkeypatch.setattr(rewrite, "TINY_BYTES", 0)
    for start in (1, 10, 20):
        numbered(delta_lake, start, start + 3)
    assert "deletionVectors" not in features(delta_lake)


@with_all
def test_whoever_forbids_deletion_vectors_gets_none(
    delta_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landing, "LARGE_ROWS", 0)
    numbered(delta_lake, 1, 5)
    path, setting = delta_lake.sink.path(COLLECTION), "'delta.enableDeletionVectors' = 'false'"
    delta_lake.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({setting})")
    delta_lake.restart()
    for number in (1, 2):
        delta_lake.apply(Payload(number, 20 + number, {"n": 0}))
    assert "deletionVectors" not in features(delta_lake)
    assert delta_lake.live() == {1: (0,), 2: (0,), 3: (3,), 4: (4,)}


@pytest.mark.slow
def test_the_bounds_of_decimals_keep_every_digit(large_lake: Lake) -> None:
    ddl, value = "id BIGINT, d DECIMAL(38,18)", Decimal("1.234567890123456789")
    large_lake.apply(
        *(Payload(number, number, {"d": value}, first="c") for number in range(1, 9)), ddl=ddl
    )
    large_lake.apply(Payload(1, 5, {"d": Decimal(7)}), ddl=ddl)
    assert any(files(large_lake).values())
    # As any reader: our own reading of a version skips no file.
    table = large_lake.spark.read.format("delta").load(large_lake.sink.path(COLLECTION))
    rows = table.where(F.col("d") == F.lit(value)).select("id").collect()
    assert sorted(row["id"] for row in rows) == list(range(2, 9))


def data_file(name: str, size: int, rows: int = 100, hidden: int = 0) -> DataFile:
    rows_ = SimpleNamespace(isDefined=lambda: True, get=lambda: rows)
    statistics = f'{{"minValues":{{"id":{size}}},"maxValues":{{"id":{size + 9}}}}}'
    action = SimpleNamespace(
        numPhysicalRecords=lambda: rows_, numDeletedRecords=lambda: hidden, stats=lambda: statistics
    )
    return DataFile(name, size, action)


def test_small_files_are_compacted_when_they_are_many() -> None:
    small = [data_file(f"s{number}", 1000 + number) for number in range(landing.SMALL_FILES)]
    large = data_file("l", landing.SMALL_FILE + 1, hidden=20)
    assert files_to_compact([large, *small[1:]]) == ()
    assert files_to_compact([large, *small]) == tuple(small)


def test_a_file_larger_than_the_smaller_ones_together_stays() -> None:
    small = [data_file(f"s{number}", 1000) for number in range(landing.SMALL_FILES)]
    middle, base = data_file("m", 16_000), data_file("b", 40_000)
    assert files_to_compact([base, *small]) == tuple(small)
    assert files_to_compact([base, middle, *small]) == (*small, middle)


@given(st.integers(1, 200), st.integers(0, 10))
def test_however_long_a_table_is_written_its_files_stay_few_and_a_row_is_copied_seldom(
    batches: int, bases: int
) -> None:
    files = [data_file(f"b{number}", 2_000_000) for number in range(bases)]
    copied = 0
    for number in range(batches):
        compacted = files_to_compact(files)
        size = sum(file.size for file in compacted)
        copied += size
        files = [file for file in files if file not in compacted]
        files.append(data_file(f"n{number}", size + 40_000))
        small = [file for file in files if file.size <= landing.SMALL_FILE]
        assert len(small) <= landing.SMALL_FILES
    # To write all small rows again each time would be up to 13 times as many.
    assert copied <= 3 * (batches * 40_000 + bases * 2_000_000)


def test_the_file_with_most_hidden_rows_is_compacted_alone() -> None:
    size = landing.SMALL_FILE + 1
    three = [data_file(f"{hidden}", size, hidden=hidden) for hidden in (31, 60, 40)]
    assert files_to_compact(three) == (three[1],)
    assert files_to_compact([data_file("30", size, hidden=30)]) == ()
    assert files_to_compact([]) == ()


def test_files_whose_statistics_exclude_every_key_are_not_read() -> None:
    low, middle, high = (data_file(f"{first}", first) for first in (0, 10, 20))
    assert KeyRange({"id": (12, 15)}).files([low, middle, high]) == (middle,)
    assert KeyRange({"id": (9, 20)}).files([low, middle, high]) == (low, middle, high)
    assert KeyRange({"id": (30, 40)}).files([low, middle, high]) == ()
    assert KeyRange({"id": (12, 15), "other": (0, 0)}).files([low, middle]) == (middle,)
    assert KeyRange({}).files([low, high]) == (low, high)
