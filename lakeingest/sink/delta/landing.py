"""Land a changeset in a large table: hide the rows that change, and write only the new rows.

One look-up joins the table with the payloads and applies the merge law to the rows that have one;
of the table it reads only the columns that the law asks for. Deletion vectors hide the rows that
the law changes or removes; changed and new rows are one new file. So a batch costs its own rows and
the look-up, and no rewrite of files of which it changes a row each.

Each commit adds a small file, and vectors fill up. So the commit that would leave too many small
files writes their rows again, together with its own; and likewise the one file that has most of its
rows hidden. Rejected: to leave all of that to maintenance. Reading would become slower from batch
to batch, and behind so many files that Delta lists none (``delta_files.py``), writing, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.engine.delta.deletion_vectors import FILE_PATH, ROW_INDEX, with_places
from lakeingest.engine.delta.files import DataFile, number_of_rows
from lakeingest.engine.delta.transaction import DeltaTransaction
from lakeingest.engine.few_rows import for_few_rows
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.named import all_named
from lakeingest.sink.contract import Changeset
from lakeingest.sink.delta.commit import FileChange
from lakeingest.sink.delta.key_range import KeyRange
from lakeingest.sink.merge_join import (
    OUTCOME,
    REMOVED,
    UNCHANGED,
    decided_rows,
    inserted_rows,
    unmatched,
)
from lakeingest.sink.merge_law import MergeLaw, target
from lakeingest.sink.schema_change import in_schema

LARGE_BYTES, LARGE_ROWS = 8 * 1024 * 1024, 200_000
"""Size in bytes, or number of rows, above which it costs more to write a table again.

The look-up and the vectors cost 0.7 s for a batch of 400 changes, to write 10,000 rows 0.4 s, and
1,000,000 rows 1.6 s (measured).
"""

SMALL_FILE = 8 * 1024 * 1024
"""Size in bytes up to which a file counts as small."""

SMALL_FILES = 16
"""Number of small files that a commit writes together into one."""

FILE_BYTES = 32 * 1024 * 1024
"""Bytes of old files per task; each task writes one new file."""

_MOST_HIDDEN = 0.3
"""Part of a file's rows that may be hidden."""


def pays(files: Sequence[DataFile]) -> bool:
    """Return whether a table is so large that hiding its rows costs less than to write it again.

    Args:
        files: All its data files.
    """
    rows = number_of_rows(files)
    if rows is None:
        # Delta hides no rows of a file whose statistics lack their number.
        return False
    return rows > LARGE_ROWS or sum(file.size for file in files) > LARGE_BYTES


def files_to_compact(files: Sequence[DataFile]) -> tuple[DataFile, ...]:
    """Return the files whose rows the next commit writes again: small ones, or one with few left.

    Args:
        files: All data files of a table (``DataFile.rows`` is known).
    """
    small = small_files(files)
    if small:
        return small
    fullest = max(files, key=_hidden_part, default=None)
    return (fullest,) if fullest is not None and _hidden_part(fullest) > _MOST_HIDDEN else ()


def small_files(files: Sequence[DataFile]) -> tuple[DataFile, ...]:
    """Return the small files that are to become one; nothing where they are few.

    None of them is larger than the smaller ones together, but for the smallest few. So a row is
    written again only as often as the number of rows beside it doubles.
    """
    small = sorted((file for file in files if file.size <= SMALL_FILE), key=lambda file: file.size)
    if len(small) < SMALL_FILES:
        return ()
    chosen, others = small[: SMALL_FILES // 2], small[SMALL_FILES // 2 :]
    for file in others:
        if file.size > sum(smaller.size for smaller in chosen):
            break
        chosen.append(file)
    return tuple(chosen)


def number_of_files(old: Sequence[DataFile], size: int = 0) -> int:
    """Return the number of files that a commit writes for ``old`` and ``size`` more bytes."""
    return 1 + (size + sum(file.size for file in old)) // FILE_BYTES


def _hidden_part(file: DataFile) -> float:
    return file.hidden_rows / file.rows if file.rows else 0.0


@dataclass(frozen=True)
class Landing:
    """The landing of one changeset in one version of a table.

    Attributes:
        transaction: Transaction on the version.
        files: All data files of the version; see ``pays``.
        reached: Those of them that may have rows in the range of the payloads' keys.
        range: That range.
        changeset: The payloads, few enough to broadcast, checkpointed.
        law: Their merge law.
    """

    transaction: DeltaTransaction
    files: Sequence[DataFile]
    reached: Sequence[DataFile]
    range: KeyRange
    changeset: Changeset
    law: MergeLaw

    def write(self) -> FileChange:
        """Write the new rows and the deletion vectors; return files to add and to remove."""
        compacted = files_to_compact(self.files)
        matched = self._matched()
        changed = matched.where(F.col(OUTCOME) != UNCHANGED)
        places, rows = changed.select(FILE_PATH, ROW_INDEX), self._new_rows(matched, changed)
        if compacted:
            in_compacted = F.substring_index(FILE_PATH, "/", -1).isin(
                [file.name for file in compacted]
            )
            own = F.broadcast(places.where(in_compacted))
            remainder = self._read(compacted).join(own, [FILE_PATH, ROW_INDEX], "left_anti")
            rows = remainder.drop(FILE_PATH, ROW_INDEX).unionByName(rows)
            places = places.where(~in_compacted)
        others = [file for file in self.reached if file not in compacted]
        hidden, replaced = self.transaction.hide(places, others) if others else ((), ())
        written = self.transaction.write(rows.coalesce(number_of_files(compacted, self._size)))
        return (*written, *hidden), (*replaced, *compacted)

    @property
    def _size(self) -> int:
        """Bytes of the rows that have a payload: the table's values may be larger than its."""
        rows = sum(file.rows or 0 for file in self.reached)
        octets = sum(file.size for file in self.reached)
        changeset = self.changeset
        return max(changeset.size, changeset.rows * octets // max(1, rows))

    def _matched(self) -> DataFrame:
        """Return the rows that have a payload, as the merge leaves them, with outcome and place."""
        changeset = self.changeset
        more = target(FILE_PATH), target(ROW_INDEX)
        rows, payloads = self.range.rows(self._read(self.reached)), F.broadcast(changeset.frame)
        matched = decided_rows(rows, payloads, self.law, more=more)
        among = sum(file.rows or 0 for file in self.reached)
        return local_checkpoint(for_few_rows(matched, changeset.rows, self._size, among))

    def _new_rows(self, matched: DataFrame, changed: DataFrame) -> DataFrame:
        """Return the changed rows, and the rows of payloads that had none."""
        new = unmatched(self.changeset, matched)
        updates = changed.where(F.col(OUTCOME) != REMOVED)
        columns = all_named(self.law.schema.fieldNames())
        return updates.select(*columns).unionByName(inserted_rows(new, self.law))

    def _read(self, files: Sequence[DataFile]) -> DataFrame:
        rows = with_places(self.transaction.read(files))
        if self.law.schema == self.transaction.schema:
            return rows
        return in_schema(rows, self.law.schema, self.changeset, (FILE_PATH, ROW_INDEX))
