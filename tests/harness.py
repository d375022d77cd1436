"""The tests of the harness itself, and whether the harness changed since they last passed.

Oracles, workloads, databases, brokers and checkers are what the tests of the product stand on. They
change seldom, and their own tests start every real part again. So they run with ``--all`` or
``--harness``, and whenever one of their files differs from what ``harness_passed.txt`` says of the
last such run that passed. Who changes the harness runs ``python -m tests --harness`` and commits
the file with the change.

The file holds a hash of the folders' content. Rejected: to compare with a commit of git's; a clone
may be shallow, and a source archive has no history.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

TESTS = Path(__file__).parent

PARTS = (
    "faults/test_machinery.py",
    "live/relay.py",
    "live/test_relay.py",
    "oracles",
    "recordings/test_checkers.py",
    "recordings/test_watcher.py",
    "recordings/watcher.py",
    "rig",
    "soak/test_unprotected.py",
    "workloads",
)
"""Folders and files below ``tests``."""

_STAMP = TESTS / "harness_passed.txt"
_SUFFIXES = frozenset((".py", ".sql", ".json", ".properties"))


def is_harness_test(nodeid: str) -> bool:
    """Return whether a test, by its id from the top of the repository, tests the harness."""
    file = nodeid.partition("::")[0].removeprefix("tests/")
    return any(file == part or file.startswith(f"{part}/") for part in PARTS)


def digest(tests: Path = TESTS) -> str:
    """Return a hash of the names and the content of the harness."""
    whole = hashlib.sha256()
    for part in PARTS:
        top = tests / part
        files = sorted(top.rglob("*")) if top.is_dir() else [top]
        for file in files:
            if file.suffix in _SUFFIXES:
                whole.update(f"{file.relative_to(tests).as_posix()}\0".encode())
                whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def has_changed() -> bool:
    """Return whether the harness differs from the one whose tests last passed."""
    return not _STAMP.is_file() or _STAMP.read_text("utf-8").strip() != digest()


def take_note() -> None:
    """Write that the harness, as it is now, has passed its tests."""
    _STAMP.write_text(f"{digest()}\n", "utf-8")
