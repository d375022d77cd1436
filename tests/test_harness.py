"""The harness is tested again when it changes, and only then; who runs generated code."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.harness import PARTS, TESTS, digest, is_harness_test


def test_a_test_belongs_to_the_harness_by_its_file() -> None:
    assert is_harness_test("tests/rig/test_chain.py::test_x[1]")
    assert is_harness_test("tests/live/test_relay.py::test_x")
    assert not is_harness_test("tests/live/test_end_to_end.py::test_x")
    assert not is_harness_test("tests/rigging/test_chain.py::test_x")


def test_a_file_of_the_harness_that_changes_or_joins_changes_the_digest(tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    for part in PARTS:
        source, copy = TESTS / part, tests / part
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    same = digest(tests)
    assert same == digest()
    (tests / "soak" / "notes.py").write_text("x = 1\n", "utf-8")
    assert digest(tests) == same
    (tests / "rig" / "joined.py").write_text("x = 1\n", "utf-8")
    joined = digest(tests)
    assert joined != same
    (tests / "rig" / "joined.py").write_text("x = 2\n", "utf-8")
    assert digest(tests) != joined


def stages_of_generated_code(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> int:
    spark.range(3).selectExpr("id + 1").explain()
    return capsys.readouterr().out.count("*(")


@pytest.mark.generated
def test_a_test_that_is_marked_runs_generated_code(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stages_of_generated_code(spark, capsys) > 0


def test_other_tests_run_interpreted_plans(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stages_of_generated_code(spark, capsys) == 0
