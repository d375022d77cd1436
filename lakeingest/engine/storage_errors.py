"""Turn failures of the storage of lake and recordings into errors of lakeingest.

Adapter: it reads the exception and its causes in the JVM, and classifies them by class. Rejected:
to search the text of the PySpark error. The text of a failed task quotes rows, and a row may
contain any words. Only where one class stands for many failures (exceptions of S3 and of files)
does it search the text of that one exception. No such text goes into a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lakeingest.engine.java_errors import Thrown, java_errors
from lakeingest.errors import (
    AccessError,
    ConfigError,
    LakeingestError,
    TransientError,
    UnavailableError,
)

_REFUSED = frozenset(
    {
        "java.nio.file.AccessDeniedException",
        "java.security.AccessControlException",
        "org.apache.hadoop.security.AccessControlException",
        "org.apache.hadoop.security.authorize.AuthorizationException",
    }
)
_AWAY = frozenset(
    {
        "java.net.ConnectException",
        "java.net.NoRouteToHostException",
        "java.net.SocketException",
        "java.net.SocketTimeoutException",
        "java.net.UnknownHostException",
        "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
        "org.apache.hadoop.ipc.RetriableException",
        "org.apache.hadoop.ipc.StandbyException",
    }
)
_REFUSED_IN_TEXT = {
    # The folder is not writable or lies below a file; Java does not say which.
    "DeltaIOException": ("[DELTA_CANNOT_CREATE_LOG_PATH]",),
    # Platforms that shade a library rename its packages, so only the class name is compared.
    "AmazonS3Exception": ("Status Code: 403", "Error Code: AccessDenied"),
    "S3Exception": ("Status Code: 403",),
}
_THROTTLED = frozenset(
    {
        "com.amazonaws.services.dynamodbv2.model.ProvisionedThroughputExceededException",
        "org.apache.hadoop.fs.s3a.AWSServiceThrottledException",
    }
)
_THROTTLED_IN_TEXT = {
    "AbfsRestOperationException": (", 429,", ", 503,"),
    "AmazonS3Exception": ("Status Code: 503", "Error Code: SlowDown", "Status Code: 429"),
    "GoogleJsonResponseException": ("429 ", "503 "),
    "S3Exception": ("Status Code: 503", "Status Code: 429"),
}
_REFUSED_FILE = ("java.io.FileNotFoundException", "(Permission denied)")
"""Class and text for any file, also an unreadable key store: the text must name a storage path."""

_NO_FILE_SYSTEM = "org.apache.hadoop.fs.UnsupportedFileSystemException"
_NOT_STORAGE = ("org.apache.kafka.", "org.apache.spark.shuffle.", "io.netty.")
"""Packages of unreachable Kafka brokers and Spark nodes, which are not storage. Spark's nodes use
Netty, whose exception is a ``ConnectException``."""


@dataclass(frozen=True)
class _JavaFailure:
    """A Java exception, classified as a failure of storage."""

    thrown: Thrown

    @property
    def name(self) -> str:
        return self.thrown.name

    @property
    def text(self) -> str:
        return self.thrown.text

    @property
    def classes(self) -> tuple[str, ...]:
        return self.thrown.classes

    def refused(self, roots: Iterable[str]) -> bool:
        """Return whether the storage refused access; ``roots`` are the folders of the storage."""
        name, denied = _REFUSED_FILE
        if name in self.classes:
            return denied in self.text and any(map(self.is_of, roots))
        parts = _REFUSED_IN_TEXT.get(self.name.rpartition(".")[2], ())
        return not _REFUSED.isdisjoint(self.classes) or any(part in self.text for part in parts)

    def is_of(self, root: str) -> bool:
        """Return whether the text names a path in ``root``; Java omits the scheme of a file."""
        parts = urlsplit(root)
        if parts.scheme not in ("", "file"):
            return root in self.text
        whole = Path(parts.path).absolute()
        return self.text.startswith((f"{whole}/", f"{whole} ("))

    @property
    def away(self) -> bool:
        return not _AWAY.isdisjoint(self.classes)

    @property
    def throttled(self) -> bool:
        parts = _THROTTLED_IN_TEXT.get(self.name.rpartition(".")[2], ())
        by_class = not _THROTTLED.isdisjoint(self.classes)
        return by_class or any(part in self.text for part in parts)

    @property
    def without_file_system(self) -> bool:
        missing = self.name == "java.lang.ClassNotFoundException" and "FileSystem" in self.text
        return missing or self.name == _NO_FILE_SYSTEM


@contextmanager
def storage(*roots: str) -> Iterator[None]:
    """Turn failures of the storage below ``roots`` into errors that say what to do.

    Args:
        roots: Folders that the block reads or writes. The message names the folder that the
            exception names, else the first one.

    Raises:
        AccessError: The storage refuses access.
        UnavailableError: The storage does not answer.
        TransientError: The storage throttles requests.
        ConfigError: Spark has no file system for the path.
    """
    try:
        yield
    except LakeingestError:
        raise
    except Exception as error:
        explained = storage_error(error, *roots)
        if explained is None:
            raise
        raise explained from error


def storage_error(error: BaseException, *roots: str) -> LakeingestError | None:
    """Return the error of the storage that a failure describes; None: not about storage."""
    thrown = [_JavaFailure(one) for one in java_errors(error)]
    if any(name.startswith(_NOT_STORAGE) for one in thrown for name in one.classes):
        return None
    roots_in_text = (
        root for root in roots for one in thrown if root in one.text or one.is_of(root)
    )
    root = next(roots_in_text, roots[0])
    for one in thrown:
        if one.refused(roots):
            return AccessError(
                f"The storage of '{root}' refused access ({one.name}). Check that the path is "
                "right, which credentials Spark has for it, and their rights to list, read and "
                "write there. The lake stands at its last publication."
            )
        if one.throttled:
            return TransientError(
                f"The storage of '{root}' takes no more requests for now ({one.name}). The lake "
                "stands at its last publication; run again, or raise the storage's limits."
            )
        if one.away:
            return UnavailableError(
                f"The storage of '{root}' cannot be reached ({one.name}). Check its address, and "
                "that it answers from here. The lake stands at its last publication; run again."
            )
        if one.without_file_system:
            return ConfigError(
                f"Spark has no file system for '{root}' ({one.name}). Correct the path, or bring "
                "the jars that read it, for s3a hadoop-aws of Spark's Hadoop version: in "
                "spark.jars.packages of spark-defaults.conf or of lakeingest.session(extra=…)."
            )
    return None
