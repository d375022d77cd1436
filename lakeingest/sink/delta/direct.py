"""Make small commits through a Delta transaction, where table and engine allow it.

Fencing follows the contract (``sink/contract.py``): when the transaction begins, the newest note in
the log must be older than the commit's note. A rival's later commit makes the transaction fail.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakeingest.commit_note import CommitNote
from lakeingest.engine.delta_transaction import DataFile, DeltaTransaction, available
from lakeingest.sink.contract import Changeset, TableState
from lakeingest.sink.delta.commit import application, newest_note, rivals_fence
from lakeingest.sink.delta.rewrite import Rewrite
from lakeingest.sink.merge_law import SMALL_BYTES, MergeLaw
from lakeingest.sink.progress import overtaken

_Files = tuple[DataFile, ...]


class DirectCommits:
    """Direct commits of one sink. Only one thread at a time may write a table."""

    def __init__(self, spark: SparkSession, *, wanted: bool) -> None:
        """Bind to a session.

        Args:
            spark: Session with Delta.
            wanted: Whether to make direct commits where this is possible.
        """
        self._spark = spark
        self._available = wanted and available(spark)

    def nothing(self, path: str, note: CommitNote) -> TableState | None:
        """Commit ``note`` without any rows.

        Returns:
            The table's state; None: a direct commit is not possible.

        Raises:
            FencedError: A later writer has claimed the table.
        """
        return self._commit(path, note, None, lambda _: ((), ()))

    def append(
        self, path: str, rows: DataFrame, note: CommitNote, previous: TableState
    ) -> TableState | None:
        """Append rows that have the table's schema.

        Args:
            path: Path of the table.
            rows: Rows to append.
            note: Note of the commit.
            previous: The table's state that this writer knows.

        Returns:
            The table's state; None: a direct commit is not possible.

        Raises:
            FencedError: A later writer has claimed the table, or commits meanwhile.
        """
        return self._commit(path, note, previous, lambda transaction: (transaction.write(rows), ()))

    def apply(
        self,
        path: str,
        changeset: Changeset,
        note: CommitNote,
        previous: TableState,
        law_of: Callable[[set[str]], MergeLaw],
        schema: StructType | None = None,
    ) -> TableState | None:
        """Write a changeset without truncate.

        Args:
            path: Path of the table.
            changeset: Payloads to merge; their columns fit the table, or ``schema``.
            note: Note of the commit.
            previous: The table's state that this writer knows.
            law_of: Returns the merge law for the table's column names.
            schema: The table's new schema, with new columns, to set in the same commit; None: the
                schema stays.

        Returns:
            The table's state; None: a direct commit is not possible.

        Raises:
            FencedError: A later writer has claimed the table, or commits meanwhile.
        """
        if changeset.size > SMALL_BYTES or changeset.floor:
            return None

        def rewrite(transaction: DeltaTransaction) -> tuple[_Files, _Files] | None:
            files = transaction.files()
            if files is None:
                return None
            if schema is not None:
                transaction.evolve(schema)
            table_schema = schema or transaction.schema
            law = law_of(set(table_schema.fieldNames()))
            rewrite = Rewrite(transaction, files, changeset, law, table_schema)
            return rewrite.write(partial=note.partial_rows)

        return self._commit(path, note, previous, rewrite)

    def _commit(
        self,
        path: str,
        note: CommitNote,
        previous: TableState | None,
        write: Callable[[DeltaTransaction], tuple[_Files, _Files] | None],
    ) -> TableState | None:
        if not self._available:
            return None
        transaction = DeltaTransaction(self._spark, path, application(note.pipeline))
        if not transaction.plain:
            return None
        if previous is None or previous.version != transaction.version:
            version, newest = newest_note(self._spark, path)
            if newest is None:
                return None
            previous = TableState(version, newest)
        if previous.note.token >= note.token:
            if (previous.note.run, previous.note.token) == (note.run, note.token):
                return previous
            raise overtaken(note)
        with rivals_fence(self._spark, path, note):
            files = write(transaction)
            if files is None:
                return None
            added, removed = files
            version = transaction.commit(note.token, note.to_json(), added, removed)
        return TableState(version, note)
