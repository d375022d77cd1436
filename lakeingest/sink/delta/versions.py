"""Write a batch as one version of a table per source transaction: files first, then the versions.

The changeset has a payload for each key and transaction (``END``), which holds the changes of the
batch up to that transaction. So each payload is merged with the row from before the batch, by the
same law as ever and all in one join, and gives the row as its transaction leaves it. The new rows
are written before the first version, in the order of the transactions. What each version hides and
shows are numbers of rows (``row_steps.py``), and only these come to the driver.

Rejected: one MERGE per transaction. It takes a second, whatever the transaction changes (measured).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.commit_note import CommitNote
from lakeingest.engine.delta.deletion_vectors import FILE_PATH, ROW_INDEX, with_places
from lakeingest.engine.delta.files import DataFile, file_name
from lakeingest.engine.delta.versions import FILE_ROWS, Joining, NewVersion, VersionsTransaction
from lakeingest.engine.few_rows import for_few_rows, to_join
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.errors import InvariantError
from lakeingest.frame_schemas import END, OURS
from lakeingest.named import all_named
from lakeingest.sink.contract import Changeset
from lakeingest.sink.delta.key_range import key_range
from lakeingest.sink.delta.maintenance import MANY_FILES
from lakeingest.sink.delta.row_steps import RowStep, file_steps, only_insert, rows_per_transaction
from lakeingest.sink.merge_join import (
    OUTCOME,
    REMOVED,
    UNCHANGED,
    decided_inserts,
    decided_rows,
    unmatched,
)
from lakeingest.sink.merge_law import MergeLaw, source, target

_NUMBER, _IMAGE, _REPLACED = f"{OURS}number", f"{OURS}image", f"{OURS}replaced"


@dataclass(frozen=True)
class TransactionVersions:
    """The versions of one table for one changeset.

    Attributes:
        transaction: Transaction on the version before them.
        files: All data files of that version.
        changeset: The payloads, few enough to broadcast, checkpointed.
        law: Their merge law.
        joining_note: Note of a commit that only joins files.
    """

    transaction: VersionsTransaction
    files: Sequence[DataFile]
    changeset: Changeset
    law: MergeLaw
    joining_note: str

    def commit(
        self,
        notes: Sequence[CommitNote],
        before: CommitNote,
        before_commit: Callable[[int], None],
    ) -> tuple[Mapping[int, CommitNote], int]:
        """Commit a version for each transaction that changes the table.

        Args:
            notes: Notes of the batch's transactions, in their order.
            before: The table's note before the batch.
            before_commit: See ``Sink.apply_each``.

        Returns:
            The notes that were committed, by version; and the number of commits, which may be one
            more. Then the last note is that of the version behind its own, which has the same rows.

        Raises:
            VersionTakenError: Another writer has changed the table. The versions before that stay.
        """
        rows = self._numbered()
        steps_of_rows = self._row_steps(rows)
        images = rows.where(F.col(_IMAGE).isNotNull())
        inserts = only_insert(steps_of_rows)
        new_files = self._write(images, rows_per_transaction(steps_of_rows), apart=inserts)
        steps = file_steps(steps_of_rows, _sizes(new_files, steps_of_rows))
        written = [note for note in notes if note.end_offset in steps]
        if len(written) < len(steps):
            message = "a row belongs to no transaction of the batch"
            raise InvariantError(message)
        if not written:
            return {}, 0
        changed = {name for files in steps.values() for name in files}
        joining = None
        if inserts and len(new_files) >= MANY_FILES:
            joining = Joining(self.joining_note, self._write_rows(images, FILE_ROWS))
        # A table that is ahead keeps its progress. Only behind the last version all is applied: for
        # a run that goes on before it, the batch's new schema is still to come.
        stored = [replace(note.not_before(before), schema=before.schema) for note in written]
        high = max(stored[-1].high, self.changeset.high)
        stored[-1] = replace(stored[-1], high=high, schema=written[-1].schema)
        numbers = self.transaction.commit_each(
            [
                NewVersion(note.token, note.to_json(), steps[own.end_offset])
                for own, note in zip(written, stored, strict=True)
            ],
            [file for file in self.files if file.name in changed],
            new_files,
            before_commit,
            joining,
        )
        of_notes = [*numbers[: len(stored) - 1], numbers[-1]]
        return dict(zip(of_notes, stored, strict=True)), len(numbers)

    def _numbered(self) -> DataFrame:
        """Return the rows as each transaction leaves them, in the order of writing."""
        changed = self._decided().where(F.col(OUTCOME) != UNCHANGED)
        gone = F.col(OUTCOME) == REMOVED
        in_order = changed.coalesce(1).sortWithinPartitions(
            gone, END, *all_named(self.changeset.key)
        )
        numbered = in_order.withColumn(_NUMBER, F.monotonically_increasing_id())
        return local_checkpoint(numbered.withColumn(_IMAGE, F.when(~gone, F.col(_NUMBER))))

    def _decided(self) -> DataFrame:
        """Return the payloads merged with the rows before the batch, with outcome and place."""
        matched = self._matched()
        new = unmatched(self.changeset, matched)
        path, index = F.lit(None).cast("string"), F.lit(None).cast("bigint")
        more = path.alias(FILE_PATH), index.alias(ROW_INDEX), source(END)
        return matched.unionByName(decided_inserts(new, self.law, more))

    def _matched(self) -> DataFrame:
        changeset = self.changeset
        range_ = key_range(changeset, self.law.schema)
        reached = range_.files(self.files)
        more = target(FILE_PATH), target(ROW_INDEX), source(END)
        among = sum(file.rows or 0 for file in reached)
        rows = range_.rows(with_places(self.transaction.read(reached)))
        rows = for_few_rows(rows, among, sum(file.size for file in reached))
        payloads = to_join(changeset.frame, rows)
        matched = decided_rows(rows, payloads, self.law, more=more)
        return local_checkpoint(for_few_rows(matched, changeset.rows, changeset.size, among))

    def _write(
        self, images: DataFrame, numbers: Mapping[int, int], *, apart: bool
    ) -> list[DataFile]:
        """Write the new rows; return their files in the rows' order.

        Where all transactions only insert, each gets a file of its own: its version adds that file
        and nothing else, so that streams can read the table.

        Args:
            images: The rows.
            numbers: Number of rows of each transaction, by its END, in the order of the ENDs.
            apart: Whether each transaction gets files of its own.
        """
        if not numbers:
            return []
        if not apart:
            return self._write_rows(images, FILE_ROWS)
        file_of: dict[int, DataFile] = {}
        for number in sorted({*numbers.values()}):
            ends = [end for end in numbers if numbers[end] == number]
            # Each of two tasks writes a half.
            halves = ends[: len(ends) // 2], ends[len(ends) // 2 :]
            first, second = (images.where(F.col(END).isin(half)) for half in halves)
            files = self._write_rows(first.union(second), number)
            if [file.rows for file in files] != [number] * len(ends):
                message = "the new files do not hold the rows of a transaction each"
                raise InvariantError(message)
            file_of |= zip(ends, files, strict=True)
        return [file_of[end] for end in numbers]

    def _write_rows(self, images: DataFrame, rows_per_file: int) -> list[DataFile]:
        rows = images.select(*all_named(self.law.schema.fieldNames()))
        return list(self.transaction.write_small_files(rows, rows_per_file))

    def _row_steps(self, rows: DataFrame) -> list[RowStep]:
        """Bring to the driver what each transaction does to the places of rows, and no value."""
        # Another writer may have appended a key again (``foreign.changes=accept``).
        key = all_named(self.changeset.key)
        of_row = Window.partitionBy(*key, F.col(FILE_PATH), F.col(ROW_INDEX)).orderBy(END)
        is_first = F.lag(END).over(of_row).isNull()
        steps = rows.select(
            END,
            _IMAGE,
            F.lag(_IMAGE).over(of_row).alias(_REPLACED),
            F.when(is_first, F.col(FILE_PATH)).alias(FILE_PATH),
            F.when(is_first, F.col(ROW_INDEX)).alias(ROW_INDEX),
        )
        # A delete of a row that was never there does nothing.
        has_effect = F.coalesce(F.col(_IMAGE), F.col(_REPLACED), F.col(ROW_INDEX)).isNotNull()
        return [_row_step(*row) for row in steps.where(has_effect).collect()]


def _row_step(
    end: int, image: int | None, replaced: int | None, path: str | None, index: int | None
) -> RowStep:
    return RowStep(end, image, replaced, None if path is None else file_name(path), index)


def _sizes(files: Sequence[DataFile], steps: Sequence[RowStep]) -> list[tuple[str, int]]:
    """Return name and number of rows of each new file.

    Raises:
        InvariantError: They do not hold the rows that were to be written.
    """
    sizes = [(file.name, file.rows or 0) for file in files]
    images = sum(step.image is not None for step in steps)
    if sum(size for _, size in sizes) != images:
        message = "the new files do not hold the rows of the batch"
        raise InvariantError(message)
    return sizes
