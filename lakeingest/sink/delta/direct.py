"""Small commits through a transaction of our own, where the table and the engine allow it.

Fencing is the contract's (``sink/contract.py``): the newest note must be older than ours when the
transaction begins, and what a rival commits after that makes it fail.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakeingest.engine.delta_transaction import DataFile, DeltaTransaction, available
from lakeingest.sink.contract import Changeset, CommitNote, TableState
from lakeingest.sink.delta.commit import application, newest_note, rivals_fence
from lakeingest.sink.delta.rewrite import Rewrite
from lakeingest.sink.merge_law import SMALL_BYTES, MergeLaw
from lakeingest.sink.progress import overtaken

_Files = tuple[DataFile, ...]


class DirectCommits:
    """Commits of one sink; each table is written by one thread at a time."""

    def __init__(self, spark: SparkSession, *, wanted: bool) -> None:
        """Bind to a session.

        Args:
            spark: Session with Delta.
            wanted: Whether to use them where they can be.
        """
        self._spark = spark
        self._usable = wanted and available(spark)

    def nothing(self, path: str, note: CommitNote) -> TableState | None:
        """Commit ``note`` alone; null where that cannot be done here.

        Raises:
            FencedError: A later writer has the table.
        """
        return self._commit(path, note, None, lambda _: ((), ()))

    def append(
        self, path: str, rows: DataFrame, note: CommitNote, previous: TableState
    ) -> TableState | None:
        """Append rows that have the table's schema; null where that cannot be done here.

        Raises:
            FencedError: A later writer has the table, or commits meanwhile.
        """
        return self._commit(path, note, previous, lambda opened: (opened.write(rows), ()))

    def apply(
        self,
        path: str,
        changeset: Changeset,
        note: CommitNote,
        previous: TableState,
        law_of: Callable[[set[str]], MergeLaw],
        schema: StructType | None = None,
    ) -> TableState | None:
        """Land a changeset without truncate; null where that cannot be done here.

        Args:
            path: The table.
            changeset: What to merge; its columns fit the table, or ``schema``.
            note: Goes with the commit.
            previous: The table's state as far as it is known.
            law_of: The merge law, given the table's columns.
            schema: The table's schema with new columns, which it gets in the same commit.

        Raises:
            FencedError: A later writer has the table, or commits meanwhile.
        """
        if changeset.size > SMALL_BYTES or changeset.floor:
            return None

        def rewrite(transaction: DeltaTransaction) -> tuple[_Files, _Files] | None:
            files = transaction.files()
            if files is None:
                return None
            if schema is not None:
                transaction.evolve(schema)
            shape = schema or transaction.schema
            law = law_of(set(shape.fieldNames()))
            rewrite = Rewrite(transaction, files, changeset, law, shape)
            return rewrite.write(partial=note.partial_rows)

        return self._commit(path, note, previous, rewrite)

    def _commit(
        self,
        path: str,
        note: CommitNote,
        previous: TableState | None,
        write: Callable[[DeltaTransaction], tuple[_Files, _Files] | None],
    ) -> TableState | None:
        if not self._usable:
            return None
        transaction = DeltaTransaction(self._spark, path, application(note.pipeline))
        if not transaction.plain:
            return None
        if previous is None or previous.version != transaction.version:
            version, found = newest_note(self._spark, path)
            if found is None:
                return None
            previous = TableState(version, found)
        if previous.note.token >= note.token:
            if (previous.note.run, previous.note.token) == (note.run, note.token):
                return previous
            raise overtaken(note)
        with rivals_fence(self._spark, path, note):
            written = write(transaction)
            if written is None:
                return None
            added, removed = written
            version = transaction.commit(note.token, note.to_json(), added, removed)
        return TableState(version, note)
