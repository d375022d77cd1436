"""Exit codes where the lake's storage refuses, or is away."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.cli.main import execute
from lakeingest.demo import demo_folder
from tests.engine.web_storage import closed_storage, refusing_storage

# Delta asks a log store that fails three times, a second apart.
pytestmark = [pytest.mark.slow, pytest.mark.soak]


def code_of(command: list[str], root: str) -> int:
    folder = demo_folder()
    settings = [f"lakeingest.source.path={folder}", f"lakeingest.target.path={root}/lake"]
    name, *rest = command
    properties = str(folder / "pipeline.properties")
    return execute([name, properties, *rest, *(f"--set={setting}" for setting in settings)])


@pytest.mark.parametrize("command", [["run"], ["status"], ["show", "public.orders"]])
def test_a_lake_that_refuses_access_is_77(
    spark: SparkSession, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with refusing_storage() as root:
        assert code_of(command, root) == 77
    said = capsys.readouterr()
    assert f"error: The storage of '{root}/lake' refused access" in said.err
    assert "what to do: check credentials and permissions" in said.err
    assert said.out == ""


@pytest.mark.parametrize("command", [["validate"], ["history"]])
def test_a_lake_that_is_away_is_69(
    spark: SparkSession, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    root = closed_storage()
    assert code_of(command, root) == 69
    said = capsys.readouterr().err
    assert f"error: The storage of '{root}/lake' cannot be reached" in said
    assert "what to do: check that it is up and reachable" in said


def test_a_lake_that_cannot_be_made_is_77(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Below a file: as in a folder without permission, which does not stop root."""
    (tmp_path / "file").write_text("x", "utf-8")
    assert code_of(["run"], str(tmp_path / "file")) == 77
    assert "file/lake' refused access" in capsys.readouterr().err
