"""Two drivers do not commit the same version of a table on a local disk."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.engine.delta_transaction import DeltaTransaction
from lakeingest.engine.local_disk import committing

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


def test_a_transaction_commits_only_with_the_lock(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    spark.range(1).write.format("delta").save(path)
    transaction = DeltaTransaction(spark, path, "test")
    with ThreadPoolExecutor() as pool:
        with committing(spark, path):
            commit = pool.submit(transaction.commit, 1, "")
            with pytest.raises(TimeoutError):
                commit.result(timeout=1.0)
        assert commit.result(timeout=60.0) == 1
