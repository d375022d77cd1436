from __future__ import annotations

import json
import re
import sys

import pytest

from lakeingest.cli.main import execute
from lakeingest.cli.show import parse_as_of
from lakeingest.config import PipelineConfig
from lakeingest.config.reference import reference
from tests.cli.library import Findings, Library, Maintenance, Retirement, Summary


def test_run_hands_its_options_to_the_library(configuration: str, library: Library) -> None:
    arguments = ["run", configuration, "--continuous", "--min-sync-interval-seconds", "2.5"]
    overrides = ["--max-batches", "3", "--set", "lakeingest.deletes=hard"]
    assert execute([*arguments, *overrides]) == 0
    call = library.called("run_pipeline")
    assert call["spark"] == "spark"
    assert isinstance(call["config"], PipelineConfig)
    assert call["config"].deletes == "hard"
    assert (call["continuous"], call["min_sync_interval_seconds"]) == (True, 2.5)
    assert call["max_batches"] == 3
    session = {"app_name": "lakeingest run shop", "kafka": False, "hudi": False, "brief": False}
    assert library.called("session") == session


@pytest.mark.parametrize("command", ["status", "history"])
def test_a_command_that_only_looks_gets_a_brief_session(
    configuration: str, library: Library, command: str
) -> None:
    execute([command, configuration])
    assert library.called("session")["brief"] is True


def test_explain_says_the_reasons_and_shows_the_facts(
    configuration: str, library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["explain", configuration, "--output", "csv"]) == 0
    shown = capsys.readouterr()
    assert "A run would stop with exit code 65: it lacks rows" in shown.err
    assert shown.out.splitlines() == ["name,value", "state,stopped", "batch,3", "stops_with,65"]
    assert execute(["explain", configuration, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "state": "stopped",
        "batch": 3,
        "stops_with": 65,
        "reasons": ["A run would stop with exit code 65: it lacks rows"],
    }


def test_a_pipeline_with_a_hudi_table_gets_a_session_with_hudi(
    configuration: str, library: Library
) -> None:
    setting = "lakeingest.table.public.orders.format=hudi"
    assert execute(["run", configuration, "--set", setting]) == 0
    assert library.called("session")["hudi"] is True


def test_a_kafka_pipeline_gets_a_session_with_kafka(configuration: str, library: Library) -> None:
    settings = ["lakeingest.source.kind=kafka", "bootstrap.servers=broker:9092"]
    assert execute(["run", configuration, *(f"--set={setting}" for setting in settings)]) == 0
    assert library.called("session")["kafka"] is True


def test_run_reports_each_batch_on_stderr_and_the_summary_on_stdout(
    configuration: str, library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    library.summary = Summary(batches=2, warnings=("1 foreign message",))
    assert execute(["run", configuration, "--output", "json"]) == 0
    captured = capsys.readouterr()
    assert captured.err.count("batch 1 published: 2 transactions, 30 events") == 2
    assert "warning: 1 foreign message\n" in captured.err
    assert json.loads(captured.out) == {
        "batches": 2,
        "transactions": 2,
        "events": 30,
        "rows": {"public.orders": 7},
        "seconds": 2.0,
        "events_per_second": 15,
        "jobs": 12,
        "frontier": "END 12 at 0/16B2D50",
        "pending_transactions": 0,
    }


def test_on_a_terminal_run_shows_progress_that_does_not_reach_stdout(
    configuration: str,
    library: Library,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert execute(["run", configuration, "--output", "csv"]) == 0
    assert library.called("run_pipeline")
    captured = capsys.readouterr()
    assert captured.out.splitlines()[:2] == ["name,value", "batches,1"]


def test_a_run_without_news_says_so(
    configuration: str, library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    library.summary = Summary(batches=0, transactions=0, events=0, rows={}, seconds=0.0)
    assert execute(["run", configuration]) == 0
    captured = capsys.readouterr()
    assert "nothing new" in captured.err
    assert "events_per_second     0" in captured.out


def test_warnings_of_the_configuration_go_to_stderr(
    configuration: str, library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["status", configuration, "--set", "hoodie.x=1", "--output", "csv"]) == 0
    captured = capsys.readouterr()
    assert library.called("pipeline_status")
    assert captured.err == "warning: without effect here: hoodie.x\n"
    assert captured.out == 'name,value\nbatch,3\npending.public.orders,\\N\ntables,"a, b"\n'


def test_a_warning_of_the_configuration_is_not_repeated_after_the_run(
    configuration: str, library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    library.summary = Summary(warnings=("without effect here: hoodie.x", "1 foreign message"))
    assert execute(["run", configuration, "--set", "hoodie.x=1"]) == 0
    said = capsys.readouterr().err
    assert said.count("hoodie.x") == 1
    assert said.count("foreign message") == 1


def test_validate_prints_its_findings(
    configuration: str, library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["validate", configuration]) == 0
    captured = capsys.readouterr()
    assert library.called("validate_pipeline")["spark"] == "spark"
    assert captured.out == "topic shop.public.orders, 3 partitions\n"
    assert captured.err == "shop can run\n"


@pytest.mark.parametrize(("count", "but"), [(1, "there is a warning"), (2, "there are 2 warnings")])
def test_validate_does_not_say_that_all_is_well_where_something_is_to_be_looked_at(
    count: int,
    but: str,
    configuration: str,
    library: Library,
    capsys: pytest.CaptureFixture[str],
) -> None:
    library.findings = Findings(warnings=tuple(f"table {n} is unknown" for n in range(count)))
    assert execute(["validate", configuration, "--output", "json"]) == 0
    captured = capsys.readouterr()
    last = f"warning: table {count - 1} is unknown"
    assert captured.err.endswith(f"{last}\nshop can run, but {but}\n")
    assert json.loads(captured.out)["warnings"] == list(library.findings.warnings)


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        (None, "public.orders is retired; keep its folder"),
        (0, "public.orders is shown again as it was"),
        (12, "the next batch shows public.orders again, once 12 records are read"),
    ],
)
def test_retire_names_the_publication_and_says_what_comes_next(
    configuration: str,
    library: Library,
    capsys: pytest.CaptureFixture[str],
    waiting: int | None,
    said: str,
) -> None:
    library.retirement = Retirement(waiting=waiting)
    undo = [] if waiting is None else ["--undo"]
    assert execute(["retire", configuration, "public.orders", *undo, "--output", "json"]) == 0
    captured = capsys.readouterr()
    call = library.called("retire_table")
    assert (call["table"], call["undo"]) == ("public.orders", bool(undo))
    assert said in captured.err
    assert json.loads(captured.out) == {"table": "public.orders", "batch": 7}


@pytest.mark.parametrize(
    ("maintenance", "said"),
    [
        (Maintenance(), r"\A\Z"),
        (Maintenance(waiting=("a", "b")), "these tables are read as they were until .*: a, b\n"),
        (Maintenance(tables={}, batch=0, kept_from=0), "nothing is published yet"),
    ],
)
def test_maintain_says_which_publications_are_kept_and_which_tables_wait(
    configuration: str,
    library: Library,
    capsys: pytest.CaptureFixture[str],
    maintenance: Maintenance,
    said: str,
) -> None:
    library.maintenance = maintenance
    assert execute(["maintain", configuration, "--output", "json"]) == 0
    captured = capsys.readouterr()
    assert re.search(said, captured.err)
    assert json.loads(captured.out) == {
        "tables": maintenance.tables,
        "batch": maintenance.batch,
        "kept_from": maintenance.kept_from,
    }


def test_config_reference_prints_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["config-reference"]) == 0
    assert capsys.readouterr().out.strip() == reference().strip()


def test_version_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["--version"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"lakeingest \d+\.\d+\.\d+", line)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (None, None),
        ("17", 17),
        ("tx:753", "tx:753"),
        ("571:53195829", "571:53195829"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
    ],
)
def test_a_bare_number_is_a_batch_and_the_rest_is_handed_to_the_reader(
    text: str | None, meant: object
) -> None:
    parsed = parse_as_of(text)
    assert parsed == meant
    assert type(parsed) is type(meant)
