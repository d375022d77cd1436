"""Write Hudi tables: apply the merge law, then one upsert, copy-on-write or merge-on-read.

Hudi's own merge is only a second guard (``EVENT_TIME_ORDERING`` on the position): it keeps the
newer of two rows. Rejected: Hudi's Debezium payload, which does more. It brings deleted rows back,
fills unavailable values only of top-level strings, and differs between the two table types
(measured). So a deleted row stays as a row with its position. When a payload may omit a column, or
the decision needs the table's row, the sink itself joins table and payloads, as on Delta
(``merge_join.py``). When every payload is a complete row, and no payload is late for a row whose
columns have several positions, the payloads are written directly, without a read of the table.

``hard`` deletes are the same rows under a marker that lets Hudi drop them from its files;
``tombstones.py`` keeps their positions.

A new column or a wider type needs no earlier commit: Hudi takes it from the rows of the upsert.
When Hudi would read values of old rows wrongly in the wider type, the sink writes all rows.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import FloatType, StructType

from lakeingest.commit_note import CommitNote
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.folders import TOMBSTONES
from lakeingest.named import all_named
from lakeingest.sink.contract import Changeset, TableState, Upkeep
from lakeingest.sink.hudi.adopted_table import refuse_new_log, soft_deletes_error
from lakeingest.sink.hudi.commit import HudiTable
from lakeingest.sink.hudi.options import HudiSettings, hard_table_error
from lakeingest.sink.hudi.partition import (
    may_move,
    old_partition,
    refuse_settings,
    with_moves,
    without_moves,
)
from lakeingest.sink.hudi.record_key import refuse_names, refuse_other_texts
from lakeingest.sink.lake_sink import LakeSink
from lakeingest.sink.merge_join import SMALL_BYTES, inserted_rows, merged_rows
from lakeingest.sink.merge_law import MergeLaw
from lakeingest.sink.progress import already_created_error
from lakeingest.sink.schema_change import SchemaChange, evolved_schema, in_schema, schema_change
from lakeingest.sink.settings import SinkSettings


class HudiSink(LakeSink):
    """Hudi tables of one lake, one per source collection."""

    # A deleted row is written in either case. For ``hard`` deletes, Hudi drops it by the marker.
    _removes_rows = False

    def __init__(self, spark: SparkSession, settings: SinkSettings, hudi: HudiSettings) -> None:
        """Bind to a lake.

        Args:
            spark: Session with Hudi's extension.
            settings: Settings of the pipeline.
            hudi: Table type and options of the tables.
        """
        super().__init__(spark, settings)
        self._hudi = hudi
        self._schemas: dict[str, tuple[int, StructType]] = {}
        self._adopted: dict[str, str] = {}

    def table(self, collection: str) -> HudiTable:
        """Return a collection's table, which need not exist."""
        return HudiTable(
            spark=self._spark,
            path=self.path(collection),
            settings=self.settings,
            hudi=self._hudi,
            adopted_at=self._adopted.get(collection, ""),
            beside_adopted=any(self._adopted.values()),
        )

    def tombstones(self, collection: str) -> HudiTable:
        """Return the side table of a collection's tombstones, which need not exist."""
        table = self.table(collection)
        settings = replace(self.settings, hard=False)
        return replace(table, path=f"{table.path}{TOMBSTONES}", settings=settings, adopted_at="")

    def state(self, collection: str, since: int | None = None) -> TableState | None:
        """Return version and progress; None: there is no table; see the contract.

        Raises:
            ConfigError: The folder holds a table that is not this pipeline's, or Hudi removes
                deleted rows from the table although the pipeline keeps them as tombstones.
            DataError: Another writer changed rows after ``since``.
        """
        table_state = super().state(collection)
        if table_state is None:
            return None
        table, hard = self.table(collection), self.settings.hard
        if table_state.note.adopted_at:
            if not hard:
                raise soft_deletes_error(collection)
            table.refuse_streamer_commits(collection)
        if not hard and table.removes_deleted():
            raise hard_table_error(collection)
        self._adopted[collection] = table_state.note.adopted_at
        return self._check_foreign_changes(table_state, since)

    def read(self, collection: str, version: int | None = None) -> DataFrame:
        """Read the table as of ``version``; None: its newest version."""
        if collection not in self._adopted:
            self.state(collection)
        return super().read(collection, version)

    def apply(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        """Write the changeset in one commit; ``hard`` deletes commit the tombstones before it.

        Payloads below the position at which the table was adopted are dropped. The table contains
        these changes already, or contained them and the row is deleted. Its old writer left no
        tombstones, so a redelivered change could undo a delete.
        """
        adopted_at = previous.note.adopted_at if previous else ""
        if adopted_at:
            refuse_new_log(note.collection, changeset.high, adopted_at)
            above = F.col(self.settings.names.position) >= F.lit(adopted_at)
            changeset = replace(changeset, frame=changeset.frame.where(above))
        return super().apply(changeset, note, previous)

    def _tidy(self, state: TableState, upkeep: Upkeep) -> None:
        # ``Upkeep`` is of Delta's tables: a Hudi table keeps its deleted rows as they are.
        del upkeep
        collection = state.note.collection
        self.table(collection).compact(state.note)
        for side_table, note, _ in self._side_tables(collection):
            side_table.compact(note)

    def is_crowded(self, collection: str) -> bool:
        """Return that no table is: Hudi itself puts new rows into its small files."""
        del collection
        return False

    def kept_since(self, collection: str) -> datetime:
        """Return that the table has kept everything; only ``expire`` removes anything.

        If the user's own settings clean the table by a number of commits, they decide.
        """
        del collection
        return datetime.min.replace(tzinfo=timezone.utc)

    def expire(self, collection: str, oldest: int, age: timedelta) -> None:
        """Remove the files that only older versions need; see the contract."""
        del age  # Hudi counts commits.
        state = self.state(collection)
        if state is not None:
            self.table(collection).clean(state.note, oldest)
        for side_table, note, version in self._side_tables(collection):
            # Nobody reads an older version of it.
            side_table.clean(note, version)

    def _side_tables(self, collection: str) -> list[tuple[HudiTable, CommitNote, int]]:
        """Return the side table with its progress and newest version; none: there is no such."""
        side_table = self.tombstones(collection)
        version, note = side_table.newest_note()
        return [] if note is None else [(side_table, note, version)]

    def _commit(
        self, changeset: Changeset, note: CommitNote, previous: TableState | None
    ) -> TableState:
        collection, schema = note.collection, changeset.schema
        table = self.table(collection)
        refuse_names(collection, schema.fieldNames())
        refuse_settings(collection, schema, changeset, self._hudi.user_options)
        if previous is None:
            return self._create(table, changeset, note)
        present = self._schema(table, collection)
        change = schema_change(collection, present, schema)
        refuse_other_texts(collection, changeset.key, present, change)
        law = self._law(changeset, note, evolved_schema(present, change, self.settings.names))
        absent = set(present.fieldNames()) - set(schema.fieldNames())
        # Every row gets the default of a new column, even a row without a payload.
        every = bool(changeset.fills) or _converts_through_text(present, change)
        if (
            every
            or absent
            or may_move(changeset.key, changeset.partition)
            or _needs_table_rows(changeset, note, previous)
        ):
            rows = _rows_to_write(table, changeset, law, every=every)
        else:
            rows = inserted_rows(changeset.frame, law)
        state = table.write(rows, note, previous)
        if not (change.added or change.widened):
            self._schemas[collection] = (state.version, present)
        return state

    def _create(self, table: HudiTable, changeset: Changeset, note: CommitNote) -> TableState:
        version, _ = table.newest_note()
        if version >= 0:
            raise already_created_error(note.collection)
        rows = inserted_rows(changeset.frame, self._law(changeset, note, changeset.schema))
        moves = may_move(changeset.key, changeset.partition)
        return table.write(without_moves(rows) if moves else rows, note, None)

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


def _rows_to_write(
    table: HudiTable, changeset: Changeset, law: MergeLaw, *, every: bool
) -> DataFrame:
    """Return the rows that change and the new rows, with their values after the merge.

    Args:
        table: The table.
        changeset: The payloads to merge.
        law: Their merge law.
        every: Whether to return all other rows, too.
    """
    table_rows = in_schema(table.read(), law.schema, changeset)
    # A truncate also affects rows without a payload.
    how = "full" if every or changeset.floor else "right"
    if how == "right" and changeset.size <= SMALL_BYTES:
        # A join that keeps payloads without a row cannot broadcast them: it shuffles the table.
        changeset = replace(changeset, frame=local_checkpoint(changeset.frame))
        keys = F.broadcast(changeset.frame.select(*all_named(changeset.key)))
        table_rows = table_rows.join(keys, list(changeset.key), "left_semi")
    if not may_move(changeset.key, changeset.partition):
        return merged_rows(table_rows, changeset.frame, law, how, every=every)
    more = (old_partition(law),)
    rows = merged_rows(table_rows, changeset.frame, law, how, every=every, more=more)
    return with_moves(rows, law)


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
