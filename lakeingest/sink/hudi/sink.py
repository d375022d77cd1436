"""The Hudi sink: rows decided by the merge law, then one upsert, copy-on-write or merge-on-read.

Hudi's own merge is the second guard only (``EVENT_TIME_ORDERING`` on the position): it keeps the
newer of two rows, and no more is asked of it. What its Debezium payload does beyond that is not
used, because it brings deleted rows back, fills unavailable values of top-level strings only, and
differs between the two table types (measured). So a deleted row stays as a row with its position,
and where a column may be left out, or a table's row must be seen to decide, table and payloads are
joined by us, as on Delta (``rows.py``). Where every payload is a whole row, and none is late
for a row with columns of several positions, they go in as they are, and the table is not read.

``hard`` deletes are the same rows under a marker that lets Hudi drop them from its files;
``tombstones.py`` keeps their positions.

A new column or a wider type needs no commit before: Hudi takes it from the rows that are written.
Where it would read old rows' values otherwise than as they are in the wider type, all are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import FloatType, StructType

from lakeingest.engine.hudi_table import is_hudi_table
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.errors import FencedError
from lakeingest.folders import LakeFolders
from lakeingest.frame_schemas import FIRST_OP, LINK, MetadataColumns
from lakeingest.sink.contract import Changeset, CommitNote, TableState
from lakeingest.sink.foreign_files import refuse_files
from lakeingest.sink.hudi.adopted_table import refuse_new_log, soft_deletes
from lakeingest.sink.hudi.commit import HudiTable
from lakeingest.sink.hudi.options import HudiSettings, removed_for_good
from lakeingest.sink.hudi.partition import may_move, refuse_settings, unmoved
from lakeingest.sink.hudi.record_key import refuse_names, refuse_other_texts
from lakeingest.sink.hudi.rows import (
    decided_rows,
    decided_with_moves,
    whole_rows,
)
from lakeingest.sink.merge_law import MergeLaw
from lakeingest.sink.partition_types import kept_by_folders
from lakeingest.sink.progress import carried, created_by_another, owned, recalled
from lakeingest.sink.schema_change import SchemaChange, evolved_schema, schema_change
from lakeingest.sink.tombstones import SUFFIX as TOMBSTONES
from lakeingest.sink.tombstones import buried, buried_matters, without_buried

_INTERNAL = (FIRST_OP, LINK)
_FENCE_ATTEMPTS = 10


class HudiSink:
    """Hudi tables of one lake, one per source collection."""

    def __init__(
        self,
        spark: SparkSession,
        folders: LakeFolders,
        pipeline: str,
        names: MetadataColumns,
        *,
        hard: bool,
        null_missing: bool,
        settings: HudiSettings,
        foreign: bool = False,
        notes: Callable[[str], Sequence[str]] = lambda _: (),
    ) -> None:
        """Bind to a lake.

        Args:
            spark: Session with Hudi's extension.
            folders: Where the tables lie.
            pipeline: Name of the pipeline that owns them.
            names: Names of the metadata columns.
            hard: Whether a delete removes its row.
            null_missing: Whether a value that is nowhere to be found becomes NULL.
            settings: How tables are kept.
            foreign: Whether other writers may change rows.
            notes: Gives what the ledger has of a table's commits (``progress.recalled``).
        """
        self._spark = spark
        self._folders = folders
        self._pipeline = pipeline
        self._names = names
        self._hard = hard
        self._null_missing = null_missing
        self._settings = settings
        self._foreign = foreign
        self._notes = notes
        self._schemas: dict[str, tuple[int, StructType]] = {}
        self._adopted: dict[str, str] = {}

    def path(self, collection: str) -> str:
        """Return the table's folder."""
        return self._folders.table(collection)

    def state(self, collection: str, since: int | None = None) -> TableState | None:
        """Return version and progress; null when there is no table; see the contract.

        Raises:
            ConfigError: The folder holds a table that is not this pipeline's, or Hudi removes the
                rows from it that are to be marked.
            DataError: Somebody else changed rows after ``since``.
        """
        path = self.path(collection)
        version, note = self.table(collection).newest_note()
        if version is None:
            return None
        if note is not None and note.fences:
            # Archived; without any note of ours left, the table may be anybody's.
            note = recalled(note, self._notes(collection))
        note = owned(note, self._pipeline, collection, path, "Hudi")
        if note.adopted_at:
            if not self._hard:
                raise soft_deletes(collection)
            self.table(collection).refuse_streamed(collection)
        if not self._hard and self.table(collection).removes_deleted():
            raise removed_for_good(collection)
        self._adopted[collection] = note.adopted_at
        return self._ours(collection, TableState(version, note), since)

    def _ours(self, collection: str, now: TableState, since: int | None) -> TableState:
        """Return ``now``, if nobody else changed rows after ``since``.

        Raises:
            DataError: Somebody did.
        """
        if since is not None and now.version > since and not self._foreign:
            self.table(collection).refuse_foreign_change(collection, since)
        return now

    def refuse_foreign_files(self, collection: str) -> None:
        """Stop at a folder with data that no Hudi timeline explains (Parquet, Delta, Iceberg).

        And at tombstones beside it: only before the first claim, for later ones may be those of a
        first commit that was killed before the table's own.
        """
        if is_hudi_table(self._spark, self.path(collection)):
            return
        refuse_files(self._spark, self.path(collection), "Hudi")

    def read(self, collection: str, version: int | None = None) -> DataFrame:
        """Read the table, as of ``version`` or its head."""
        if collection not in self._adopted:
            self.state(collection)
        return self.table(collection).read(version)

    def fence(self, state: TableState, writer: int, run: str) -> TableState:
        """Commit the table's progress again under ``writer``; see the contract."""
        known = state.version
        for attempt in range(_FENCE_ATTEMPTS):
            note = state.note.fenced(writer, run, attempt)
            if self._hard and note.tombstones:
                bare = replace(note, partition=(), adopted_at="")
                self._tombstones(note.collection).write_nothing(bare)
            table = self.table(note.collection)
            table.write_nothing(note)
            version, found = table.newest_note()
            if version is None or found is None or (found.run, found.token) != (run, note.token):
                continue
            if found.same_progress(note):
                return self._ours(note.collection, TableState(version, found), known)
            state = TableState(version, found)
        message = f"Other runs keep writing to table '{state.note.collection}'; stop them first."
        raise FencedError(message)

    def apply(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        """Land the changeset in one commit (two tables for ``hard`` deletes, tombstones first)."""
        note = carried(note, changeset, previous, hard=self._hard)
        changeset = kept_by_folders(changeset)
        if note.adopted_at:
            refuse_new_log(note.collection, changeset.high, note.adopted_at)
            changeset = self._above(changeset, note.adopted_at)
        if self._hard:
            changeset = self._without_buried(changeset, note, previous)
            if changeset.deletes:
                changeset = replace(changeset, frame=local_checkpoint(changeset.frame))
                self._keep_tombstones(changeset, note)
        landed = self._land(changeset, note, previous)
        # Afterwards: whatever came between the look and the commit is behind ``previous``, too.
        return self._ours(note.collection, landed, previous.version if previous else None)

    def _land(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        table = self.table(note.collection)
        payloads = changeset.frame.drop(*_INTERNAL)
        refuse_names(note.collection, payloads.schema.fieldNames())
        given = self._settings.given
        refuse_settings(note.collection, payloads.schema, changeset, given)
        if previous is None:
            if is_hudi_table(self._spark, table.path) and table.newest_note()[0] is not None:
                raise created_by_another(note.collection)
            rows = whole_rows(changeset, self._law(changeset, payloads.schema), payloads.schema)
            moving = may_move(changeset.key, changeset.partition)
            return table.write(unmoved(rows) if moving else rows, note, None)
        present = self._schema(table, note.collection)
        change = schema_change(note.collection, present, payloads.schema)
        refuse_other_texts(note.collection, changeset.key, present, change)
        schema = evolved_schema(present, change, self._names)
        law = self._law(changeset, schema)
        absent = set(present.fieldNames()) - set(payloads.schema.fieldNames())
        by_column = note.partial_rows or bool(changeset.floor)
        # Every row gets the default of a new column, also those that have no payload.
        filled = bool(changeset.fills) or _read_as_text(present, change)
        if may_move(changeset.key, changeset.partition):
            rows = decided_with_moves(
                table.read(None),
                changeset,
                law,
                schema,
                self._names,
                partial=by_column,
                every=filled,
            )
        elif filled or absent or _decided_by_column(changeset, note, previous):
            rows = decided_rows(
                table.read(None), changeset, law, schema, partial=by_column, every=filled
            )
        else:
            rows = whole_rows(changeset, law, schema)
        state = table.write(rows, note, previous)
        if not (change.added or change.widened):
            self._schemas[note.collection] = (state.version, present)
        return state

    def _schema(self, table: HudiTable, collection: str) -> StructType:
        """Return the schema of the table's head.

        To open a table for its schema alone was a twentieth of a run in batches of 20,000 events
        (measured). So it is remembered where our own commit changed nothing of it, for as long as
        that commit is the newest one of anybody: what changes a schema is a commit, too.
        """
        version, _ = table.newest_note()
        known = self._schemas.get(collection)
        if known is not None and known[0] == version:
            return known[1]
        return table.read(None).schema

    def _above(self, changeset: Changeset, position: str) -> Changeset:
        """Drop payloads that are in an adopted table already, or were and are deleted there.

        Its old writer left no tombstones, so a change that comes again could undo a delete.
        """
        above = F.col(self._names.position) >= F.lit(position)
        return replace(changeset, frame=changeset.frame.where(above))

    def _law(self, changeset: Changeset, schema: StructType) -> MergeLaw:
        # Not ``hard``: a deleted row is written in either case, for Hudi to drop where it is told.
        existing = set(schema.fieldNames())
        return MergeLaw(
            self._names, changeset, existing, hard=False, null_missing=self._null_missing
        )

    def table(self, collection: str) -> HudiTable:
        """Return a collection's table, which need not be there."""
        return HudiTable(
            self._spark,
            self.path(collection),
            self._names,
            self._settings,
            hard=self._hard,
            last=self._names.names,
            adopted_at=self._adopted.get(collection, ""),
            beside_adopted=any(self._adopted.values()),
        )

    def _tombstones(self, collection: str) -> HudiTable:
        path = f"{self.path(collection)}{TOMBSTONES}"
        return HudiTable(
            self._spark,
            path,
            self._names,
            self._settings,
            hard=False,
            last=(),
            beside_adopted=any(self._adopted.values()),
        )

    def _keep_tombstones(self, changeset: Changeset, note: CommitNote) -> None:
        note = replace(note, adopted_at="")
        table = self._tombstones(note.collection)
        version, found = table.newest_note()
        previous = TableState(version, found) if version is not None and found else None
        table.write(buried(changeset, self._names), replace(note, partition=()), previous)

    def _without_buried(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> Changeset:
        if not buried_matters(changeset, previous):
            return changeset
        graves = self._tombstones(note.collection).read(None)
        return without_buried(changeset, graves, self._names)


def _read_as_text(present: StructType, change: SchemaChange) -> bool:
    """Tell whether Hudi would read old values of a widened column by their text.

    It does so with a float that becomes a double: 0.1 where the source has 0.10000000149011612.
    """
    return any(isinstance(present[item.name].dataType, FloatType) for item in change.widened)


def _decided_by_column(changeset: Changeset, note: CommitNote, previous: TableState) -> bool:
    """Tell whether the table's rows must be seen to decide on columns.

    Not where every payload is a whole row above all that the table has ever been given: it wins
    with each of its columns, even against a row whose columns are of several positions.
    """
    late = not changeset.low or changeset.low <= previous.note.high
    return changeset.masked or bool(changeset.floor) or (note.partial_rows and late)
