"""Write a changeset's data files: one to four jobs, where the engine's MERGE takes eight.

A small table is joined with its payloads and rewritten in one task. For a larger one, statistics
and a key look-up find which payloads have a row, and in which files. If none has a row, the
payloads are appended. Otherwise the rows that change are hidden (``landing.py``). Where the table
may not have deletion vectors, their files are rewritten with the law's clauses applied, together
with the payloads that have no row. One transaction does all this. It has marked the whole table as
read, so a rival's change meanwhile makes it fail (``engine/delta/transaction.py``).

The key look-up decides whether every key is new. Inserts alone do not prove it: an insert may be
redelivered, and a reused key may have a tombstone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.engine.delta.files import DataFile, number_of_rows
from lakeingest.engine.delta.transaction import DeltaTransaction
from lakeingest.engine.few_rows import in_session
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.frame_schemas import OURS
from lakeingest.named import all_named
from lakeingest.sink.contract import Changeset
from lakeingest.sink.delta.commit import FileChange
from lakeingest.sink.delta.key_range import key_range
from lakeingest.sink.delta.landing import Landing, number_of_files, pays, small_files
from lakeingest.sink.merge_join import (
    OUTCOME,
    UNCHANGED,
    decided_rows,
    inserted_rows,
    merged_rows,
    unmatched,
)
from lakeingest.sink.merge_law import MergeLaw
from lakeingest.sink.schema_change import in_schema

_FILE = f"{OURS}file"
WHOLE_BYTES = 8 * 1024 * 1024
"""Largest table size in bytes that is rewritten whole, without a key look-up."""

TINY_BYTES = 512 * 1024
"""Up to this size, to rewrite the table costs less than to ask whether all keys are new."""

TINY_ROWS = 20_000
"""Number of rows up to which a table is rewritten without generated code."""


@dataclass(frozen=True)
class Rewrite:
    """The rewrite of one version of one table for one changeset.

    Attributes:
        transaction: Transaction on the version.
        files: All data files of the version.
        changeset: The payloads to merge, few enough to broadcast.
        law: Their merge law.
        hides: Whether deletion vectors may hide rows, if the table may have some.
    """

    transaction: DeltaTransaction
    files: Sequence[DataFile]
    changeset: Changeset
    law: MergeLaw
    hides: bool

    def write(self) -> FileChange | None:
        """Write the new files; return the files to add and the files to remove.

        Returns:
            The files; None: a truncate sweeps a table that is too large to be rewritten whole.
        """
        changeset, size = self.changeset, sum(file.size for file in self.files)
        if not changeset.rows and not changeset.floor:
            return (), ()
        if not self.files:
            return self._append()
        if changeset.floor:
            return self._rewrite_whole() if size <= WHOLE_BYTES else None
        largest = TINY_BYTES if changeset.inserts_only else WHOLE_BYTES
        appends_only = self.transaction.appends_only
        if size <= largest and not (self._lands or appends_only):
            self._begin_to_hide()
            return self._rewrite_whole()
        changeset = replace(changeset, frame=local_checkpoint(changeset.frame))
        checkpointed = replace(self, changeset=changeset)
        return checkpointed.add_rows() if appends_only else checkpointed.change_rows()

    def add_rows(self) -> FileChange:
        """Write a table that takes only appends; Delta refuses the files where a row changes."""
        changeset, schema = self.changeset, self.law.schema
        reached = key_range(changeset, schema).files(self.files)
        rows, payloads = self._read(reached), F.broadcast(changeset.frame)
        matched = local_checkpoint(decided_rows(rows, payloads, self.law))
        if not matched.where(F.col(OUTCOME) != UNCHANGED).isEmpty():
            return self._rewrite_files(reached)
        # A row that the connector sends again is there.
        new = inserted_rows(unmatched(changeset, matched), self.law)
        return self.transaction.write(new.coalesce(1)), ()

    def change_rows(self) -> FileChange:
        """Write a table that is too large to be rewritten whole; see ``write``."""
        range_ = key_range(self.changeset, self.law.schema)
        reached = range_.files(self.files)
        if not reached:
            return self._append()
        if self._lands:
            return Landing(
                self.transaction, self.files, reached, range_, self.changeset, self.law
            ).write()
        self._begin_to_hide()
        return self._rewrite_files(reached)

    @cached_property
    def _lands(self) -> bool:
        return self.hides and bool(self.transaction.hides_rows) and pays(self.files)

    def _begin_to_hide(self) -> None:
        """Let the next batch land, if the table is large; in this version, no row shows its place.

        A table gets the feature no sooner: there are readers that refuse it. A table of which no
        row changes never gets it, and whoever has set the property has decided.
        """
        changes_schema = self.law.schema != self.transaction.schema
        decided = self.transaction.hides_rows is not None
        if self.hides and not decided and not changes_schema and pays(self.files):
            self.transaction.begin_to_hide_rows()

    def _rewrite_whole(self) -> FileChange:
        # In one task, a full join needs no exchange.
        rows = self._read(self.files).coalesce(1)
        payloads = self.changeset.frame.coalesce(1).hint("shuffle_hash")
        number = number_of_rows(self.files)
        if number is not None and number <= TINY_ROWS:
            rows = in_session(rows, payloads.sparkSession)
        return self._replace(self.files, merged_rows(rows, payloads, self.law))

    def _rewrite_files(self, reached: Sequence[DataFile]) -> FileChange:
        changeset = self.changeset
        keys_in_table = self._look_up_keys(reached)
        # Another writer may have appended a key again (``foreign.changes=accept``).
        number_of_keys = F.count_distinct(*all_named(changeset.key))
        row = keys_in_table.agg(
            number_of_keys.alias("keys"), F.collect_set(_FILE).alias("files")
        ).first()
        key_count, names = (row["keys"], set(row["files"])) if row else (0, set())
        old_files = [file for file in reached if file.name in names]
        if not old_files:
            return self._append()
        payloads = F.broadcast(changeset.frame)
        frame = merged_rows(self._read(old_files), payloads, self.law, "left")
        if key_count < changeset.rows:
            keys = F.broadcast(keys_in_table)
            new = changeset.frame.join(keys, list(changeset.key), "left_anti")
            frame = frame.unionByName(inserted_rows(new, self.law))
        return self._replace(old_files, frame)

    def _append(self) -> FileChange:
        """Add the payloads as rows; if small files are many, write their rows again with them.

        But not in a table that hides no rows: it may have stream readers, for which rows that are
        written again are new.
        """
        rows = inserted_rows(self.changeset.frame, self.law)
        small = small_files(self.files) if self._lands else ()
        if small:
            rows = self._read(small).unionByName(rows)
        return self._replace(small, rows)

    def _replace(self, old_files: Sequence[DataFile], rows: DataFrame) -> FileChange:
        return self.transaction.write(rows.coalesce(number_of_files(old_files))), tuple(old_files)

    def _look_up_keys(self, reached: Sequence[DataFile]) -> DataFrame:
        """Return the keys of payloads that have a row, each with the row's file."""
        key = list(self.changeset.key)
        columns = all_named(key)
        keys = F.broadcast(self.changeset.frame.select(*columns))
        table = self.transaction.read(reached)
        keys_in_table = table.select(*columns, F.col("_metadata.file_name").alias(_FILE)).join(
            keys, key
        )
        return keys_in_table.localCheckpoint(eager=False)

    def _read(self, files: Sequence[DataFile]) -> DataFrame:
        rows = self.transaction.read(files)
        if self.law.schema == self.transaction.schema:
            return rows
        return in_schema(rows, self.law.schema, self.changeset)
