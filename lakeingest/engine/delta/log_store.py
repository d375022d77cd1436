"""Find out whether Delta lets only one driver commit a version; "one writer" depends on it.

A later driver fences an earlier one by commits, so when two drivers commit the same version, one
must fail. HDFS, Azure and GCS ensure this, and on local disks a lock does (``local_disk.py``). S3
does not: Hadoop's client has no write that fails when the file exists (Hadoop 3.3.4 of Spark 3.5),
and Delta's log store for S3 knows only the writers of its own process. So the second of two runs
replaces a commit of the first one without an error. Therefore lakeingest determines the log store
before it writes anything.

It applies Delta's own rules (``DelegatingLogStore``, ``LogStoreProvider`` of 3.3): the class for
all schemes, else the class for the path's scheme, else the scheme's default.

Rejected: a probe that creates the same file twice. When one create follows the other, S3 refuses
the second, too. The defect shows only when two processes are both between their check and their
write, and a dry run ("could run") writes nothing. Rejected: an own lock file beside the ledger. It
needs the same missing write.

An unknown file system counts as one without such a write: Delta's documentation requires that a
rename fails when the target exists, and object stores rarely do that. A log store that the user
configures counts as safe, because it is made for this purpose. Databricks has its own commit
service.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

_HADOOP_STORE = "io.delta.storage.HDFSLogStore"
_SINGLE_DRIVER_STORE = "io.delta.storage.S3SingleDriverLogStore"
_DEFAULTS = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _SINGLE_DRIVER_STORE),
    **dict.fromkeys(("abfs", "abfss", "adl", "wasb", "wasbs"), "io.delta.storage.AzureLogStore"),
    "gs": "io.delta.storage.GCSLogStore",
}
_ATOMIC = frozenset(
    ("abfs", "abfss", "adl", "file", "gs", "hdfs", "maprfs", "o3fs", "ofs", "swebhdfs", "viewfs")
    + ("wasb", "wasbs", "webhdfs")
)
"""File systems on which a rename or a create fails when the target exists, and local disks."""

_FILE_SYSTEM_STORES = frozenset(
    (
        "AzureLogStore",
        "GCSLogStore",
        "HDFSLogStore",
        "HadoopFileSystemLogStore",
        "LocalLogStore",
        "S3SingleDriverLogStore",
    )
)
"""Delta's log stores that rely on the file system to refuse an existing target."""

_DATABRICKS = "DATABRICKS_RUNTIME_VERSION"


def log_store_of(spark: SparkSession, path: str) -> tuple[str, str]:
    """Return a path's scheme, and the class that writes the logs of Delta tables at this path."""
    session: Any = spark
    scheme, configuration = urlsplit(path).scheme.lower(), spark.conf
    if hasattr(spark, "_jsparkSession"):
        # Delta ignores log store settings of a running session.
        # Not `getConf()`, which copies every setting with a call.
        configuration = session.sparkContext._conf  # noqa: SLF001
        state = session._jsparkSession.sessionState()  # noqa: SLF001 - this is the adapter
        scheme = scheme or urlsplit(state.newHadoopConf().get("fs.defaultFS") or "").scheme
    scheme = scheme or "file"
    return scheme, log_store(scheme, lambda key: configuration.get(key, None))


def log_store(scheme: str, setting_of: Callable[[str], str | None]) -> str:
    """Return the class that writes logs, by Delta's rules.

    Args:
        scheme: Scheme of the path, in lower case.
        setting_of: Returns the value of a Spark setting; None: not set.
    """
    keys = ("delta.logStore.class", f"delta.logStore.{scheme}.impl")
    classes = (setting_of(f"{prefix}{key}") for key in keys for prefix in ("spark.", ""))
    return next(filter(None, classes), None) or _DEFAULTS.get(scheme, _HADOOP_STORE)


def fences(scheme: str, store: str) -> bool:
    """Return whether one of two drivers fails when both commit the same version.

    Args:
        scheme: Scheme of the table's path.
        store: Class that writes the table's log.
    """
    if _DATABRICKS in os.environ:
        return True
    name = store.rpartition(".")[2]
    if name not in _FILE_SYSTEM_STORES:
        return True
    return scheme in _ATOMIC and name != "S3SingleDriverLogStore"


def renames_locally(scheme: str, store: str) -> bool:
    """Return whether a log is on a local disk, written by one of Delta's stores for such a disk."""
    return scheme == "file" and store.rpartition(".")[2] in _FILE_SYSTEM_STORES
