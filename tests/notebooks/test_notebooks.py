"""The notebooks run from top to bottom, with their own assertions.

A kernel and a client for it are in the extra ``notebook``, which only ``--all`` needs.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_of_every_notebook_runs_from_top_to_bottom(
    spark: SparkSession, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process and its session, as in a notebook of a platform."""
    monkeypatch.chdir(tmp_path)
    code = ["".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code"]
    assert code
    names: dict[str, object] = {}
    for cell in code:
        exec(compile(cell, path.name, "exec"), names)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_runs_in_a_kernel_of_its_own(path: Path, tmp_path: Path) -> None:
    notebook = import_module("nbformat").read(path, as_version=4)
    client = import_module("nbclient").NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    ran = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert ran
    assert all(cell.execution_count for cell in ran)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_output(path: Path) -> None:
    assert not any(cell.get("outputs") for cell in cells(path))


def cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook, which is JSON."""
    read: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["cells"]
    assert read
    return read
