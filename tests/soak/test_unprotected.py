"""Without any one of the protections the checkers find something; with all of them, nothing."""

from __future__ import annotations

import sys
from collections.abc import Container, Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.run import run_pipeline
from lakeingest.sink.merge_law import MergeLaw
from tests.recordings.check import History, check_history, check_tables
from tests.recordings.rust import RustLake
from tests.soak import unprotected
from tests.soak.crafted import Crafted
from tests.soak.switches import SWITCHES, switched_off

ALL = (1, 2, 3)

NEEDED: Mapping[str, tuple[int, ...]] = {
    "deduplication": (1,),
    "completeness": (1,),
    "publish-last": (1,),
    "position-compare": (2, 3),
}
"""At which stages of the crafted arrival a run shows that a protection is missing."""


def ingested(
    spark: SparkSession, crafted: Crafted, stages: Container[int], without: str | None = None
) -> History:
    for stage, source in enumerate(crafted.stages(spark), 1):
        if stage in stages:
            with switched_off(without) if without else nullcontext():
                run_pipeline(spark, crafted.config, source=source)
    return check_history(crafted.run, RustLake(crafted.lake, crafted.run.namespace))


@pytest.mark.slow
@pytest.mark.soak
def test_with_all_protections_nothing_is_wrong(spark: SparkSession, tmp_path: Path) -> None:
    crafted = Crafted(tmp_path)
    history = ingested(spark, crafted, ALL)
    assert history.violations == ()
    assert history.place is not None
    assert history.place.last == history.of
    tables = check_tables(crafted.run, crafted.properties)
    assert [table for table in tables if table.differences] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "without",
    [
        pytest.param(name, marks=pytest.mark.soak if len(stages) > 1 else ())
        for name, stages in NEEDED.items()
    ],
)
def test_without_one_protection_the_checkers_find_something(
    spark: SparkSession, tmp_path: Path, without: str
) -> None:
    history = ingested(spark, Crafted(tmp_path), NEEDED[without], without)
    assert any("no commit has these totals" in line for line in history.violations)


def test_every_switch_but_the_fault_is_shown_to_matter() -> None:
    assert {*NEEDED, "lost-reply"} == set(SWITCHES)


def test_the_command_runs_with_the_switch_and_only_then(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def stand_in() -> None:
        seen.append((sys.argv, merge_is_real()))

    monkeypatch.setattr(sys, "argv", ["unprotected"])
    monkeypatch.setattr(unprotected, "lakeingest", stand_in)
    assert merge_is_real()
    unprotected.main(["position-compare", "run", "p.properties", "--continuous"])
    assert seen == [(["lakeingest", "run", "p.properties", "--continuous"], False)]
    assert merge_is_real()


def merge_is_real() -> bool:
    return callable(getattr(vars(MergeLaw)["newer"], "func", None))


@pytest.mark.parametrize("arguments", [[], ["run"], ["nothing", "run", "p.properties"]])
def test_the_command_names_the_protections_when_it_is_given_none(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert unprotected.main(arguments) == unprotected.USAGE_EXIT_CODE
    assert "deduplication,completeness,publish-last" in capsys.readouterr().err
