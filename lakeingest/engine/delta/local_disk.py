"""Let one process at a time commit to a Delta table on a local disk.

Adapter. No log store of Delta makes a commit on a local disk fail when another process makes the
same version: each looks whether the file exists and then renames its own to it, and on POSIX such a
rename replaces the file. When two processes began each version at the same moment, both succeeded
in 3 of 400 with ``HDFSLogStore`` (the default) and in 18 of 400 with ``LocalLogStore``. The second
replaced the commit of the first. A lock on the table's folder closes the gap between writers that
take it: runs and maintenance of lakeingest.

The lock is help and no condition. Whoever waits too long goes on without it: a driver that is
frozen inside a commit must not keep its successor from fencing it. It goes on, too, where the
folder cannot be made (Delta then says why) or locked (some network file systems, Windows). The lock
is Python's: if Python alone is killed, its JVM may still commit for a moment.

Rejected: a lock file in the folder. A folder can be locked itself, and nothing is left behind.
Elsewhere nothing is locked: the storage refuses the second commit (``log_store.py``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakeingest.engine.delta.log import has_log, java_log

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

PATIENCE_SECONDS = 10.0
"""How long a commit waits for another one; a direct commit takes a twentieth of a second."""

_PAUSE_SECONDS = 0.02


def committing(spark: SparkSession, path: str) -> AbstractContextManager[None]:
    """Lock a table for a commit, if it is on a local disk; not for a second one inside the block.

    Args:
        spark: Session with Delta.
        path: Path of the table, which need not exist yet.
    """
    return committing_to(java_log(spark, path)[1]) if has_log(spark) else nullcontext()


@contextmanager
def committing_to(log: Any) -> Iterator[None]:
    """Lock a table for a commit; see ``committing``.

    Args:
        log: Delta's ``DeltaLog`` of the table.
    """
    folder = local_folder(log)
    descriptor = None if folder is None or fcntl is None else _opened(folder)
    if descriptor is None:
        yield
        return
    try:
        _lock(descriptor)
        yield
    finally:
        # A process that was forked meanwhile shares the descriptor.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _opened(folder: Path) -> int | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder, os.O_RDONLY)
    except OSError:
        return None


def _lock(descriptor: int) -> None:
    """Wait for the lock, but not for ever."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return
            time.sleep(_PAUSE_SECONDS)
        except OSError:
            return
        else:
            return


def local_folder(log: Any) -> Path | None:
    """Return a table's folder; None: it is not on a local disk.

    Args:
        log: Delta's ``DeltaLog`` of the table.
    """
    place = log.dataPath().toUri()
    return Path(place.getPath()) if place.getScheme() == "file" else None
