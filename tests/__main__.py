"""``python -m tests``: everything that must be green, in one command.

A plain program and not a Makefile, tox or nox: it needs nothing that the ``test`` extra does not
bring. The jars are resolved first, so that no test waits for a network or depends on one. Later
steps run even when an earlier one failed: one run shows all there is to mend. The slow half comes
last, and its summary closes the output.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from lakeingest.errors import LakeingestError
from lakeingest.session.jars import ensure_jars
from lakeingest.session.java import ensure_java
from lakeingest.session.lock import GROUPS

ROOT = Path(__file__).resolve().parents[1]

_NO_TESTS_COLLECTED = 5

WORKERS = ["-n", "2", "--no-loadscope-reorder"]
"""See ``conftest.py``; twice the memory of one, three quarters of its time."""

CHECKS = (
    ("ruff check", ["-m", "ruff", "check", "--quiet"]),
    ("ruff format", ["-m", "ruff", "format", "--check", "--quiet"]),
    ("mypy", ["-m", "mypy", "--no-error-summary"]),
    (
        "lint-imports",
        ["-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-logo"],
    ),
    ("pytest, fast half", ["-m", "pytest", "--no-header", *WORKERS, "-m", "not slow"]),
)
SLOW = ["-m", "pytest", "--no-header", *WORKERS, "-m", "slow and not soak", "--durations=40"]


def main() -> int:
    """Run all steps; return 0 when every one passed."""
    parser = argparse.ArgumentParser(prog="python -m tests")
    parser.add_argument("--fast", action="store_true", help="leave out the slow half")
    options = parser.parse_args()
    started = time.monotonic()
    try:
        report("java", started, passed=bool(ensure_java()))
        started = time.monotonic()
        report("jars", started, passed=bool(ensure_jars(GROUPS)))
    except LakeingestError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    failed = []
    checks = CHECKS[:-1] if options.fast else CHECKS
    for name, arguments in checks:
        started = time.monotonic()
        passed = run(arguments) == 0
        report(name, started, passed=passed)
        if not passed:
            failed.append(name)
    print(f"failed so far: {', '.join(failed) or 'nothing'}", flush=True)
    last = run(CHECKS[-1][1] if options.fast else SLOW)
    # A slow half without a test is no failure; a fast half without one is.
    if last == _NO_TESTS_COLLECTED and not options.fast:
        last = 0
    return 1 if failed or last else 0


def run(arguments: list[str]) -> int:
    """Run a module of this interpreter at the top of the repository; return its exit code."""
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, check=False).returncode


def report(name: str, started: float, *, passed: bool) -> None:
    """Print a step's outcome and how long it took."""
    seconds = time.monotonic() - started
    print(f"{'ok  ' if passed else 'FAIL'} {name:<20}{seconds:7.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
