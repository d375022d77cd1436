"""Apply the merge law as a rewrite of files: one to three jobs; the engine's MERGE takes eight.

A small table is joined with its payloads and rewritten in one task. For a larger one, one key
look-up finds which payloads have a row, and in which files. If none has a row, the payloads are
appended. Otherwise those files are rewritten with the law's clauses applied, together with the
payloads that have no row. One transaction does all this. It has marked the whole table as read, so
a rival's change meanwhile makes it fail (``engine/delta_transaction.py``).

The key look-up decides whether every key is new. Inserts alone do not prove it: an insert may be
redelivered, and a reused key may have a tombstone. But when one key column of all payloads lies
outside the range in the table's statistics, as numbers from a sequence do, this is proof, and no
row is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from lakeingest.engine.delta_files import DataFile
from lakeingest.engine.delta_transaction import DeltaTransaction
from lakeingest.engine.few_rows import in_session
from lakeingest.frame_schemas import OURS
from lakeingest.named import all_named, named
from lakeingest.sink.delta.commit import FileChange
from lakeingest.sink.merge_join import inserted_rows, merged_rows
from lakeingest.sink.merge_law import MergeLaw
from lakeingest.sink.schema_change import in_schema

_FILE = f"{OURS}file"
WHOLE_BYTES = 8 * 1024 * 1024
"""Largest table size in bytes that is rewritten whole, without a key look-up."""

TINY_BYTES = 512 * 1024
"""Up to this size, to rewrite the table costs less than to ask whether all keys are new."""

_FILE_BYTES = 32 * 1024 * 1024
"""Bytes of old files per task; each task writes one new file."""


@dataclass(frozen=True)
class Rewrite:
    """The rewrite of one version of one table for one changeset.

    Attributes:
        transaction: Transaction on the version.
        files: All data files of the version.
        law: The merge law of the changeset, which is small enough to broadcast.
    """

    transaction: DeltaTransaction
    files: Sequence[DataFile]
    law: MergeLaw

    def write(self) -> FileChange | None:
        """Write the new files; return the files to add and the files to remove.

        Returns:
            The files; None: a truncate sweeps a table that is too large to be rewritten whole.
        """
        changeset, size = self.law.changeset, sum(file.size for file in self.files)
        if not self.files:
            return self._append()
        if changeset.floor:
            return self._rewrite_whole() if size <= WHOLE_BYTES else None
        if changeset.inserts_only and size > TINY_BYTES:
            return self._append() if self._keys_out_of_range() else self._rewrite_files()
        return self._rewrite_whole() if size <= WHOLE_BYTES else self._rewrite_files()

    def _rewrite_whole(self) -> FileChange:
        # In one task, a full join needs no exchange.
        rows = self._read(self.files).coalesce(1)
        payloads = self.law.changeset.frame.coalesce(1).hint("shuffle_hash")
        if sum(file.size for file in self.files) <= TINY_BYTES:
            rows = in_session(rows, payloads.sparkSession)
        return self._replace(self.files, merged_rows(rows, payloads, self.law))

    def _rewrite_files(self) -> FileChange:
        changeset = self.law.changeset
        keys_in_table = self._look_up_keys()
        row = keys_in_table.agg(
            F.count("*").alias("rows"), F.collect_set(_FILE).alias("files")
        ).first()
        rows, names = (row["rows"], set(row["files"])) if row else (0, set())
        old_files = [file for file in self.files if file.name in names]
        if not old_files:
            return self._append()
        payloads = F.broadcast(changeset.frame)
        frame = merged_rows(self._read(old_files), payloads, self.law, "left")
        if rows < changeset.rows:
            keys = F.broadcast(keys_in_table)
            new = changeset.frame.join(keys, list(changeset.key), "left_anti")
            frame = frame.unionByName(inserted_rows(new, self.law))
        return self._replace(old_files, frame)

    def _append(self) -> FileChange:
        return self._replace((), inserted_rows(self.law.changeset.frame, self.law))

    def _replace(self, old_files: Sequence[DataFile], rows: DataFrame) -> FileChange:
        total = sum(file.size for file in old_files)
        return self.transaction.write(rows.coalesce(1 + total // _FILE_BYTES)), tuple(old_files)

    def _keys_out_of_range(self) -> bool:
        """Return whether statistics prove that no payload has a row in the table."""
        table_spans: dict[str, tuple[int, int]] = {}
        for name in self.law.changeset.key:
            if isinstance(self.law.schema[name].dataType, IntegralType):
                spans = [span for span in (file.span(name) for file in self.files) if span]
                if len(spans) == len(self.files):
                    lows, highs = zip(*spans, strict=True)
                    table_spans[name] = (min(lows), max(highs))
        if not table_spans:
            return False
        ends = [end(named(name)) for name in table_spans for end in (F.min, F.max)]
        row = self.law.changeset.frame.agg(*ends).first()
        if row is None:
            return False
        spans_of_both = zip(table_spans.values(), row[::2], row[1::2], strict=True)
        return any(
            low is not None and (low > highest or high < lowest)
            for (lowest, highest), low, high in spans_of_both
        )

    def _look_up_keys(self) -> DataFrame:
        """Return the keys of payloads that have a row, each with the row's file."""
        key = list(self.law.changeset.key)
        columns = all_named(key)
        keys = F.broadcast(self.law.changeset.frame.select(*columns))
        table = self.transaction.read(self.files)
        keys_in_table = table.select(*columns, F.col("_metadata.file_name").alias(_FILE)).join(
            keys, key
        )
        return keys_in_table.localCheckpoint(eager=False)

    def _read(self, files: Sequence[DataFile]) -> DataFrame:
        rows = self.transaction.read(files)
        if self.law.schema == self.transaction.schema:
            return rows
        return in_schema(rows, self.law.schema, self.law.changeset)
