"""Turn failures of the storage of lake and recordings into errors of lakeingest.

Adapter: it reads the exception and its causes in the JVM, and classifies them by class. Rejected:
to search the text of the PySpark error. The text of a failed task quotes rows, and a row may
contain any words. Only where one class stands for many failures (exceptions of S3 and of files)
does it search the text of that one exception. No such text goes into a message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

from lakeingest.engine.java_errors import JavaError, java_errors
from lakeingest.errors import (
    AccessError,
    ConfigError,
    LakeingestError,
    TransientError,
    UnavailableError,
)


@dataclass(frozen=True)
class _Signs:
    """What identifies one kind of failure.

    Attributes:
        classes: Names of Java classes; a subclass counts, too.
        texts: Class name without package (platforms that shade a library rename its packages), to
            texts of which the exception's message has one.
    """

    classes: frozenset[str]
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def match(self, java: JavaError) -> bool:
        """Return whether an exception is a failure of this kind."""
        texts = self.texts.get(java.name.rpartition(".")[2], ())
        return not self.classes.isdisjoint(java.classes) or any(text in java.text for text in texts)


_REFUSED = _Signs(
    frozenset(
        {
            "java.nio.file.AccessDeniedException",
            "java.security.AccessControlException",
            "org.apache.hadoop.security.AccessControlException",
            "org.apache.hadoop.security.authorize.AuthorizationException",
        }
    ),
    {
        # The folder is not writable or lies below a file; Java does not say which.
        "DeltaIOException": ("[DELTA_CANNOT_CREATE_LOG_PATH]",),
        "IOException": ("Mkdirs failed to create",),
        "AmazonS3Exception": ("Status Code: 403", "Error Code: AccessDenied"),
        "S3Exception": ("Status Code: 403",),
    },
)
_THROTTLED = _Signs(
    frozenset(
        {
            "com.amazonaws.services.dynamodbv2.model.ProvisionedThroughputExceededException",
            "org.apache.hadoop.fs.s3a.AWSServiceThrottledException",
        }
    ),
    {
        "AbfsRestOperationException": (", 429,", ", 503,"),
        "AmazonS3Exception": ("Status Code: 503", "Error Code: SlowDown", "Status Code: 429"),
        "GoogleJsonResponseException": ("429 ", "503 "),
        "S3Exception": ("Status Code: 503", "Status Code: 429"),
    },
)
_AWAY = _Signs(
    frozenset(
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
)
_LISTED_WITH_A_GAP = _Signs(
    frozenset(), {"DeltaIllegalStateException": ("[DELTA_VERSIONS_NOT_CONTIGUOUS]",)}
)
"""A local folder to which another program adds may be listed with an entry and without the one
before it."""
_BELOW_A_FILE = _Signs(frozenset({"org.apache.hadoop.fs.ParentNotDirectoryException"}))
_NO_FILE_SYSTEM = _Signs(
    frozenset({"org.apache.hadoop.fs.UnsupportedFileSystemException"}),
    {"ClassNotFoundException": ("FileSystem",)},
)
_REFUSED_FILE = ("java.io.FileNotFoundException", "(Permission denied)")
"""Class and text for any file, also an unreadable key store: the text must name a storage path."""

_NOT_STORAGE = ("org.apache.kafka.", "org.apache.spark.shuffle.", "io.netty.")
"""Packages of unreachable Kafka brokers and Spark nodes, which are not storage. Spark's nodes use
Netty, whose exception is a ``ConnectException``."""


@contextmanager
def storage(*roots: str) -> Iterator[None]:
    """Turn failures of the storage below ``roots`` into errors that say what to do.

    Args:
        roots: Folders that the block reads or writes. The message names the folder that the
            exception names, else the first one.

    Raises:
        AccessError: The storage refuses access.
        UnavailableError: The storage does not answer.
        TransientError: The storage throttles requests, or lists a folder that changes.
        ConfigError: Spark has no file system for the path, or a part of the path is a file.
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
    thrown = list(java_errors(error))
    if any(name.startswith(_NOT_STORAGE) for java in thrown for name in java.classes):
        return None
    roots_in_text = (
        root for root in roots for java in thrown if root in java.text or _names_path(java, root)
    )
    root = next(roots_in_text, roots[0])
    for java in thrown:
        if _is_refusal(java, roots):
            return AccessError(
                f"The storage of '{root}' refused access ({java.name}). Check that the path is "
                "right, which credentials Spark has for it, and their rights to list, read and "
                "write there. The lake stands at its last publication."
            )
        if _THROTTLED.match(java):
            return TransientError(
                f"The storage of '{root}' takes no more requests for now ({java.name}). The lake "
                "stands at its last publication; run again, or raise the storage's limits."
            )
        if _AWAY.match(java):
            return UnavailableError(
                f"The storage of '{root}' cannot be reached ({java.name}). Check its address, and "
                "that it answers from here. The lake stands at its last publication; run again."
            )
        if _LISTED_WITH_A_GAP.match(java):
            return TransientError(
                f"The log of a Delta table below '{root}' was listed without entry "
                f"{_first_gap(java.text)}, and with later ones. If a program is writing the table, "
                "run again. If that entry is missing for good, see guide page 'operations'."
            )
        if _BELOW_A_FILE.match(java):
            return ConfigError(
                f"A part of the path '{root}' is a file, so no folder can be made there. Correct "
                "the path."
            )
        if _NO_FILE_SYSTEM.match(java):
            return ConfigError(
                f"Spark has no file system for '{root}' ({java.name}). Correct the path, or bring "
                "the jars that read it, for s3a hadoop-aws of Spark's Hadoop version: in "
                "spark.jars.packages of spark-defaults.conf or of lakeingest.session(extra=…)."
            )
    return None


def _first_gap(text: str) -> int | str:
    """Return the first version that a list of versions lacks (``Versions (4, 5, 7) are not …``)."""
    versions = sorted(map(int, re.findall(r"\d+", text.partition(")")[0])))
    gaps = (version + 1 for version, later in pairwise(versions) if later > version + 1)
    return next(gaps, "of a version")


def _is_refusal(java: JavaError, roots: Iterable[str]) -> bool:
    name, denied = _REFUSED_FILE
    if name in java.classes:
        return denied in java.text and any(_names_path(java, root) for root in roots)
    return _REFUSED.match(java)


def _names_path(java: JavaError, root: str) -> bool:
    """Return whether a message begins with a path in ``root``; Java omits the scheme of a file."""
    parts = urlsplit(root)
    if parts.scheme not in ("", "file"):
        return root in java.text
    whole = Path(parts.path).absolute()
    return java.text.startswith((f"{whole}/", f"{whole} ("))
