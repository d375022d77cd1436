from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakeingest.cli.main import execute
from lakeingest.cli.stopping import STOPPED
from lakeingest.config.redaction import remember
from lakeingest.errors import (
    AccessError,
    ConfigError,
    DataError,
    FencedError,
    InvariantError,
    UnavailableError,
    UsageError,
)
from tests.cli.library import Library


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvariantError, 1),
        (UsageError, 2),
        (DataError, 65),
        (UnavailableError, 69),
        (FencedError, 75),
        (AccessError, 77),
        (ConfigError, 78),
    ],
)
def test_each_error_has_its_exit_code_and_its_message_on_stderr(
    library: Library, error: type[Exception], code: int
) -> None:
    library.failure = error("table public.orders says no")
    out, err = library.execute("run", code=code)
    assert out == ""
    assert "error: table public.orders says no\n" in err
    assert "Traceback" not in err


def test_a_missing_file_is_78_and_says_where_it_looked(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "/nowhere/shop"]) == 78
    assert "/nowhere/shop.properties" in capsys.readouterr().err


def test_wrong_usage_is_2(configuration: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run"]) == 2
    assert execute(["run", configuration, "--output", "xml"]) == 2
    assert execute(["run", configuration, "--min-sync-interval-seconds", "5"]) == 2
    assert execute(["show", configuration, "public.orders", "--as-of", "2026-13-01"]) == 2
    assert execute(["run", configuration, "--set", "nonsense"]) == 2
    assert capsys.readouterr().out == ""


def test_an_unexpected_error_keeps_its_message_off_the_screen(library: Library) -> None:
    remember("hunter2-unexpected")
    library.failure = ValueError("cannot cast 'row value' with hunter2-unexpected")
    _, said = library.execute("run", code=1)
    assert "error: internal error, ValueError\n" in said
    assert "row value" not in said
    match = re.search(r"the traceback is in (\S+)", said)
    assert match is not None
    log = Path(match[1])
    log_text = log.read_text("utf-8")
    mode = stat.S_IMODE(log.stat().st_mode)
    log.unlink()
    assert "row value" in log_text
    assert "hunter2" not in log_text
    assert mode == 0o600


@pytest.mark.parametrize("place", [0, 1, 2])
def test_debug_shows_the_traceback_wherever_it_stands(
    place: int, library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    library.failure = ValueError("boom")
    arguments = ["run", library.configuration]
    arguments.insert(place, "--debug")
    assert execute(arguments) == 1
    said = capsys.readouterr().err
    assert "ValueError: boom" in said
    assert "traceback is in" not in said


def test_ctrl_c_is_130_and_says_that_nothing_is_half_done(library: Library) -> None:
    library.failure = KeyboardInterrupt()
    _, said = library.execute("run", code=130)
    assert said.endswith(f"{STOPPED}\n")


def test_an_error_raised_over_ctrl_c_counts_as_ctrl_c(library: Library) -> None:
    library.failure = RuntimeError("job 7 cancelled")
    library.failure.__context__ = KeyboardInterrupt()
    _, said = library.execute("run", code=130)
    assert "error" not in said


def test_sigterm_is_treated_like_ctrl_c(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def run_until_stopped(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(10)

    monkeypatch.setattr(sys.modules["lakeingest.apply.run"], "run_pipeline", run_until_stopped)
    assert library.calls == []
    _, said = library.execute("run", code=130)
    assert STOPPED in said
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_command_can_be_executed_outside_the_main_thread(library: Library) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(execute, ["run", library.configuration]).result() == 0
    assert library.called("run_pipeline")


def test_help_and_a_misspelt_key_answer_without_loading_spark(configuration: str) -> None:
    program = (
        "import sys\n"
        "from lakeingest.cli.main import execute\n"
        "assert execute(['run', '--help']) == 0\n"
        f"assert execute(['run', {configuration!r}, '--set', 'lakeingest.deletess=soft']) == 78\n"
        "assert 'pyspark' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
