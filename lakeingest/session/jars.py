"""Return the pinned jars as local files; resolve missing ones once, and check all of them.

A session start must not depend on a network. So this module fetches jars before the start, and only
if one is missing. It compares every file with the lock at each call, not only after its download:
any program can write to the cache, and hashing its 17 MB takes about 30 ms.

``python -m lakeingest.session.jars`` resolves the jars now and prints their paths. After a change
of a version in the lock, ``--update-lock`` rewrites the lock's checksums.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from lakeingest.errors import ConfigError, LakeingestError, UnavailableError
from lakeingest.session.lock import (
    GROUPS,
    Jar,
    checksum,
    fingerprint,
    lock_path,
    read_lock,
    write_lock,
)
from lakeingest.session.resolve import resolve_packages

_SHIPPED_WITH_SPARK = (
    "com.github.luben:*",
    "com.google.code.findbugs:*",
    "commons-logging:*",
    "org.antlr:*",
    "org.apache.hadoop:*",
    "org.lz4:*",
    "org.slf4j:*",
    "org.xerial.snappy:*",
)
"""Dependencies of the pinned jars that pyspark already has: 50 MB that need no download."""


def cache_folder(lock: Sequence[Jar] | None = None) -> Path:
    """Return the jars' folder: ``LAKEINGEST_JARS``, else one folder per lock in the user's cache.

    On a machine without network, a user fills the folder by hand.
    """
    configured = os.environ.get("LAKEINGEST_JARS")
    if configured:
        return Path(configured)
    return Path.home() / ".cache" / "lakeingest" / "jars" / fingerprint(lock or read_lock())


def ensure_jars(groups: Collection[str]) -> list[Path]:
    """Return the jars of some groups as local files, each equal to the lock.

    Downloads only when a file is missing. Safe to call from several processes at once.

    Args:
        groups: Entries of ``lakeingest.session.lock.GROUPS``.

    Returns:
        One path per pinned jar, in the order of the lock.

    Raises:
        ConfigError: A group is not in ``GROUPS``.
        UnavailableError: A file differs from the lock, or a missing one cannot be resolved.
    """
    unknown = sorted(set(groups) - set(GROUPS))
    if unknown:
        message = f"unknown jar group {', '.join(unknown)}; known are {', '.join(GROUPS)}"
        raise ConfigError(message)
    lock = read_lock()
    jars = [jar for jar in lock if jar.group in groups]
    folder = cache_folder(lock)
    missing = [jar for jar in jars if not (folder / jar.file).is_file()]
    if missing:
        _fetch(missing, folder)
    for jar in jars:
        jar.check(folder / jar.file)
    return [folder / jar.file for jar in jars]


def update_lock(path: Path) -> None:
    """Resolve the versions in a lock and write their file names, sizes and checksums into it.

    Raises:
        UnavailableError: A version cannot be resolved; the lock stays unchanged.
    """
    lock = read_lock(path)
    with tempfile.TemporaryDirectory() as work:
        resolve_packages([jar.package for jar in lock], Path(work), _SHIPPED_WITH_SPARK)
        updated = []
        for jar in lock:
            source = _resolved_path(jar, Path(work))
            name = f"{jar.coordinate.split(':')[1]}-{jar.version}.jar"
            size = source.stat().st_size
            updated.append(replace(jar, file=name, bytes=size, sha256=checksum(source)))
    write_lock(path, updated)


def _fetch(missing: Sequence[Jar], folder: Path) -> None:
    """Resolve jars in a temporary folder, check them, and only then move them to ``folder``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(prefix=".resolving-", dir=folder)
    except OSError as error:
        names = ", ".join(jar.file for jar in missing)
        message = f"{folder} lacks {names} and cannot be written: {error.strerror}"
        raise UnavailableError(message) from error
    with temporary as work:
        resolve_packages([jar.package for jar in missing], Path(work), _SHIPPED_WITH_SPARK)
        for jar in missing:
            source = _resolved_path(jar, Path(work))
            jar.check(source)
            source.replace(folder / jar.file)


def _resolved_path(jar: Jar, folder: Path) -> Path:
    path = folder / f"{jar.coordinate.replace(':', '_')}-{jar.version}.jar"
    if not path.is_file():
        message = f"the resolver chose another version than {jar.package}: pin what it depends on"
        raise UnavailableError(message)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Resolve all jars, print one path a line, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lakeingest.session.jars")
    parser.add_argument("--update-lock", action="store_true", help="rewrite the sums of the lock")
    options = parser.parse_args(arguments)
    try:
        if options.update_lock:
            update_lock(lock_path())
        paths = ensure_jars(GROUPS)
    except LakeingestError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write("".join(f"{path}\n" for path in paths))
    return 0


if __name__ == "__main__":
    sys.exit(main())
