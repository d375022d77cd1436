"""Change the schema of a Delta table, with the batch that brings the change.

When a type becomes wider, or a new column has a default for the present rows, every row changes
anyway. So the sink rewrites the table and merges the batch in one commit, because the table's
commit stores the progress. Rejected: a rewrite before the batch. After a crash between the two, the
rows have the default of a column that no transaction has added yet. Rejected: a rewrite after the
batch. After a crash, the rows lack the default, and nothing records that it is due. With one
commit, readers of the newest version also see a new column and its values at the same time.

A column without a default is only added to the table's schema: by the transaction of a small batch,
else by ``ALTER TABLE`` before the MERGE. This changes no row, and a crash between the two leaves a
column of NULLs. Rejected: MERGE with Delta's schema evolution. It is one commit in either case, but
it puts a new column behind the metadata columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql.types import StructField, StructType

from lakeingest.commit_note import CommitNote, schema_token
from lakeingest.engine.delta.local_disk import committing
from lakeingest.engine.delta.log import sql_name
from lakeingest.engine.own_session import own_session
from lakeingest.named import quoted
from lakeingest.sink.contract import Changeset, TableState
from lakeingest.sink.delta.commit import DeltaLakeTable
from lakeingest.sink.schema_change import SchemaChange


def rewrites(change: SchemaChange, changeset: Changeset) -> bool:
    """Return whether a schema change changes rows that the table has already."""
    return bool(change.widened or changeset.fills)


class SchemaAlteration:
    """``ALTER TABLE`` before a batch: it repeats the last progress and writes no data."""

    def __init__(self, table: DeltaLakeTable, note: CommitNote, previous: TableState) -> None:
        """Bind to a batch.

        Args:
            table: The table.
            note: Note of the batch's commit.
            previous: The table's state before the batch.
        """
        self._table = table
        self._note = replace(
            previous.note, token=schema_token(note.token), run=note.run, fences=True
        )

    def enable_local_time(self, change: SchemaChange, present: StructType) -> None:
        """Enable Delta's protocol feature for the table's first timestamp without time zone.

        Args:
            change: The change of the schema.
            present: Schema of the table.

        Raises:
            FencedError: A later writer has claimed the table.
        """
        if _has_local_time(change.added) and not _has_local_time(present):
            self._alter("SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')")

    def add_columns(self, added: Iterable[StructField], after: str) -> None:
        """Add columns that are NULL in all present rows.

        Args:
            added: The columns.
            after: Name of the column before them.

        Raises:
            FencedError: A later writer has claimed the table.
        """
        columns = []
        for item in added:
            kind = item.dataType.simpleString()
            columns.append(f"{quoted(item.name)} {kind} AFTER {quoted(after)}")
            after = item.name
        self._alter(f"ADD COLUMNS ({', '.join(columns)})")

    def _alter(self, action: str) -> None:
        # ALTER TABLE has no txnVersion. The empty commit before it fails if this writer is fenced.
        # If this writer stands still between the two, ``newest_note`` passes over the ALTER's note.
        self._table.append_nothing(self._note)
        metadata = {"spark.databricks.delta.commitInfo.userMetadata": self._note.to_json()}
        session = own_session(self._table.spark, metadata)
        with committing(session, self._table.path):
            session.sql(f"ALTER TABLE {sql_name(session, self._table.path)} {action}")


def _has_local_time(fields: Iterable[StructField]) -> bool:
    return any("timestamp_ntz" in item.dataType.simpleString() for item in fields)
