"""Write whole entries of a Delta log, each only if no other writer has made its version.

Adapter. ``OptimisticTransaction.commit`` takes a tenth of a second, and the log store half of that
on a local disk (measured), which is more than all else where each source transaction has a version
of its own. On a local disk, an entry is a file that is written under another name and then linked:
a link fails where the target exists, and a reader never sees a part. Elsewhere the path's own log
store writes, by one conditional write per entry.

The disk has each entry, and before the first one the files that it names: after a power failure no
entry is empty, and none names a file that is lost. (That takes 0.3 ms per entry, measured.) An
object store promises the same for each write.

Rejected: to open the target for exclusive creation and write into it. A reader, or a crash, meets
half an entry.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from lakeingest.engine.local_disk import local_folder
from lakeingest.engine.log_store import log_store_of, renames_locally

_EXISTS = "FileAlreadyExistsException"


class VersionTakenError(Exception):
    """Another writer has made the version."""


def entry_writer(spark: SparkSession, log: Any) -> Callable[[int, list[str]], None]:
    """Return a function that writes an entry, given its version and its lines.

    It raises ``VersionTakenError`` where the version exists.

    Args:
        spark: Session with Delta.
        log: Delta's ``DeltaLog`` of the table.
    """
    place = log.logPath().toUri()
    store = _store_writer(spark, log)
    if renames_locally(*log_store_of(spark, str(log.dataPath()))):
        return _local_writer(Path(place.getPath()), store)
    return store


def _local_writer(
    folder: Path, store: Callable[[int, list[str]], None]
) -> Callable[[int, list[str]], None]:
    def write(version: int, lines: list[str]) -> None:
        target = folder / f"{version:020d}.json"
        # Delta's log stores name their temporary files in the same way, and readers ignore them.
        whole = folder / f".{target.name}.{uuid.uuid4()}.tmp"
        try:
            whole.write_text("\n".join(lines) + "\n", encoding="utf-8")
            _sync(whole)
            os.link(whole, target)
        except FileExistsError as error:
            raise VersionTakenError(str(version)) from error
        except OSError:  # The file system has no links.
            store(version, lines)
        finally:
            whole.unlink(missing_ok=True)

    return write


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


def _store_writer(spark: SparkSession, log: Any) -> Callable[[int, list[str]], None]:
    session: Any = spark
    jvm = session._jvm  # noqa: SLF001 - this is the adapter
    configuration = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001

    def write(version: int, lines: list[str]) -> None:
        path = jvm.org.apache.hadoop.fs.Path(log.logPath(), f"{version:020d}.json")
        buffer = jvm.scala.collection.mutable.ArrayBuffer()
        for line in lines:
            getattr(buffer, "$plus$eq")(line)
        overwrites = False
        try:
            log.store().write(path, buffer.iterator(), overwrites, configuration)
        except Py4JJavaError as error:
            if _EXISTS in error.java_exception.getClass().getName():
                raise VersionTakenError(str(version)) from error
            raise

    return write
