"""Write many deletion vectors into one file, one after another.

Adapter. Delta's own bitmaps and the store that writes them are used, so that no format is repeated.
``deletion_vectors.py`` writes one vector per file of a table, in a Spark job. Here a file has one
for each version, and each is the one before with a few rows more or less: that is the work of the
driver. Vectors are never written into the log itself: Delta's VACUUM cannot read such a log (3.3,
``VacuumCommand``).

Internal names, verified in 3.3.3 and used with 3.3 only (``delta_files.available``):
``RoaringBitmapArray``, ``RoaringBitmapArrayFormat``, ``DeletionVectorDescriptor``, and
``DeletionVectorStore`` (``createInstance``, ``generateFileNameInTable``, ``read``, ``createWriter``
and its ``write``).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any

_MOST_OCTETS = 1 << 30
"""Size after which a new file begins: Delta counts the octets of one as a 32-bit number."""

_MANY = 3
"""Rows in succession for which one loop of the JVM takes less time than a call for each."""

_PLACE = re.compile(r"-?\d+")
"""Each number of a printed ``DVRangeDescriptor``: offset, length and checksum."""

Vector = dict[str, object]
"""A vector as an entry of the log names it (``deletionVector``)."""


class HiddenRows:
    """The rows of one data file that are hidden, as a bitmap of the JVM that changes in place."""

    def __init__(self, bitmap: Any, number: int, loops: _Loops) -> None:
        """Bind to a bitmap of so many rows."""
        self.bitmap = bitmap
        self.number = number
        self._loops = loops
        self._steps: dict[str, Any] = {}
        self.write: Any = None
        """Function of the JVM that writes the bitmap; None: it was not written yet."""
        self.file = ""
        """Name of the file that it writes to."""

    @property
    def is_miscounted(self) -> bool:
        """Whether a row was hidden twice, or shown twice."""
        return self.number != int(self.bitmap.cardinality())

    def hide(self, rows: Iterable[int]) -> None:
        """Hide rows that are not hidden."""
        self.number += self._each("add", rows)

    def show(self, rows: Iterable[int]) -> None:
        """Show hidden rows."""
        self.number -= self._each("remove", rows)

    def _each(self, name: str, rows: Iterable[int]) -> int:
        """Call a function of the bitmap with each row; return how many these are."""
        count = 0
        for first, end in _ranges(rows):
            count += end - first
            if end - first < _MANY:
                for row in range(first, end):
                    getattr(self.bitmap, name)(row)
                continue
            if name not in self._steps:
                self._steps[name] = self._loops.step(self.bitmap, name)
            self._loops.range(first, end).forEach(self._steps[name])
        return count


class _Loops:
    """Loops of the JVM over rows in succession."""

    def __init__(self, jvm: Any) -> None:
        """Bind to a JVM."""
        self._kind = jvm.java.lang.Class.forName("java.util.function.LongConsumer")
        self._proxies = jvm.java.lang.invoke.MethodHandleProxies
        self._lookup = jvm.java.lang.invoke.MethodHandles.publicLookup()
        self.range = jvm.java.util.stream.LongStream.range
        """Returns the rows from one to before another."""

    def step(self, bitmap: Any, name: str) -> Any:
        """Return a function of a bitmap as a step of a loop."""
        function = self._lookup.unreflect(_method(bitmap.getClass(), name)).bindTo(bitmap)
        return self._proxies.asInterfaceInstance(self._kind, function)


class VectorFile:
    """A new file of deletion vectors of one table; a context manager, which closes it.

    The file is made with its first vector. Where vectors are large, others follow it.
    """

    def __init__(self, jvm: Any, log: Any) -> None:
        """Bind to a table.

        Args:
            jvm: View of the JVM.
            log: Delta's ``DeltaLog`` of the table.
        """
        delta = jvm.org.apache.spark.sql.delta
        stores = getattr(delta.storage.dv, "DeletionVectorStore$")
        formats = getattr(delta.deletionvectors, "RoaringBitmapArrayFormat$")
        self._jvm = jvm
        self._loops = _Loops(jvm)
        self._folder = log.dataPath()
        self._store = getattr(stores, "MODULE$").createInstance(log.newDeltaHadoopConf())
        self._format = jvm.java.util.ArrayList()
        self._format.add(getattr(formats, "MODULE$").Portable())
        self._writer: Any = None
        self._write: Any = None
        self._name = ""
        self.file_names: tuple[str, ...] = ()
        """Names of the files in the table's folder; empty before the first vector."""

    def none(self) -> HiddenRows:
        """Return that no row is hidden."""
        return self._hidden(self._bitmap(), 0)

    def all(self, rows: int) -> HiddenRows:
        """Return that all of so many rows are hidden."""
        bitmap = self._bitmap()
        bitmap.addRange(self._jvm.scala.collection.immutable.Range(0, rows, 1))
        return self._hidden(bitmap, rows)

    def stored(self, descriptor: Any) -> HiddenRows:
        """Return the rows that a vector hides, given Delta's ``DeletionVectorDescriptor``."""
        bitmap = self._store.read(descriptor, self._folder)
        return self._hidden(bitmap, int(descriptor.cardinality()))

    def write(self, hidden: HiddenRows) -> Vector:
        """Write a vector of these rows, of which there is at least one."""
        if self._writer is None:
            self._open(hidden.bitmap)
        if hidden.write is None or hidden.file != self._name:
            hidden.write, hidden.file = self._write.bindTo(hidden.bitmap), self._name
        text = hidden.write.invokeWithArguments(self._format)
        offset, length, _checksum = map(int, _PLACE.findall(text))
        if offset + length > _MOST_OCTETS:
            self._close()
        return {
            "storageType": "u",
            "pathOrInlineDv": hidden.file,
            "offset": offset,
            "sizeInBytes": length,
            "cardinality": hidden.number,
        }

    def __enter__(self) -> VectorFile:
        """Return the file itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open(self, bitmap: Any) -> None:
        """Make the file, and the function that writes a bitmap's octets into it.

        The function is composed in the JVM. The octets would come here and go back, and to bring
        more than 8 KB takes 44 ms (measured). It returns their place as text, in the same call.
        """
        delta = self._jvm.org.apache.spark.sql.delta
        descriptors = getattr(getattr(delta.actions, "DeletionVectorDescriptor$"), "MODULE$")
        id_, no_prefix = self._jvm.java.util.UUID.fromString(str(uuid.uuid4())), ""
        self._name = descriptors.encodeUUID(id_, no_prefix)
        folder = self._store.pathWithFileSystem(self._folder)
        path = self._store.generateFileNameInTable(folder, id_, no_prefix)
        self.file_names += (str(path.path().getName()),)
        self._writer = self._store.createWriter(path)
        handles = self._jvm.java.lang.invoke.MethodHandles
        lookup = handles.publicLookup()
        serialise = lookup.unreflect(_method(bitmap.getClass(), "serializeAsByteArray"))
        [kind] = self._writer.getClass().getInterfaces()
        write = lookup.unreflect(_method(kind, "write")).bindTo(self._writer)
        place = lookup.unreflect(_method(write.type().returnType(), "toString"))
        self._write = handles.filterReturnValue(handles.filterReturnValue(serialise, write), place)

    def _hidden(self, bitmap: Any, number: int) -> HiddenRows:
        return HiddenRows(bitmap, number, self._loops)

    def _bitmap(self) -> Any:
        return self._jvm.org.apache.spark.sql.delta.deletionvectors.RoaringBitmapArray()


def _ranges(rows: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Return the ranges of rows in succession: the first row, and the one after the last."""
    first = end = -1
    for row in rows:
        if row != end:
            if end > first:
                yield first, end
            first = row
        end = row + 1
    if end > first:
        yield first, end


def _method(class_: Any, name: str) -> Any:
    """Return a public method of a class of the JVM, which has one of that name."""
    return next(method for method in class_.getMethods() if method.getName() == name)
