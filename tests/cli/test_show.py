"""Rows and publications of a real lake on stdout."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakeingest
from lakeingest.cli.main import execute
from lakeingest.commit_note import token
from lakeingest.config import load_config
from lakeingest.folders import LEDGER_FOLDER
from lakeingest.ledger.delta import DeltaLedger
from tests.reader.small_lake import FIRST, LINES, NOTES, SECOND, THIRD, SmallLake

Show = Callable[..., list[str]]

LATER = "public.later"


@pytest.fixture
def arguments(configuration: str, small_lake: SmallLake) -> list[str]:
    """A configuration whose lake is there."""
    return [configuration, "--set", f"lakeingest.target.path={small_lake.path}"]


@pytest.fixture
def shown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Show:
    """Runs a command that succeeds, and returns the lines of its stdout."""

    def run(command: str, *more: str) -> list[str]:
        assert execute([command, *arguments, *more]) == 0
        return capsys.readouterr().out.splitlines()

    return run


def test_rows_are_ordered_by_the_whole_key(shown: Show) -> None:
    lines = shown("show", LINES, "--output", "csv", "--as-of", "1")
    assert lines == ["order.id,line,sku", '9,1,""', "9,2,\\N", "10,1,c"]
    assert shown("show", LINES, "-o", "csv") == ["order.id,line,sku", '9,1,""', "10,1,d"]


def test_metadata_columns_are_shown_when_asked_for(shown: Show) -> None:
    lines = shown("show", LINES, "--metadata", "--output", "csv", "--limit", "2")
    assert lines[0] == "order.id,line,sku,_position,_deleted,_column_positions"
    assert [line.split(",")[:2] for line in lines[1:]] == [["9", "1"], ["9", "2"]]
    assert lines[2].split(",")[4] == "true"


def test_a_table_without_a_key_can_be_shown(shown: Show) -> None:
    assert shown("show", NOTES, "-o", "csv") == ["note", "n"]


@pytest.mark.parametrize("as_of", ["2", "tx:754"])
def test_as_of_takes_a_batch_or_a_transaction(shown: Show, as_of: str) -> None:
    lines = shown("show", LINES, "-o", "csv", "--as-of", as_of)
    assert (len(lines), lines[-1]) == (4, "10,1,d")


@pytest.mark.parametrize(
    ("as_of", "message"),
    [
        ("tx:1", "No publication holds a source transaction '1'; lake.transactions()"),
        ("753000", "There is no publication 753000; lake.history() (`lakeingest history`)"),
        ("1999-01-01", "Nothing was published up to 1999-01-01"),
    ],
)
def test_a_moment_that_is_not_there_is_a_usage_error_that_says_where_they_are_listed(
    arguments: list[str], as_of: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["show", *arguments, LINES, "--as-of", as_of]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "hint"), [("public.line", f"did you mean {LINES}?"), ("x", f"there are: {LINES}")]
)
def test_an_unknown_table_is_a_usage_error_with_a_hint(
    arguments: list[str], table: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["show", *arguments, table]) == 2
    captured = capsys.readouterr()
    assert hint in captured.err
    assert captured.out == ""


@pytest.mark.soak
def test_a_table_that_was_retired_or_came_later_is_a_usage_error_that_says_where_it_can_be_read(
    spark: SparkSession,
    small_lake: SmallLake,
    configuration: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lake = str(shutil.copytree(small_lake.path, tmp_path / "lake"))
    config = load_config({**small_lake.settings, "lakeingest.target.path": lake})
    lakeingest.retire(spark, config, NOTES)
    command = ["show", configuration, NOTES, "--set", f"lakeingest.target.path={lake}"]
    assert execute(command) == 2
    said = capsys.readouterr().err
    assert re.search(r"public.notes was retired in batch 4, published at 20\d\d-\d\d-\d\d", said)
    assert "the last one with --as-of 3" in said
    assert "did you mean" not in said
    assert execute([*command, "--as-of", "3"]) == 0

    # As if the same table were published for the first time under another name.
    shutil.copytree(f"{lake}/{NOTES}", f"{lake}/{LATER}")
    ledger = DeltaLedger(spark, f"{lake}/{LEDGER_FOLDER}", config.name, "later")
    head = ledger.claim(ledger.head())
    tables = {**head.tables, LATER: head.retired[NOTES].version}
    ledger.publish_alone(
        replace(head, batch=5, run="later", token=token(head.writer, 5), tables=tables)
    )
    command[2] = LATER
    assert execute([*command, "--as-of", "1"]) == 2
    said = capsys.readouterr().err
    assert f"table {LATER} was not published yet in batch 1, but first in batch 5" in said
    assert execute([*command, "--as-of", "5"]) == 0


def test_history_is_oldest_first_and_a_limit_keeps_the_latest(shown: Show) -> None:
    def batches(lines: list[str]) -> list[str]:
        return [line.partition(",")[0] for line in lines]

    assert batches(shown("history", "--output", "csv")) == ["batch", "1", "2", "3"]
    assert batches(shown("history", "--output", "csv", "--limit", "2")) == ["batch", "2", "3"]


def test_history_lists_the_source_transactions_with_their_batch(shown: Show) -> None:
    header, *lines = shown("history", "--transactions", "--output", "csv")
    assert header.startswith("batch,transaction_id,committed_at,events")
    assert [line.split(",")[:2] for line in lines] == [["1", FIRST], ["2", SECOND], ["3", THIRD]]
    assert shown("history", "--transactions", "-o", "csv", "--limit", "1")[1:] == lines[2:]


def test_a_lake_that_is_not_there_is_a_matter_of_configuration(
    configuration: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = f"lakeingest.target.path={tmp_path}"
    assert execute(["show", configuration, LINES, "--set", nowhere]) == 78
    assert "There is no lake at" in capsys.readouterr().err


def test_a_reader_that_closes_the_pipe_ends_the_command_quietly() -> None:
    program = (
        "import sys\n"
        "from lakeingest.cli import main\n"
        "from lakeingest.cli.output import write_lines\n"
        "def endless() -> None:\n"
        "    write_lines('line' for _ in iter(int, 1))\n"
        "main.app.command()(endless)\n"
        "sys.exit(main.execute(['endless']))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(30) == 1
    assert said == b""
