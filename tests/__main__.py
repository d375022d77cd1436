"""``python -m tests``: everything that must be green, in one command.

A plain program and not a Makefile, tox or nox: it needs nothing that the ``test`` extra does not
bring. The jars are resolved first, so that no test waits for a network or depends on one. Later
steps run even when an earlier one failed: one run shows all there is to mend. The tests come last,
in one run of pytest, whose start, collection and Spark are paid for once. The types are checked
beside it, because its start leaves a core idle.

``--fast`` leaves the slow tests out. ``--all`` adds what takes many minutes, the further forms of a
case that CI runs in one (``soak``), and the slow tests of the harness itself, which run otherwise
only where the harness has changed (``harness.py``). ``--harness`` runs the tests of the harness
alone. Both note which harness they found good. ``--all`` runs the notebook, too, which needs the
extra ``notebook``: a third of all packages, whose installation CI would wait for.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from lakeingest.errors import LakeingestError
from lakeingest.session.jars import ensure_jars
from lakeingest.session.java import ensure_java
from lakeingest.session.lock import GROUPS
from tests import harness

ROOT = Path(__file__).resolve().parents[1]

CHECKS = (
    ("ruff check", ["-m", "ruff", "check", "--quiet"]),
    ("ruff format", ["-m", "ruff", "format", "--check", "--quiet"]),
    (
        "lint-imports",
        ["-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-logo"],
    ),
)

TYPES = ("mypy", ["-m", "mypy", "--no-error-summary"])

NOTEBOOK = ("ipykernel", "matplotlib", "nbclient", "nbformat")
"""Packages of the extra ``notebook``."""

WORKERS = ["-n", "2", "--no-loadscope-reorder"]
"""See ``conftest.py``: one worker leaves a core idle."""

PYTEST = ["-m", "pytest", "--no-header", *WORKERS, "--durations=40"]


def main() -> int:
    """Run all steps; return 0 when every one passed."""
    parser = argparse.ArgumentParser(prog="python -m tests")
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--fast", action="store_true", help="leave out the slow tests")
    extent.add_argument("--all", action="store_true", help="add what takes many minutes")
    extent.add_argument("--harness", action="store_true", help="only the tests of the harness")
    options = parser.parse_args()
    if options.all and (missing := [name for name in NOTEBOOK if find_spec(name) is None]):
        parser.error(f"--all needs {', '.join(missing)}: pip install -e '.[test,notebook]'")
    started = time.monotonic()
    try:
        report("java", started, passed=bool(ensure_java()))
        started = time.monotonic()
        report("jars", started, passed=bool(ensure_jars(GROUPS)))
    except LakeingestError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    tests = [*PYTEST, *chosen(options)]
    if options.harness:
        passed = run(tests) == 0
    else:
        failed = [name for name, arguments in CHECKS if not check(name, arguments)]
        with ThreadPoolExecutor(1) as beside:
            types = beside.submit(check, *TYPES)
            passed = run(tests) == 0
            failed += [] if types.result() else [TYPES[0]]
        print(f"failed besides tests: {', '.join(failed) or 'nothing'}", flush=True)
        passed = passed and not failed
    if passed and (options.all or options.harness):
        harness.take_note()
    return 0 if passed else 1


def chosen(options: argparse.Namespace) -> list[str]:
    """Return which tests run, as pytest's option; nothing: all."""
    if options.all:
        return []
    if options.harness:
        return ["-m", "harness"]
    if options.fast:
        return ["-m", "not slow and not soak"]
    return ["-m", "not soak" if harness.has_changed() else "not soak and not (slow and harness)"]


def run(arguments: list[str]) -> int:
    """Run a module of this interpreter at the top of the repository; return its exit code."""
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, check=False).returncode


def check(name: str, arguments: list[str]) -> bool:
    """Run a check, print its outcome, and return whether it passed."""
    started = time.monotonic()
    passed = run(arguments) == 0
    report(name, started, passed=passed)
    return passed


def report(name: str, started: float, *, passed: bool) -> None:
    """Print a step's outcome and how long it took."""
    seconds = time.monotonic() - started
    print(f"{'ok  ' if passed else 'FAIL'} {name:<20}{seconds:7.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
