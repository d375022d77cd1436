"""What only the Delta sink does."""

from __future__ import annotations

import pytest
from delta.tables import DeltaTable

from lakeingest.errors import ConfigError
from tests.sink.lake import COLLECTION, Lake, Payload, at, delete, insert


def operations(lake: Lake) -> list[str]:
    table = DeltaTable.forPath(lake.spark, lake.sink.path(COLLECTION))
    rows = table.history().orderBy("version").select("operation").collect()
    return [row["operation"] for row in rows]


def test_inserts_of_new_keys_are_appended_without_a_merge(delta_lake: Lake) -> None:
    delta_lake.apply(insert(1, 1, n=1))
    delta_lake.apply(insert(2, 2, n=2))
    assert operations(delta_lake)[1:] == ["WRITE"]
    delta_lake.apply(insert(3, 3, n=3), Payload(2, 4, {"n": 4}))
    assert operations(delta_lake)[1:] == ["WRITE", "MERGE"]
    assert delta_lake.live() == {1: (1,), 2: (4,), 3: (3,)}


@pytest.mark.parametrize("dead", [False, True], ids=["live", "deleted"])
def test_an_insert_of_a_key_that_exists_is_merged(delta_lake: Lake, dead: bool) -> None:
    delta_lake.apply(insert(1, 1, n=1), insert(2, 2, n=2))
    if dead:
        delta_lake.apply(delete(1, 3))
    delta_lake.apply(insert(1, 4, n=4), insert(3, 5, n=5))
    assert operations(delta_lake)[-1] == "MERGE"
    assert delta_lake.live() == {1: (4,), 2: (2,), 3: (5,)}


def test_inserts_that_came_before_are_not_appended_again(delta_lake: Lake) -> None:
    delta_lake.apply(insert(1, 1, n=1))
    delta_lake.apply(insert(1, 1, n=1), insert(2, 2, n=2))
    assert delta_lake.live() == {1: (1,), 2: (2,)}


def test_inserts_in_a_batch_with_a_truncate_are_not_appended(delta_lake: Lake) -> None:
    delta_lake.apply(insert(1, 1, n=1))
    delta_lake.apply(insert(2, 3, n=2), floor=at(2))
    assert delta_lake.live() == {2: (2,)}


def test_a_delta_table_of_somebody_else_is_a_configuration_error(delta_lake: Lake) -> None:
    path = delta_lake.sink.path(COLLECTION)
    delta_lake.spark.range(3).write.format("delta").save(path)
    with pytest.raises(ConfigError, match="belongs to no lakeingest pipeline"):
        delta_lake.restart()
    assert delta_lake.spark.read.format("delta").load(path).count() == 3


def test_a_users_optimize_in_between_is_harmless(delta_lake: Lake) -> None:
    delta_lake.apply(insert(1, 1, n=1))
    delta_lake.apply(insert(2, 2, n=2))
    last = delta_lake.state
    assert last is not None
    table = DeltaTable.forPath(delta_lake.spark, delta_lake.sink.path(COLLECTION))
    table.optimize().executeCompaction()
    delta_lake.restart()
    assert delta_lake.state is not None
    assert delta_lake.state.version == last.version + 1
    assert delta_lake.state.note == last.note
    delta_lake.apply(Payload(1, 3, {"n": 3}))
    assert delta_lake.live() == {1: (3,), 2: (2,)}
