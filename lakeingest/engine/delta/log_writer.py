"""Write whole entries of a Delta log, each only if no other writer has made its version.

Adapter. ``OptimisticTransaction.commit`` takes a tenth of a second, and the log store half of that
on a local disk (measured), which is more than all else where each source transaction has a version
of its own. On a local disk, an entry is a file that is written under another name and then linked:
a link fails where the target exists, and a reader never sees a part. Elsewhere the path's own log
store writes, by one conditional write per entry.

The disk has each entry, and before the first one the files that it names: after a power failure no
entry is empty, and none names a file that is lost. (That takes 0.3 ms per entry, measured.) An
object store promises the same for each write.

Delta's own writers look whether a version is free and then rename their file to it, which replaces
one that was made meanwhile (``local_disk.py``). So each entry is looked at once more before the
next one: then nothing is behind it yet, and the rest is planned anew.

Rejected: to open the target for exclusive creation and write into it. A reader, or a crash, meets
half an entry.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakeingest.engine.delta.local_disk import local_folder
from lakeingest.engine.delta.log import commit_file, commit_name
from lakeingest.engine.delta.log_store import log_store_of, renames_locally

_EXISTS = "FileAlreadyExistsException"


class VersionTakenError(Exception):
    """Another writer has made the version."""


class VersionReplacedError(Exception):
    """Another writer has replaced the newest entry, and nothing is behind it."""


class LogBrokenError(Exception):
    """Another writer has replaced an entry that has others behind it.

    Attributes:
        version: Version of the entry.
    """

    def __init__(self, version: int) -> None:
        """Name the version."""
        super().__init__(str(version))
        self.version = version


class EntryWriter(Protocol):
    """Writes entries of one log."""

    def write(self, version: int, lines: list[str]) -> None:
        """Write an entry, given its version and its lines.

        Raises:
            VersionTakenError: The version exists.
            VersionReplacedError, LogBrokenError: See ``check``.
        """

    def check(self) -> None:
        """Check that the entries are there.

        Raises:
            VersionReplacedError: The last one is not.
            LogBrokenError: One before it is not.
        """


def entry_writer(spark: SparkSession, log: Any) -> EntryWriter:
    """Return the writer of a log's entries.

    Args:
        spark: Session with Delta.
        log: Delta's ``DeltaLog`` of the table.
    """
    store = _StoreWriter(spark, log)
    if renames_locally(*log_store_of(spark, str(log.dataPath()))):
        return _LocalWriter(Path(log.logPath().toUri().getPath()), store)
    return store


class _LocalWriter:
    """Writes entries on a local disk, where another writer's rename may replace them."""

    def __init__(self, folder: Path, store: EntryWriter) -> None:
        self._folder = folder
        self._store = store
        self._written: dict[int, tuple[Path, int]] = {}
        """File and inode of each entry, by its version."""

    def write(self, version: int, lines: list[str]) -> None:
        """Write an entry; see ``EntryWriter``."""
        target = self._folder / commit_name(version)
        # Delta's log stores name their temporary files in the same way, and readers ignore them.
        whole = self._folder / f".{target.name}.{uuid.uuid4()}.tmp"
        try:
            whole.write_text("\n".join(lines) + "\n", encoding="utf-8")
            _sync(whole)
            if self._written and self._is_replaced(next(reversed(self._written))):
                self.check()
            os.link(whole, target)
            inode = target.stat().st_ino
            # Some network file systems number a file anew under each name.
            if inode == whole.stat().st_ino:
                self._written[version] = target, inode
        except FileExistsError as error:
            raise VersionTakenError(str(version)) from error
        except OSError:  # The file system has no links.
            self._store.write(version, lines)
        finally:
            whole.unlink(missing_ok=True)

    def check(self) -> None:
        """Check that the entries are there; see ``EntryWriter``."""
        for version in filter(self._is_replaced, self._written):
            if version == next(reversed(self._written)):
                raise VersionReplacedError(str(version))
            raise LogBrokenError(version)

    def _is_replaced(self, version: int) -> bool:
        path, inode = self._written[version]
        try:
            return path.stat().st_ino != inode
        except FileNotFoundError:
            return True
        except OSError:  # A network file system that is away.
            return False


def sync_files(log: Any, paths: Iterable[str]) -> None:
    """Let the disk have data files, where the table is on a local disk.

    Args:
        log: Delta's ``DeltaLog`` of the table.
        paths: Their paths in its folder.
    """
    folder = local_folder(log)
    if folder is not None:
        files = [folder / path for path in paths]
        for path in (*files, *{file.parent for file in files}):
            _sync(path)


def sync_log(log: Any) -> None:
    """Let the disk have the entries of a log, where it is on a local disk."""
    if local_folder(log) is not None:
        _sync(Path(log.logPath().toUri().getPath()))


def _sync(path: Path) -> None:
    # Windows opens no folder, and some network file systems cannot do it for one.
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _StoreWriter:
    """Writes entries through the log store of the path."""

    def __init__(self, spark: SparkSession, log: Any) -> None:
        session: Any = spark
        self._jvm = session._jvm  # noqa: SLF001 - this is the adapter
        self._log = log
        state = session._jsparkSession.sessionState()  # noqa: SLF001
        self._configuration = state.newHadoopConf()

    def write(self, version: int, lines: list[str]) -> None:
        """Write an entry; see ``EntryWriter``."""
        path = commit_file(self._jvm, self._log.logPath(), version)
        buffer = self._jvm.scala.collection.mutable.ArrayBuffer()
        for line in lines:
            getattr(buffer, "$plus$eq")(line)
        overwrites = False
        try:
            self._log.store().write(path, buffer.iterator(), overwrites, self._configuration)
        except Py4JJavaError as error:
            if _EXISTS in error.java_exception.getClass().getName():
                raise VersionTakenError(str(version)) from error
            raise

    def check(self) -> None:
        """Do nothing: the storage refuses to replace an entry."""
