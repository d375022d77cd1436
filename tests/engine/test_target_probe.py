"""Whether a folder can be written is found out by writing there, and nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.engine.storage_errors import storage
from lakeingest.engine.target_probe import try_to_write
from lakeingest.errors import ConfigError

pytestmark = pytest.mark.slow


def test_a_folder_that_is_not_there_is_not_there_afterwards(
    spark: SparkSession, tmp_path: Path
) -> None:
    try_to_write(spark, str(tmp_path / "new" / "lake"))
    assert [*tmp_path.iterdir()] == []


def test_what_is_in_a_folder_stays(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lake" / "table").mkdir(parents=True)
    try_to_write(spark, f"file://{tmp_path}/lake")
    assert [path.name for path in (tmp_path / "lake").iterdir()] == ["table"]


def test_a_path_below_a_file_is_said_to_be_one(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    root = str(tmp_path / "file" / "lake")
    with pytest.raises(ConfigError, match="A part of the path .* is a file"), storage(root):
        try_to_write(spark, root)
