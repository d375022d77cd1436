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

from lakeingest.engine.delta_log import commit_file
from lakeingest.engine.local_disk import local_folder
from lakeingest.engine.log_store import log_store_of, renames_locally
from lakeingest.errors import DataError

_EXISTS = "FileAlreadyExistsException"


class VersionTakenError(Exception):
    """Another writer has made the version."""


class VersionReplacedError(Exception):
    """Another writer has replaced the newest entry, whose version it took for free."""


class EntryWriter(Protocol):
    """Writes entries of one log."""

    def write(self, version: int, lines: list[str]) -> None:
        """Write an entry, given its version and its lines.

        Raises:
            VersionTakenError: The version exists.
            VersionReplacedError: The entry before it is not there any more.
        """

    def check(self) -> None:
        """Check that the entries are there.

        Raises:
            VersionReplacedError: The last one is not.
            DataError: One before it is not.
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
        self._written: dict[Path, int] = {}
        """Inode of each entry."""

    def write(self, version: int, lines: list[str]) -> None:
        """Write an entry; see ``EntryWriter``."""
        for last in [*self._written][-1:]:
            if self._is_replaced(last):
                raise VersionReplacedError(last.name)
        target = self._folder / f"{version:020d}.json"
        # Delta's log stores name their temporary files in the same way, and readers ignore them.
        whole = self._folder / f".{target.name}.{uuid.uuid4()}.tmp"
        try:
            whole.write_text("\n".join(lines) + "\n", encoding="utf-8")
            _sync(whole)
            os.link(whole, target)
            self._written[target] = whole.stat().st_ino
        except FileExistsError as error:
            raise VersionTakenError(str(version)) from error
        except OSError:  # The file system has no links.
            self._store.write(version, lines)
        finally:
            whole.unlink(missing_ok=True)

    def check(self) -> None:
        """Check that the entries are there; see ``EntryWriter``."""
        replaced = [path for path in self._written if self._is_replaced(path)]
        if replaced and replaced == [*self._written][-1:]:
            raise VersionReplacedError(replaced[0].name)
        if replaced:
            message = (
                f"Another writer replaced {replaced[0].name} in {self._folder} while lakeingest "
                "wrote the entries behind it, so rows of the table may be there twice. A local "
                "disk lets it. Let nothing else write this table meanwhile, and load it anew: "
                "retire it (lakeingest retire), then take a snapshot of it."
            )
            raise DataError(message)

    def _is_replaced(self, path: Path) -> bool:
        try:
            return path.stat().st_ino != self._written[path]
        except FileNotFoundError:
            return True


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
