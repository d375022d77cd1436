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


def test_run_hands_its_options_to_the_library(library: Library) -> None:
    options = ["--continuous", "--min-sync-interval-seconds", "2.5", "--max-batches", "3"]
    library.execute("run", *options, "--set", "lakeingest.deletes=hard")
    call = library.called("run_pipeline")
    assert call["spark"] == "spark"
    assert isinstance(call["config"], PipelineConfig)
    assert call["config"].deletes == "hard"
    assert (call["continuous"], call["min_sync_interval_seconds"]) == (True, 2.5)
    assert call["max_batches"] == 3
    session = {"app_name": "lakeingest run shop", "kafka": False, "hudi": False, "brief": False}
    assert library.called("session") == session


@pytest.mark.parametrize("command", ["status", "history"])
def test_a_command_that_only_looks_gets_a_brief_session(library: Library, command: str) -> None:
    execute([command, library.configuration])
    assert library.called("session")["brief"] is True


def test_explain_says_the_reasons_and_shows_the_facts(library: Library) -> None:
    out, err = library.execute("explain", "--output", "csv")
    assert "A run would stop with exit code 65: it lacks rows" in err
    assert out.splitlines() == ["name,value", "state,stopped", "batch,3", "stops_with,65"]
    out, _ = library.execute("explain", "--output", "json")
    assert json.loads(out) == {
        "state": "stopped",
        "batch": 3,
        "stops_with": 65,
        "reasons": ["A run would stop with exit code 65: it lacks rows"],
    }


KAFKA = ["lakeingest.source.kind=kafka", "bootstrap.servers=broker:9092"]


@pytest.mark.parametrize(
    ("jars", "command", "settings"),
    [
        ("hudi", ["run"], ["lakeingest.table.public.orders.format=hudi"]),
        ("kafka", ["run"], KAFKA),
        ("kafka", ["retire", "public.orders", "--undo"], KAFKA),
    ],
)
def test_a_pipeline_gets_a_session_with_the_jars_that_it_needs(
    library: Library, jars: str, command: list[str], settings: list[str]
) -> None:
    name, *arguments = command
    library.execute(name, *arguments, *(f"--set={setting}" for setting in settings))
    assert library.called("session")[jars] is True


def test_run_reports_each_batch_on_stderr_and_the_summary_on_stdout(library: Library) -> None:
    library.summary = Summary(batches=2, warnings=("1 foreign message",))
    out, err = library.execute("run", "--output", "json")
    assert err.count("batch 1 published: 2 transactions, 30 events") == 2
    assert "warning: 1 foreign message\n" in err
    assert json.loads(out) == {
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
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    out, _ = library.execute("run", "--output", "csv")
    assert library.called("run_pipeline")
    assert out.splitlines()[:2] == ["name,value", "batches,1"]


def test_a_run_without_news_says_so(library: Library) -> None:
    library.summary = Summary(batches=0, transactions=0, events=0, rows={}, seconds=0.0)
    out, err = library.execute("run")
    assert "nothing new" in err
    assert "events_per_second     0" in out


def test_warnings_of_the_configuration_go_to_stderr(library: Library) -> None:
    out, err = library.execute("status", "--set", "hoodie.x=1", "--output", "csv")
    assert library.called("pipeline_status")
    assert err == "warning: without effect here: hoodie.x\n"
    assert out == 'name,value\nbatch,3\npending.public.orders,\\N\ntables,"a, b"\n'


def test_a_warning_of_the_configuration_is_not_repeated_after_the_run(library: Library) -> None:
    library.summary = Summary(warnings=("without effect here: hoodie.x", "1 foreign message"))
    _, err = library.execute("run", "--set", "hoodie.x=1")
    assert err.count("hoodie.x") == 1
    assert err.count("foreign message") == 1


def test_validate_prints_its_findings(library: Library) -> None:
    out, err = library.execute("validate")
    assert library.called("validate_pipeline")["spark"] == "spark"
    assert out == "topic shop.public.orders, 3 partitions\n"
    assert err == "shop can run\n"


@pytest.mark.parametrize(("count", "but"), [(1, "there is a warning"), (2, "there are 2 warnings")])
def test_validate_does_not_say_that_all_is_well_where_something_is_to_be_looked_at(
    library: Library, count: int, but: str
) -> None:
    library.findings = Findings(warnings=tuple(f"table {n} is unknown" for n in range(count)))
    out, err = library.execute("validate", "--output", "json")
    assert err.endswith(f"warning: table {count - 1} is unknown\nshop can run, but {but}\n")
    assert json.loads(out)["warnings"] == list(library.findings.warnings)


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        (None, "public.orders is retired; keep its folder"),
        (0, "public.orders is shown again as it was"),
        (12, "the next batch shows public.orders again, once 12 records are read"),
    ],
)
def test_retire_names_the_publication_and_says_what_comes_next(
    library: Library, waiting: int | None, said: str
) -> None:
    library.retirement = Retirement(waiting=waiting)
    undo = [] if waiting is None else ["--undo"]
    out, err = library.execute("retire", "public.orders", *undo, "--output", "json")
    call = library.called("retire_table")
    assert (call["table"], call["undo"]) == ("public.orders", bool(undo))
    assert said in err
    assert json.loads(out) == {"table": "public.orders", "batch": 7}


@pytest.mark.parametrize(
    ("maintenance", "said"),
    [
        (Maintenance(), r"\A\Z"),
        (Maintenance(waiting=("a", "b")), "these tables are read as they were until .*: a, b\n"),
        (Maintenance(tables={}, batch=0, kept_from=0), "nothing is published yet"),
    ],
)
def test_maintain_says_which_publications_are_kept_and_which_tables_wait(
    library: Library, maintenance: Maintenance, said: str
) -> None:
    library.maintenance = maintenance
    out, err = library.execute("maintain", "--output", "json")
    assert re.search(said, err)
    assert json.loads(out) == {
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
        ("0200060037030000", "0200060037030000"),
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
