"""Somebody else's change of a table's rows is found; what changes no row passes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.commit_note import fence_token, token
from lakeingest.engine.commit import Commit
from lakeingest.errors import DataError
from lakeingest.sink.contract import TableState
from lakeingest.sink.delta.evolution import SchemaAlteration
from lakeingest.sink.foreign_changes import foreign_change, late_commit, since_known
from lakeingest.sink.progress import newest_note
from tests.apply.published import table
from tests.logs.written import WrittenLog, change
from tests.notes import commit_note


def ours(version: int, batch: int, *, writer: int = 2, fence: bool = False) -> Commit:
    own = fence_token(writer, 0) if fence else token(writer, batch)
    note = commit_note("a", writer=writer, batch=batch, token=own, fences=fence)
    return Commit(version=version, metadata=note.to_json())


def theirs(version: int, *, changes: bool = True, restored: int | None = None) -> Commit:
    return Commit(
        version=version,
        metadata=None,
        operation="RESTORE" if restored is not None else "UPDATE",
        restored=restored,
        changes_rows=lambda: changes,
    )


def newest_first(*commits: Commit) -> list[Commit]:
    return sorted(commits, key=lambda commit: -commit.version)


def test_a_change_of_rows_behind_the_known_version_is_found_under_commits_of_ours() -> None:
    commits = newest_first(ours(1, 1), theirs(2), ours(3, 2), ours(4, 2, fence=True))
    change = foreign_change(commits, 1)
    assert change is not None
    assert change.version == 2
    assert foreign_change(commits, 2) is None


def test_commits_of_others_that_change_no_row_pass() -> None:
    commits = newest_first(ours(1, 1), theirs(2, changes=False), theirs(3, changes=False))
    assert foreign_change(commits, 1) is None


def test_a_restore_to_the_known_version_repairs_and_one_to_before_it_is_a_change() -> None:
    log = (ours(1, 1), ours(2, 2), theirs(3), ours(4, 3))
    assert foreign_change(newest_first(*log, theirs(5, restored=2)), 2) is None
    behind = foreign_change(newest_first(*log, theirs(5, restored=1)), 2)
    assert behind is not None
    assert behind.version == 5
    # The foreign commit still stands under a restore to what was written after it.
    assert foreign_change(newest_first(*log, theirs(5, restored=4)), 2) == log[2]


def test_progress_that_a_restore_took_back_is_not_the_tables_but_its_token_counts() -> None:
    log = (ours(1, 1), ours(2, 2), theirs(3), ours(4, 3), theirs(5, restored=2))
    version, note = newest_note(newest_first(*log))
    assert note is not None
    assert (version, note.batch, note.token) == (5, 2, token(2, 3))


def test_a_commit_of_a_driver_that_was_replaced_is_late_behind_rows_of_a_later_one() -> None:
    late = ours(4, 9, writer=1)
    log = (ours(1, 8, writer=1), ours(2, 8, fence=True), ours(3, 9), late, ours(5, 1, writer=3))
    assert late_commit(since_known(newest_first(*log), 3)) == late
    # Behind its fence alone: the next fence copies the progress. And a batch that is tried again.
    assert late_commit(since_known(newest_first(*log[:2], late), 1)) is None
    assert late_commit(since_known(newest_first(*log[:3], ours(4, 8)), 2)) is None


def test_an_alter_table_that_comes_late_shows_neither_progress_nor_who_writes() -> None:
    before, batch = (commit_note("a", batch=number) for number in (1, 2))
    table: Any = None
    alteration = SchemaAlteration(table, batch, TableState(1, before))
    late = Commit(version=3, metadata=alteration._note.to_json())
    assert newest_note([late, ours(2, 5)]) == (3, commit_note("a", writer=2, batch=5))


@pytest.mark.soak
@pytest.mark.slow
def test_a_foreign_update_stops_the_run_until_it_is_restored_and_a_property_passes(
    spark: SparkSession, tmp_path: Path
) -> None:
    # SQL takes no relative path, but a pipeline does; the message must suit SQL.
    log, lake = WrittenLog(tmp_path / "log", "postgresql"), Path(os.path.relpath(tmp_path / "lake"))
    log.transaction("7:100", change("a", 100))
    log.ingest(spark, lake)
    name = f"delta.`{tmp_path / 'lake' / 'public.a'}`"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('team' = 'somebody')")
    DeltaTable(str(lake / "public.a")).update(updates={"v": "v + 1"})
    log.transaction("8:200", change("a", 200))
    with pytest.raises(DataError, match=r"'public.a': UPDATE.*RESTORE TABLE .*AS OF") as stopped:
        log.ingest(spark, lake)
    assert table(spark, lake, "public.a") == {1: 100}
    repair = str(stopped.value).split("take it back: ")[1].split(";")[0]
    spark.sql(repair)
    log.ingest(spark, lake)
    assert table(spark, lake, "public.a") == {1: 200}
