from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from lakeingest.cli.main import execute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class Lake:
    """A published lake of two tables, one of them without a key, that notes what it was asked."""

    spark: SparkSession
    asked_as_of: object = None

    def snapshot(self, as_of: object = None) -> Lake:
        self.asked_as_of = as_of
        return self

    def tables(self) -> list[str]:
        return ["public.lines", "public.notes"]

    def key(self, name: str) -> tuple[str, ...]:
        return ("order.id", "line") if name == "public.lines" else ()

    def table(self, name: str, metadata: bool = False) -> DataFrame:
        if name == "public.notes":
            return self.spark.sql("SELECT 'n' AS note")
        values = "(10, 1, 'c'), (9, 2, NULL), (9, 1, '')"
        rows = self.spark.sql(f"SELECT * FROM VALUES {values} AS t(`order.id`, line, sku)")
        return rows.selectExpr("*", "'p' AS _position") if metadata else rows

    def history(self) -> DataFrame:
        return self.spark.sql("SELECT 199 - id AS batch FROM range(200)")


@pytest.fixture
def lake(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """The lake that every ``open_lake`` opens."""
    lake = Lake(spark)
    reader = ModuleType("lakeingest.reader")
    reader.open_lake = lambda _spark, path, _prefix="": lake if path == "lake" else None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "lakeingest.reader", reader)
    return lake


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert execute(list(arguments)) == 0
    return capsys.readouterr().out.splitlines()


def test_rows_are_ordered_by_the_whole_key(
    configuration: str, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(capsys, "show", configuration, "public.lines", "--output", "csv")
    assert lines == ["order.id,line,sku", '9,1,""', "9,2,\\N", "10,1,c"]
    assert lake.asked_as_of is None


def test_metadata_columns_are_shown_when_asked_for(
    configuration: str, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["show", configuration, "public.lines", "--metadata", "--as-of", "7"]
    lines = shown(capsys, *arguments, "--output", "json", "--limit", "1")
    assert lines == ['{"order.id":9,"line":1,"sku":"","_position":"p"}']
    assert lake.asked_as_of == 7


def test_a_table_without_a_key_can_be_shown(
    configuration: str, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(capsys, "show", configuration, "public.notes", "-o", "csv") == ["note", "n"]
    assert lake.tables()


@pytest.mark.parametrize(
    ("table", "hint"), [("public.line", "did you mean public.lines?"), ("x", "there are: public.")]
)
def test_an_unknown_table_is_a_usage_error_with_a_hint(
    table: str, hint: str, configuration: str, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["show", configuration, table]) == 2
    assert hint in capsys.readouterr().err
    assert lake.tables()


def test_history_is_oldest_first_and_a_limit_keeps_the_latest(
    configuration: str, lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lake.history().count() == 200
    lines = shown(capsys, "history", configuration, "--output", "csv")
    assert lines == ["batch", *(str(batch) for batch in range(200))]
    lines = shown(capsys, "history", configuration, "--limit", "2")
    assert lines == ["batch", "-----", "198", "199"]


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
