"""Write Hudi tables: apply the merge law, then one upsert, copy-on-write or merge-on-read.

Hudi's own merge is only a second guard (``EVENT_TIME_ORDERING`` on the position): it keeps the
newer of two rows. Rejected: Hudi's Debezium payload, which does more. It brings deleted rows back,
fills unavailable values only of top-level strings, and differs between the two table types
(measured). So a deleted row stays as a row with its position. When a payload may omit a column, or
the decision needs the table's row, the sink itself joins table and payloads, as on Delta
(``rows.py``). When every payload is a complete row, and no payload is late for a row whose columns
have several positions, the payloads are written directly, without a read of the table.

``hard`` deletes are the same rows under a marker that lets Hudi drop them from its files;
``tombstones.py`` keeps their positions.

A new column or a wider type needs no earlier commit: Hudi takes it from the rows of the upsert.
When Hudi would read values of old rows wrongly in the wider type, the sink writes all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import FloatType, StructType

from lakeingest.commit_note import CommitNote
from lakeingest.engine.hudi_table import is_hudi_table
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.errors import FencedError
from lakeingest.folders import LakeFolders
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.sink.contract import FRAME_ONLY, Changeset, TableState
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
            folders: Folders of the tables.
            pipeline: Name of the pipeline that owns the tables.
            names: Names of the metadata columns.
            hard: Whether a delete removes its row.
            null_missing: Whether a column without any known value becomes NULL.
            settings: Table type and options of the tables.
            foreign: Whether other writers may change rows.
            notes: Returns the notes that the ledger has of a table's commits
                (``progress.recalled``).
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
        """Return version and progress; None: there is no table; see the contract.

        Raises:
            ConfigError: The folder holds a table that is not this pipeline's, or Hudi removes
                deleted rows from the table although the pipeline keeps them as tombstones.
            DataError: Another writer changed rows after ``since``.
        """
        path = self.path(collection)
        version, note = self.table(collection).newest_note()
        if version is None:
            return None
        if note is not None and note.fences:
            # The log has only fences: Hudi has archived the data commits, so ask the ledger. If the
            # log has no note of lakeingest at all, the table may belong to another writer.
            note = recalled(note, self._notes(collection))
        note = owned(note, self._pipeline, collection, path, "Hudi")
        if note.adopted_at:
            if not self._hard:
                raise soft_deletes(collection)
            self.table(collection).refuse_streamed(collection)
        if not self._hard and self.table(collection).removes_deleted():
            raise removed_for_good(collection)
        self._adopted[collection] = note.adopted_at
        return self._check_foreign_changes(collection, TableState(version, note), since)

    def _check_foreign_changes(
        self, collection: str, now: TableState, since: int | None
    ) -> TableState:
        """Return ``now`` after a check that no other writer changed rows after ``since``.

        Args:
            collection: The source table.
            now: The table's state.
            since: Version up to which the commits are known; None: no check.

        Raises:
            DataError: Another writer changed rows.
        """
        if since is not None and now.version > since and not self._foreign:
            self.table(collection).refuse_foreign_change(collection, since)
        return now

    def refuse_foreign_files(self, collection: str) -> None:
        """Raise an error for a folder with files but no Hudi timeline (Parquet, Delta, Iceberg).

        It refuses tombstones beside the folder, too. Call it only before the first claim. Later,
        tombstones may be remains of a first batch whose run was killed before the table's commit.
        """
        if is_hudi_table(self._spark, self.path(collection)):
            return
        refuse_files(self._spark, self.path(collection), "Hudi")

    def read(self, collection: str, version: int | None = None) -> DataFrame:
        """Read the table as of ``version``; None: its newest version."""
        if collection not in self._adopted:
            self.state(collection)
        return self.table(collection).read(version)

    def fence(self, state: TableState, writer: int, run: str) -> TableState:
        """Commit the table's progress again under ``writer``; see the contract."""
        since = state.version
        for attempt in range(_FENCE_ATTEMPTS):
            note = state.note.fenced(writer, run, attempt)
            if self._hard and note.tombstones:
                bare = replace(note, partition=(), adopted_at="")
                self._tombstones(note.collection).write_nothing(bare)
            table = self.table(note.collection)
            table.write_nothing(note)
            version, newest = table.newest_note()
            if version is None or newest is None or (newest.run, newest.token) != (run, note.token):
                continue
            if newest.same_progress(note):
                return self._check_foreign_changes(
                    note.collection, TableState(version, newest), since
                )
            state = TableState(version, newest)
        message = f"Other runs keep writing to table '{state.note.collection}'; stop them first."
        raise FencedError(message)

    def apply(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        """Write the changeset in one commit; ``hard`` deletes commit the tombstones before it."""
        note = carried(note, changeset, previous, hard=self._hard)
        changeset = kept_by_folders(changeset)
        if note.adopted_at:
            refuse_new_log(note.collection, changeset.high, note.adopted_at)
            changeset = self._from_position(changeset, note.adopted_at)
        if self._hard:
            changeset = self._without_buried(changeset, note, previous)
            if changeset.deletes:
                changeset = replace(changeset, frame=local_checkpoint(changeset.frame))
                self._append_tombstones(changeset, note)
        state = self._land(changeset, note, previous)
        # Check after the commit: commits between an earlier check and this one count, too.
        return self._check_foreign_changes(
            note.collection, state, previous.version if previous else None
        )

    def _land(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        table = self.table(note.collection)
        payloads = changeset.frame.drop(*FRAME_ONLY)
        refuse_names(note.collection, payloads.schema.fieldNames())
        user_options = self._settings.given
        refuse_settings(note.collection, payloads.schema, changeset, user_options)
        if previous is None:
            if is_hudi_table(self._spark, table.path) and table.newest_note()[0] is not None:
                raise created_by_another(note.collection)
            rows = whole_rows(changeset, self._law(changeset, payloads.schema), payloads.schema)
            changes_partition = may_move(changeset.key, changeset.partition)
            return table.write(unmoved(rows) if changes_partition else rows, note, None)
        present = self._schema(table, note.collection)
        change = schema_change(note.collection, present, payloads.schema)
        refuse_other_texts(note.collection, changeset.key, present, change)
        schema = evolved_schema(present, change, self._names)
        law = self._law(changeset, schema)
        absent = set(present.fieldNames()) - set(payloads.schema.fieldNames())
        by_column = note.partial_rows or bool(changeset.floor)
        # Every row gets the default of a new column, even a row without a payload.
        writes_all_rows = bool(changeset.fills) or _converts_through_text(present, change)
        if may_move(changeset.key, changeset.partition):
            rows = decided_with_moves(
                table.read(None),
                changeset,
                law,
                schema,
                self._names,
                partial=by_column,
                every=writes_all_rows,
            )
        elif writes_all_rows or absent or _needs_table_rows(changeset, note, previous):
            rows = decided_rows(
                table.read(None), changeset, law, schema, partial=by_column, every=writes_all_rows
            )
        else:
            rows = whole_rows(changeset, law, schema)
        state = table.write(rows, note, previous)
        if not (change.added or change.widened):
            self._schemas[note.collection] = (state.version, present)
        return state

    def _schema(self, table: HudiTable, collection: str) -> StructType:
        """Return the schema of the table's newest version.

        To open a table only for its schema took a twentieth of a run in batches of 20,000 events
        (measured). So the sink caches the schema after a commit of its own that did not change it.
        The cache is valid while that commit is the newest one of any writer, because only a commit
        can change a schema.
        """
        version, _ = table.newest_note()
        cached = self._schemas.get(collection)
        if cached is not None and cached[0] == version:
            return cached[1]
        return table.read(None).schema

    def _from_position(self, changeset: Changeset, position: str) -> Changeset:
        """Drop payloads below the position at which the table was adopted.

        The table contains these changes already, or contained them and the row is deleted. Its old
        writer left no tombstones, so a redelivered change could undo a delete.
        """
        above = F.col(self._names.position) >= F.lit(position)
        return replace(changeset, frame=changeset.frame.where(above))

    def _law(self, changeset: Changeset, schema: StructType) -> MergeLaw:
        # Always ``hard=False``: a deleted row is written in either case. For ``hard`` deletes, Hudi
        # drops it by the marker.
        existing = set(schema.fieldNames())
        return MergeLaw(
            self._names, changeset, existing, hard=False, null_missing=self._null_missing
        )

    def table(self, collection: str) -> HudiTable:
        """Return a collection's table, which need not exist."""
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

    def _append_tombstones(self, changeset: Changeset, note: CommitNote) -> None:
        note = replace(note, adopted_at="")
        table = self._tombstones(note.collection)
        version, newest = table.newest_note()
        previous = TableState(version, newest) if version is not None and newest else None
        table.write(buried(changeset, self._names), replace(note, partition=()), previous)

    def _without_buried(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> Changeset:
        if not buried_matters(changeset, previous):
            return changeset
        tombstones = self._tombstones(note.collection).read(None)
        return without_buried(changeset, tombstones, self._names)


def _converts_through_text(present: StructType, change: SchemaChange) -> bool:
    """Return whether Hudi would convert old values of a widened column through their text.

    It does so when a float becomes a double: 0.1 where the source has 0.10000000149011612.
    """
    return any(isinstance(present[item.name].dataType, FloatType) for item in change.widened)


def _needs_table_rows(changeset: Changeset, note: CommitNote, previous: TableState) -> bool:
    """Return whether the merge needs the table's rows to decide on columns.

    It does not when every payload is a complete row above every position that the table ever had.
    Such a payload replaces each column, even in a row whose columns have several positions.
    """
    late = not changeset.low or changeset.low <= previous.note.high
    return changeset.masked or bool(changeset.floor) or (note.partial_rows and late)
