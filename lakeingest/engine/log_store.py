"""Whether Delta lets one driver alone commit a version, which "one writer" rests on.

A later driver fences an earlier one by commits, and of two drivers that commit the same version one
must fail. Local disks, HDFS, Azure and GCS see to that. S3 does not: Hadoop's client has no write
that fails where a file is there already (Hadoop 3.3.4 of Spark 3.5), and Delta's log store for S3
knows the writers of its own process only, so the second of two runs replaces a commit of the first
without any error. So the log store is known before anything is written.

It is known by Delta's own rules (``DelegatingLogStore``, ``LogStoreProvider`` of 3.3): a class for
all, else one for the scheme, else the scheme's default. Rejected: a probe, a file that is created
twice. One after the other the second is refused on S3, too; only two processes that are between
look and write at once would tell, and one that says "could run" writes nothing. Nor is a lock file
of our own beside the ledger an answer: it needs the very write that is missing.

A file system that nobody knows here is taken for one without such a write: Delta's documentation
asks of it that a rename fails where the target exists, which object stores rarely do. A log store
that the user names is taken for what it is made for. Databricks has its own commit service.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

_OF_HADOOP = "io.delta.storage.HDFSLogStore"
_OF_ONE_DRIVER = "io.delta.storage.S3SingleDriverLogStore"
_DEFAULTS = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _OF_ONE_DRIVER),
    **dict.fromkeys(("abfs", "abfss", "adl", "wasb", "wasbs"), "io.delta.storage.AzureLogStore"),
    "gs": "io.delta.storage.GCSLogStore",
}
_ATOMIC = frozenset(
    ("abfs", "abfss", "adl", "file", "gs", "hdfs", "maprfs", "o3fs", "ofs", "swebhdfs", "viewfs")
    + ("wasb", "wasbs", "webhdfs")
)
"""File systems on which a rename, or a create, fails where the target exists."""

_OF_FILE_SYSTEMS = frozenset(
    (
        "AzureLogStore",
        "GCSLogStore",
        "HDFSLogStore",
        "HadoopFileSystemLogStore",
        "LocalLogStore",
        "S3SingleDriverLogStore",
    )
)
"""Delta's stores that rely on the file system for what it may not do."""

_DATABRICKS = "DATABRICKS_RUNTIME_VERSION"


def log_store_of(spark: SparkSession, path: str) -> tuple[str, str]:
    """Return the scheme of a path, and the class that writes the logs of Delta tables there."""
    session: Any = spark
    scheme, given = urlsplit(path).scheme.lower(), spark.conf
    if hasattr(spark, "_jsparkSession"):
        # What is set in a running session does not reach Delta.
        given = session.sparkContext.getConf()
        state = session._jsparkSession.sessionState()  # noqa: SLF001 - this is the adapter
        scheme = scheme or urlsplit(state.newHadoopConf().get("fs.defaultFS") or "").scheme
    scheme = scheme or "file"
    return scheme, log_store(scheme, lambda key: given.get(key, None))


def log_store(scheme: str, given: Callable[[str], str | None]) -> str:
    """Return the class that writes logs, by Delta's rules.

    Args:
        scheme: Of the path, in lower case.
        given: Setting of Spark's to its value.
    """
    keys = ("delta.logStore.class", f"delta.logStore.{scheme}.impl")
    found = (given(f"{prefix}{key}") for key in keys for prefix in ("spark.", ""))
    return next(filter(None, found), None) or _DEFAULTS.get(scheme, _OF_HADOOP)


def fences(scheme: str, store: str) -> bool:
    """Return whether of two drivers that commit the same version one fails.

    Args:
        scheme: Of the table's path.
        store: The class that writes its log.
    """
    if _DATABRICKS in os.environ:
        return True
    name = store.rpartition(".")[2]
    if name not in _OF_FILE_SYSTEMS:
        return True
    return scheme in _ATOMIC and name != "S3SingleDriverLogStore"
