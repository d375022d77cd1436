from __future__ import annotations

import csv
import io
import json
import logging
import sys

import pytest

from lakeingest.cli.output import (
    LogToMessages,
    OutputFormat,
    csv_line,
    message,
    write_csv,
    write_facts,
    write_table,
)
from lakeingest.config.redaction import remember


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        (None, "\\N"),
        ("", '""'),
        ("\\N", '"\\N"'),
        ("plain", "plain"),
        ("a,b", '"a,b"'),
        ('say "hi"', '"say ""hi"""'),
        ("two\nlines", '"two\nlines"'),
        ("carriage\rreturn", '"carriage\rreturn"'),
        (" padded ", '" padded "'),
        ("x\\Ny", "x\\Ny"),
        ("größer", "größer"),
    ],
)
def test_a_csv_cell_tells_null_from_empty_and_from_its_own_sign(
    cell: str | None, written: str
) -> None:
    assert csv_line([cell]) == written


def test_what_is_written_as_csv_is_read_back_by_a_csv_reader(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [("1", 'q"uote, and\nline'), ("2", " "), ("3", "\\")]
    write_csv(("id", "te,xt"), rows)
    read = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert read == [["id", "te,xt"], *map(list, rows)]


def test_a_table_says_whether_there_were_more_rows(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("1", None), ("2", "b"), ("3", "c")]
    assert write_table(("id", "name"), rows, limit=2)
    assert capsys.readouterr().out == "id  name\n--  ----\n1   NULL\n2   b\n"
    assert not write_table(("id", "name"), rows, limit=3)


def test_a_stored_value_cannot_send_control_characters_to_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_table(("v",), [("\x1b[2Jgone\n",)])
    assert "\\x1b[2Jgone\\n" in capsys.readouterr().out


def test_a_table_cuts_long_values_and_csv_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    write_table(("v",), [("x" * 100,)])
    assert "x" * 39 + "…" in capsys.readouterr().out
    write_csv(("v",), [("x" * 100,)])
    assert "x" * 100 in capsys.readouterr().out


def test_on_a_terminal_a_value_is_not_taken_for_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write_table(("v",), [("[red]x[/red]",)])
    assert "[red]x[/red]" in capsys.readouterr().out


def test_facts_keep_their_shape_in_json_and_are_flat_in_csv(
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts = {"batches": 2, "rows": {"public.orders": 7}, "frontier": None, "ok": True}
    write_facts(facts, OutputFormat.JSON)
    assert json.loads(capsys.readouterr().out) == facts
    write_facts(facts, OutputFormat.CSV)
    assert capsys.readouterr().out.splitlines() == [
        "name,value",
        "batches,2",
        "rows.public.orders,7",
        "frontier,\\N",
        "ok,true",
    ]


def test_a_message_goes_to_stderr_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    remember("hunter2-message")
    message("refused: hunter2-message")
    LogToMessages().emit(logging.makeLogRecord({"levelname": "INFO", "msg": "hunter2-message"}))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "refused: **********\ninfo: **********\n"
