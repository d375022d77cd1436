"""A table that seldom changes: Delta cleans its log while publications still name what goes."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from time import time

import pytest

from lakeingest.engine.delta.log import properties
from tests.delta_log import forget_log
from tests.sink.lake import COLLECTION, Lake, insert

pytestmark = pytest.mark.slow

LOG_KEPT = "delta.logRetentionDuration"


def age(lake: Lake, by: timedelta) -> None:
    """Let the files of the log have been written earlier."""
    path, at = lake.sink.path(COLLECTION), time() - by.total_seconds()
    for file in (Path(path) / "_delta_log").iterdir():
        os.utime(file, (at, at))
    forget_log(lake.spark, path)
    lake.restart()


def alter(lake: Lake, **values: str) -> None:
    path = lake.sink.path(COLLECTION)
    settings = ", ".join(f"'delta.{name}' = '{value}'" for name, value in values.items())
    lake.spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ({settings})")
    lake.restart()


@pytest.mark.parametrize("fenced", [False, True])
def test_a_version_that_was_the_newest_for_long_can_be_read_after_the_next_one(
    delta_lake: Lake, *, fenced: bool
) -> None:
    delta_lake.apply(insert(1, 1, n=1))
    # Delta cleans the log behind each checkpoint.
    alter(delta_lake, checkpointInterval="1")
    age(delta_lake, timedelta(days=40))
    assert delta_lake.state is not None
    before = delta_lake.state.version
    if fenced:
        for writer in (2, 3):
            delta_lake.state = delta_lake.sink.fence(delta_lake.state, writer, f"run {writer}")
        assert delta_lake.live(version=before) == {1: (1,)}
        return
    delta_lake.apply(insert(2, 2, n=2))
    delta_lake.apply(insert(3, 3, n=3))
    assert delta_lake.live(version=before) == {1: (1,)}
    assert delta_lake.live() == {1: (1,), 2: (2,), 3: (3,)}


@pytest.mark.soak
def test_whoever_has_shortened_log_retention_has_decided(delta_lake: Lake) -> None:
    delta_lake.apply(insert(1, 1, n=1))
    alter(delta_lake, logRetentionDuration="interval 20 days")
    age(delta_lake, timedelta(days=19))
    delta_lake.apply(insert(2, 2, n=2))
    path = delta_lake.sink.path(COLLECTION)
    assert properties(delta_lake.spark, path)[LOG_KEPT] == "interval 20 days"
