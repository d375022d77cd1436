"""Find out whether a folder can be written: write a file there and remove it again.

Adapter: Hadoop's file systems, as Spark and Delta use them. Rejected: to ask for permissions. Each
storage has its own, and only a write says what they come to.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import Any

from pyspark.sql import SparkSession


def try_to_write(spark: SparkSession, folder: str) -> None:
    """Write and remove a file, and the folders that were made for it.

    Args:
        spark: The session; without a JVM at hand (Spark Connect) nothing is tried.
        folder: Path or URI; it need not exist.

    Raises:
        Exception: What the storage threw; ``storage_errors`` explains it.
    """
    session: Any = spark
    if not hasattr(spark, "_jsparkSession"):
        return
    configuration = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    probe = session._jvm.org.apache.hadoop.fs.Path(folder, f".probe-{uuid.uuid4().hex}")  # noqa: SLF001
    files = probe.getFileSystem(configuration)
    made, parent = [], probe.getParent()
    while parent is not None and not files.exists(parent):
        made.append(parent)
        parent = parent.getParent()
    files.create(probe, False).close()
    files.delete(probe, False)
    for path in made:
        # Another run may have begun meanwhile: only an empty folder is removed.
        with suppress(Exception):
            files.delete(path, False)
