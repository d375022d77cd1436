"""Write Delta tables: append when every key is new, else rewrite or MERGE, always in one commit.

Small changesets use direct commits (``rewrite.py``). When these are not possible, because of the
size, a truncate of a large table, a feature of the table or an engine with unknown internals, the
public API does the same.

A key look-up in the table decides whether every key is new. Inserts alone do not prove it: an
insert may be redelivered, and a reused key may have a tombstone. The look-up is limited to the
range of the keys, so that file statistics prune. It costs a fraction of the MERGE that it saves
(append 0.13 s, MERGE 0.7 s, measured).

``hard`` deletes remove the row; ``tombstones.py`` keeps its position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.commit_note import CommitNote, maintenance_note
from lakeingest.engine.delta.files import available, may_hide_rows
from lakeingest.engine.delta.log import TABLE_PROPERTIES
from lakeingest.engine.delta.transaction import DeltaTransaction
from lakeingest.engine.delta.versions import VersionsTransaction
from lakeingest.engine.in_turn import InTurn, as_help
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.folders import TOMBSTONES
from lakeingest.named import all_named, named
from lakeingest.sink.contract import Changeset, TableState, Upkeep
from lakeingest.sink.delta.commit import DeltaLakeTable, FileChange
from lakeingest.sink.delta.evolution import SchemaAlteration, rewrites
from lakeingest.sink.delta.maintenance import (
    expire,
    is_crowded,
    keep_newest,
    kept_since,
    ready_for_versions,
    tidy,
    tidy_tombstones,
)
from lakeingest.sink.delta.merge import merge
from lakeingest.sink.delta.rewrite import Rewrite
from lakeingest.sink.delta.versions import TransactionVersions
from lakeingest.sink.lake_sink import LakeSink
from lakeingest.sink.merge_join import SMALL_BYTES, inserted_rows, merged_rows, small
from lakeingest.sink.partition_types import refuse_types
from lakeingest.sink.progress import already_created_error
from lakeingest.sink.schema_change import SchemaChange, evolved_schema, in_schema, schema_change
from lakeingest.sink.settings import SinkSettings


class DeltaSink(LakeSink):
    """Delta tables of one lake, one per source collection."""

    _removes_rows = True

    def __init__(
        self,
        spark: SparkSession,
        settings: SinkSettings,
        *,
        direct: bool = True,
        deletion_vectors: bool = True,
    ) -> None:
        """Bind to a lake.

        Args:
            spark: Session with Delta's extension.
            settings: Settings of the pipeline.
            direct: Whether small changesets may use direct commits.
            deletion_vectors: Whether these may hide rows of large tables by deletion vectors.
        """
        super().__init__(spark, settings)
        self._checkpoints = InTurn("A checkpoint")
        self._direct = direct and available(spark)
        self._hides = self._direct and deletion_vectors

    def table(self, collection: str) -> DeltaLakeTable:
        """Return a collection's table, which need not exist."""
        return DeltaLakeTable(self._spark, self.path(collection), self._direct)

    def tombstones(self, collection: str) -> DeltaLakeTable:
        """Return the side table of a collection's tombstones, which need not exist."""
        table = self.table(collection)
        return replace(table, path=f"{table.path}{TOMBSTONES}")

    def _tidy(self, state: TableState, upkeep: Upkeep) -> None:
        collection = state.note.collection
        tidy(self.table(collection), state.note, upkeep, self.settings)
        side_table = self.tombstones(collection)
        if side_table.exists():
            tidy_tombstones(side_table, upkeep, self.settings)

    def is_crowded(self, collection: str) -> bool:
        """Return whether to tidy a table should not wait; see the contract."""
        return is_crowded(self.table(collection))

    def kept_since(self, collection: str) -> datetime:
        """Return since when a table has kept what its older versions need; see the contract."""
        return kept_since(self.table(collection), self.settings)

    def expire(self, collection: str, oldest: int, age: timedelta) -> None:
        """Remove the files that only older versions need; see the contract."""
        expire(self.table(collection), self.settings, age, oldest)
        side_table = self.tombstones(collection)
        if side_table.exists():
            expire(side_table, self.settings, age)

    def fence(self, state: TableState, writer: int, run: str) -> TableState:
        """Fence a table; of an idle one, too, the version stays that publications name."""
        note = state.note.fenced(writer, run, 0)
        keep_newest(self.table(note.collection), note, self.settings)
        return super().fence(state, writer, run)

    def finish(self) -> None:
        """Wait for checkpoints; see the contract."""
        self._checkpoints.finish()

    def _commit(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        table = self.table(note.collection)
        if previous is None:
            return self._create(table, changeset, note)
        keep_newest(table, note, self.settings)
        present = table.schema(previous.version)
        change = schema_change(note.collection, present, changeset.schema)
        alteration = SchemaAlteration(table, note, previous)
        alteration.enable_local_time(change, present)
        if rewrites(change, changeset):
            return self._rewrite(table, changeset, note, change)
        if changeset.size <= SMALL_BYTES:
            write = partial(self._write_files, changeset, note, change)
            direct_commit = table.commit_directly(note, previous, write)
            if direct_commit is not None:
                return direct_commit
        if change.added:
            *_, last = (item for item in present.names if item not in self.settings.names.names)
            alteration.add_columns(change.added, last)
        return self._append_or_merge(table, changeset, note, previous)

    def divides(self, collection: str) -> bool:
        """Return whether ``apply_each`` can write a table; see the contract."""
        table = self.table(collection)
        return self._hides and may_hide_rows(table.spark, table.path, begin=True)

    def _commit_each(
        self,
        changeset: Changeset,
        notes: Sequence[CommitNote],
        previous: TableState,
        before_commit: Callable[[int], None],
    ) -> tuple[Sequence[TableState], int]:
        table = self.table(previous.note.collection)
        keep_newest(table, notes[0], self.settings)
        with table.conflicts_explained(notes[-1]):
            ready_for_versions(table, notes[0], self.settings)
        due: list[VersionsTransaction] = []

        def write(transaction: VersionsTransaction) -> tuple[Mapping[int, CommitNote], int]:
            due.append(transaction)
            law = self._law(changeset, notes[-1], transaction.schema)
            files = transaction.all_files()
            joining_note = maintenance_note(self.settings.pipeline)
            versions = TransactionVersions(transaction, files, changeset, law, joining_note)
            return versions.commit(notes, previous.note, before_commit)

        states, commits = table.commit_each(previous, notes, write)
        if states:
            begin = partial(self._checkpoints.begin, table.path)
            as_help("A checkpoint", partial(due[0].checkpoint_if_due, begin))
        return states, commits

    def _create(self, table: DeltaLakeTable, changeset: Changeset, note: CommitNote) -> TableState:
        rows = inserted_rows(changeset.frame, self._law(changeset, note, changeset.schema))
        refuse_types(note.collection, rows.schema, changeset.partition)
        try:
            return table.save(rows, note, "errorifexists", changeset.partition, **TABLE_PROPERTIES)
        except AnalysisException as error:
            if not table.exists():
                raise
            raise already_created_error(note.collection) from error

    def _write_files(
        self,
        changeset: Changeset,
        note: CommitNote,
        change: SchemaChange,
        transaction: DeltaTransaction,
    ) -> FileChange | None:
        files = transaction.files()
        if files is None and transaction.appends_only:
            # A MERGE would rewrite files of rows that the connector sends again.
            files = transaction.all_files()
        if files is None:
            return None
        schema = transaction.schema
        if change.added:
            schema = evolved_schema(schema, change, self.settings.names)
            transaction.evolve(schema)
        law = self._law(changeset, note, schema)
        return Rewrite(transaction, files, changeset, law, self._hides).write()

    def _append_or_merge(
        self,
        table: DeltaLakeTable,
        changeset: Changeset,
        note: CommitNote,
        previous: TableState,
    ) -> TableState:
        changeset = replace(changeset, frame=local_checkpoint(changeset.frame))
        law = self._law(changeset, note, table.read().schema)
        if changeset.inserts_only and not changeset.floor and _has_only_new_keys(table, changeset):
            rows = inserted_rows(changeset.frame, law)
            direct_commit = table.commit_directly(note, previous, lambda t: (t.write(rows), ()))
            return direct_commit or table.append(rows, note)
        session = table.merge_session(note)
        builder = merge(DeltaTable.forPath(session, table.path), changeset, law)
        return table.commit(note, builder.execute)

    def _rewrite(
        self, table: DeltaLakeTable, changeset: Changeset, note: CommitNote, change: SchemaChange
    ) -> TableState:
        """Change the table's schema and merge the changeset in one commit (``evolution.py``)."""
        rows = table.read()
        schema = evolved_schema(rows.schema, change, self.settings.names)
        changeset = replace(changeset, frame=local_checkpoint(changeset.frame))
        law = self._law(changeset, note, schema)
        merged = merged_rows(in_schema(rows, schema, changeset), changeset.frame, law)
        # The overwrite replaces the partitioning, too.
        return table.save(merged, note, "overwrite", note.partition, overwriteSchema="true")


def _has_only_new_keys(table: DeltaLakeTable, changeset: Changeset) -> bool:
    keys = changeset.frame.select(*all_named(changeset.key))
    leading = named(changeset.key[0])
    span = keys.agg(F.min(leading).alias("low"), F.max(leading).alias("high")).first()
    rows = table.read()
    if span is not None and span["low"] is not None:
        rows = rows.where(leading.between(span["low"], span["high"]))
    keys_in_table = rows.select(*all_named(changeset.key))
    return keys_in_table.join(small(keys, changeset), list(changeset.key), "left_semi").isEmpty()
