"""``python -m tests``: everything that must be green, in one command.

A plain program and not a Makefile, tox or nox: it needs nothing that the ``test`` extra does not
bring. The jars are resolved first, so that no test waits for a network or depends on one. Later
steps run even when an earlier one failed: one run shows all there is to mend. The slow half comes
last, and its summary closes the output.

``--fast`` leaves the slow half out. ``--all`` adds what takes many minutes, the further forms of a
case that CI runs in one (``soak``), and the tests of the harness itself, which run otherwise only
where the harness has changed (``harness.py``). ``--harness`` runs the latter alone. Both note which
harness they found good.
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
from tests import harness

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
SLOW = ["-m", "pytest", "--no-header", *WORKERS, "--durations=40", "-m"]


def main() -> int:
    """Run all steps; return 0 when every one passed."""
    parser = argparse.ArgumentParser(prog="python -m tests")
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--fast", action="store_true", help="leave out the slow half")
    extent.add_argument("--all", action="store_true", help="add what takes many minutes")
    extent.add_argument("--harness", action="store_true", help="only the tests of the harness")
    options = parser.parse_args()
    started = time.monotonic()
    try:
        report("java", started, passed=bool(ensure_java()))
        started = time.monotonic()
        report("jars", started, passed=bool(ensure_jars(GROUPS)))
    except LakeingestError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if options.harness:
        passed = run([*SLOW, "harness"]) == 0
        if passed:
            harness.take_note()
        return 0 if passed else 1
    failed = []
    checks = CHECKS[:-1] if options.fast else CHECKS
    for name, arguments in checks:
        started = time.monotonic()
        passed = run(arguments) == 0
        report(name, started, passed=passed)
        if not passed:
            failed.append(name)
    print(f"failed so far: {', '.join(failed) or 'nothing'}", flush=True)
    last = run(CHECKS[-1][1] if options.fast else [*SLOW, slow_half(everything=options.all)])
    # A slow half without a test is no failure; a fast half without one is.
    if last == _NO_TESTS_COLLECTED and not options.fast:
        last = 0
    if options.all and not (failed or last):
        harness.take_note()
    return 1 if failed or last else 0


def slow_half(*, everything: bool) -> str:
    """Return which tests are the slow half, as an expression over markers."""
    if everything:
        return "slow"
    return "slow and not soak" if harness.has_changed() else "slow and not soak and not harness"


def run(arguments: list[str]) -> int:
    """Run a module of this interpreter at the top of the repository; return its exit code."""
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, check=False).returncode


def report(name: str, started: float, *, passed: bool) -> None:
    """Print a step's outcome and how long it took."""
    seconds = time.monotonic() - started
    print(f"{'ok  ' if passed else 'FAIL'} {name:<20}{seconds:7.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
