"""Two drivers do not commit the same version of a table on a local disk."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.delta import local_disk
from lakeingest.engine.delta.local_disk import committing
from lakeingest.engine.delta.maintenance import DeltaMaintenance
from lakeingest.engine.delta.transaction import DeltaTransaction
from lakeingest.sink.delta.commit import DeltaLakeTable
from tests.notes import commit_note

_TRIES_TO_LOCK = """
import fcntl, os, sys
try:
    fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    print("locked")
"""


def other_process_sees(folder: Path) -> str:
    command = [sys.executable, "-c", _TRIES_TO_LOCK, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_another_process_waits_while_a_table_is_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "a table"
    with committing(spark, str(table)):
        assert other_process_sees(table) == "locked"
    assert other_process_sees(table) == ""


def test_a_lock_ends_with_a_commit_that_fails(spark: SparkSession, tmp_path: Path) -> None:
    def fail() -> None:
        with committing(spark, tmp_path.as_uri()):
            msg = "no"
            raise ValueError(msg)

    with pytest.raises(ValueError, match="no"):
        fail()
    assert other_process_sees(tmp_path) == ""


def test_a_folder_that_cannot_be_made_is_left_to_delta(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with committing(spark, str(tmp_path / "file" / "table")):
        pass


def test_a_commit_does_not_wait_for_ever_for_one_that_is_frozen(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakeingest.engine.delta.local_disk.PATIENCE_SECONDS", 0.1)
    with committing(spark, str(tmp_path)), committing(spark, str(tmp_path)):
        assert other_process_sees(tmp_path) == "locked"


def transaction(spark: SparkSession, path: str) -> None:
    DeltaTransaction(spark, path, "test").commit(1, "")


def table_write(spark: SparkSession, path: str) -> None:
    DeltaLakeTable(spark, path, direct=False).append(spark.range(1), commit_note("t"))


def deletion(spark: SparkSession, path: str) -> None:
    DeltaMaintenance(spark, path, "test").delete(F.col("id") == 0)


@pytest.mark.parametrize("commit", [transaction, table_write, deletion])
def test_every_commit_takes_the_lock(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commit: Callable[[SparkSession, str], None],
) -> None:
    path = str(tmp_path / "table")
    spark.range(1).write.format("delta").save(path)
    lock, is_at_the_lock = local_disk._lock, Event()

    def locking(descriptor: int) -> None:
        is_at_the_lock.set()
        lock(descriptor)

    def commits() -> int:
        return len([*Path(path, "_delta_log").glob("*.json")])

    with ThreadPoolExecutor() as pool:
        with committing(spark, path):
            monkeypatch.setattr(local_disk, "_lock", locking)
            done = pool.submit(commit, spark, path)
            # Also where it takes no lock: then it is done.
            done.add_done_callback(lambda _: is_at_the_lock.set())
            assert is_at_the_lock.wait(60.0)
            with pytest.raises(TimeoutError):
                done.result(timeout=0.3)
            assert commits() == 1
        done.result(timeout=60.0)
    assert commits() == 2
