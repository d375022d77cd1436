"""The pinned jars as local files: found, or resolved once and checked.

A session start must not depend on a network, so jars are fetched here, apart from it, and only
when one is missing. Every file is compared with the lock each time it is handed out, and not only
after its download: anything can write to the cache, and its 17 MB hash in about 30 ms.

``python -m lakeingest.session.jars`` resolves now and prints the paths; with ``--update-lock`` it
rewrites the sums of the lock after someone changed a version in it.
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
"""What the pinned jars depend on and pyspark has already: 50 MB that need not be fetched."""


def cache_folder(lock: Sequence[Jar] | None = None) -> Path:
    """Return where the jars lie: ``LAKEINGEST_JARS``, else a folder per lock in the user's cache.

    A machine without network is served by filling the folder by hand.
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
        ConfigError: A group that the lock does not know.
        UnavailableError: A file differs from the lock, or a missing one could not be resolved.
    """
    unknown = sorted(set(groups) - set(GROUPS))
    if unknown:
        message = f"unknown jar group {', '.join(unknown)}; known are {', '.join(GROUPS)}"
        raise ConfigError(message)
    lock = read_lock()
    wanted = [jar for jar in lock if jar.group in groups]
    folder = cache_folder(lock)
    missing = [jar for jar in wanted if not (folder / jar.file).is_file()]
    if missing:
        _place(missing, folder)
    for jar in wanted:
        jar.check(folder / jar.file)
    return [folder / jar.file for jar in wanted]


def update_lock(path: Path) -> None:
    """Resolve the versions that a lock names and write their file names, sizes and sums into it.

    Raises:
        UnavailableError: A version could not be resolved; the lock is left as it was.
    """
    lock = read_lock(path)
    with tempfile.TemporaryDirectory() as work:
        resolve_packages([jar.package for jar in lock], Path(work), _SHIPPED_WITH_SPARK)
        updated = []
        for jar in lock:
            source = _resolved(jar, Path(work))
            name = f"{jar.coordinate.split(':')[1]}-{jar.version}.jar"
            size = source.stat().st_size
            updated.append(replace(jar, file=name, bytes=size, sha256=checksum(source)))
    write_lock(path, updated)


def _place(missing: Sequence[Jar], folder: Path) -> None:
    """Resolve jars, check them, and only then let them appear in the folder."""
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
            source = _resolved(jar, Path(work))
            jar.check(source)
            source.replace(folder / jar.file)


def _resolved(jar: Jar, folder: Path) -> Path:
    path = folder / f"{jar.coordinate.replace(':', '_')}-{jar.version}.jar"
    if not path.is_file():
        message = f"the resolver chose another version than {jar.package}: pin what it depends on"
        raise UnavailableError(message)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Resolve all jars and print one path a line; return the exit code."""
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
