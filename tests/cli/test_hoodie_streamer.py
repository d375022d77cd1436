from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from lakeingest.cli.main import execute
from lakeingest.config.streamer.options import OPTIONS
from tests.cli.library import Library
from tests.config.test_streamer import COMMAND
from tests.config.test_streamer_tables import COMMAND as OF_MANY
from tests.config.test_streamer_tables import folder

__all__ = ["folder"]


def streamer(more: str = "") -> int:
    return execute(["hoodie-streamer", *shlex.split(f"{COMMAND} {more}")])


def test_a_command_line_of_hudis_streamer_runs_its_pipeline(
    library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    assert streamer("--spark-master yarn --spark-app-name load --enable-sync --output json") == 0
    call = library.called("run_pipeline")
    assert call["config"].name == "orders"
    assert (call["continuous"], call["min_sync_interval_seconds"]) == (True, 60)
    session = {"app_name": "load", "kafka": True, "hudi": True, "brief": False, "master": "yarn"}
    assert library.called("session") == session
    captured = capsys.readouterr()
    assert captured.err.count("warning: without effect here: --enable-sync (") == 1
    assert captured.out.startswith("{")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("--source-orderingfield x", "--source-orderingfield; did you mean --source-ordering-f"),
        ("--frobnicate", "no such option: --frobnicate\n"),
        ("--op", "--op: expected one argument"),
        ("hunter2", "belongs to no option (of the old command pass only what followed the jar"),
        (
            "--conf spark.serializer=x",
            "--conf is an option of spark-submit: of the old command pass only what",
        ),
        (
            "--packages a:b:1 --master yarn --class x.HoodieStreamer x.jar",
            "--packages is an option of spark-s",
        ),
        ("--min-sync-interval-seconds soon", "not a whole number"),
        ("--hoodie-conf hunter2", "--hoodie-conf number 11 is not of the form"),
    ],
)
def test_wrong_usage_is_2_and_names_the_nearest_option(
    library: Library, capsys: pytest.CaptureFixture[str], more: str, said: str
) -> None:
    assert streamer(more) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert "hunter2" not in captured.err
    assert library.calls == []


def test_what_cannot_be_followed_is_78(library: Library) -> None:
    assert streamer("--op INSERT") == 78
    assert library.calls == []


@pytest.mark.parametrize("help_option", ["--help", "-h"])
def test_the_help_says_what_becomes_of_every_option(
    capsys: pytest.CaptureFixture[str], help_option: str
) -> None:
    assert execute(["hoodie-streamer", help_option]) == 0
    said = capsys.readouterr().out
    for option in OPTIONS:
        assert option.name in said
    assert "what has no effect here" in said


def test_the_command_of_many_tables_runs_one_pipeline(library: Library, folder: Path) -> None:
    command = f"hoodie-multi-table-streamer {OF_MANY.format(folder=folder)}"
    assert execute(shlex.split(f"{command} --continuous")) == 0
    call = library.called("run_pipeline")
    assert sorted(call["config"].tables) == ["public.carts", "public.orders"]
    assert call["continuous"] is True
    assert execute(shlex.split(f"{command} --target-base-path x")) == 2
