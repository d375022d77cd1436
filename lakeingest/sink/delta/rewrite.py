"""Apply the merge law as a rewrite of files: one to three jobs; the engine's MERGE takes eight.

A small table is joined with its payloads and rewritten in one task. For a larger table, and when
all payloads may be new, one key look-up finds which payloads have a row, and in which files. If
none has a row, the payloads are appended. Otherwise those files are rewritten with the law's
clauses applied, together with the payloads that have no row. One transaction does all this. It has
marked the whole table as read, so a rival's change meanwhile makes it fail
(``engine/delta_transaction.py``).

The key look-up decides whether every key is new. Inserts alone do not prove it: an insert may be
redelivered, and a reused key may have a tombstone. But when one key column of all payloads lies
outside the range in the table's statistics, as numbers from a sequence do, this is proof, and no
row is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StructType

from lakeingest.engine.delta_transaction import DataFile, DeltaTransaction
from lakeingest.named import all_named, named
from lakeingest.sink.contract import Changeset
from lakeingest.sink.merge_frame import matched_decisions
from lakeingest.sink.merge_law import MergeLaw, inserted_rows, inserted_values
from lakeingest.sink.schema_change import in_schema

_FILE = "_lakeingest_file"
_HIT = "_lakeingest_hit"
_ROW = "_lakeingest_row"
WHOLE_BYTES = 8 * 1024 * 1024
"""Largest table size in bytes that is rewritten whole, without a key look-up."""

_FILE_BYTES = 32 * 1024 * 1024
"""Bytes of old files per task; each task writes one new file."""


class Rewrite:
    """The rewrite of one version of one table for one changeset."""

    def __init__(
        self,
        transaction: DeltaTransaction,
        files: Sequence[DataFile],
        changeset: Changeset,
        law: MergeLaw,
        schema: StructType,
    ) -> None:
        """Bind to a changeset and to a version of the table.

        Args:
            transaction: Transaction on the version.
            files: All data files of the version.
            changeset: Payloads to merge; small enough to broadcast.
            law: The merge law of the changeset.
            schema: The schema that the table has after the transaction.
        """
        self._transaction = transaction
        self._files = files
        self._changeset = changeset
        self._law = law
        self._schema = schema

    def write(self, *, partial: bool) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
        """Write the new files; return the files to add and the files to remove.

        Args:
            partial: Whether each fillable column is decided by its own position.
        """
        if not self._files:
            return self._append()
        if self._changeset.inserts_only:
            if self._keys_out_of_range():
                return self._append()
        elif self._is_small():
            return self._write_files(self._merged_table(partial=partial), self._files), tuple(
                self._files
            )
        return self._rewrite_files(partial=partial)

    def _rewrite_files(self, *, partial: bool) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
        key = list(self._changeset.key)
        keys_in_table = self._look_up_keys()
        row = keys_in_table.agg(
            F.count("*").alias("rows"), F.collect_set(_FILE).alias("files")
        ).first()
        rows, names = (row["rows"], set(row["files"])) if row else (0, set())
        old_files = tuple(file for file in self._files if file.name in names)
        if not old_files:
            return self._append()
        frame = self._merged_rows(old_files, partial=partial)
        if rows < self._changeset.rows:
            missing = self._changeset.frame.join(F.broadcast(keys_in_table), key, "left_anti")
            frame = frame.unionByName(inserted_rows(missing, self._law, self._schema))
        return self._write_files(frame, old_files), old_files

    def _append(self) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
        return self._write_files(
            inserted_rows(self._changeset.frame, self._law, self._schema), ()
        ), ()

    def _keys_out_of_range(self) -> bool:
        """Return whether statistics prove that no payload has a row in the table."""
        spans: dict[str, tuple[int, int]] = {}
        for name in self._changeset.key:
            if not isinstance(self._schema[name].dataType, IntegralType):
                continue
            file_spans = [file.span(name) for file in self._files]
            complete_spans = [span for span in file_spans if span is not None]
            if len(complete_spans) == len(file_spans):
                spans[name] = (
                    min(low for low, _ in complete_spans),
                    max(high for _, high in complete_spans),
                )
        if not spans:
            return False
        ends = [
            end(named(name)).alias(f"{end.__name__}_{name}")
            for name in spans
            for end in (F.min, F.max)
        ]
        row = self._changeset.frame.agg(*ends).first()
        if row is None:
            return False
        return any(
            row[f"min_{name}"] is not None
            and (row[f"min_{name}"] > highest or row[f"max_{name}"] < lowest)
            for name, (lowest, highest) in spans.items()
        )

    def _is_small(self) -> bool:
        return sum(file.size for file in self._files) <= WHOLE_BYTES

    def _merged_table(self, *, partial: bool) -> DataFrame:
        """Return the table after the merge, in one task, where a full join needs no exchange."""
        rows = self._read(self._files).withColumn(_ROW, F.lit(True)).coalesce(1)
        payloads = self._changeset.frame.withColumn(_HIT, F.lit(True)).coalesce(1)
        hinted = payloads.hint("shuffle_hash").alias("s")
        joined = rows.alias("t").join(hinted, self._law.same_key(), "full")
        is_new = F.col(f"t.{_ROW}").isNull()
        inserted = self._law.inserted()
        stays, columns = matched_decisions(
            self._law, self._schema, F.col(f"s.{_HIT}").isNotNull() & ~is_new, partial=partial
        )
        values = zip(inserted_values(inserted, self._schema), columns, strict=True)
        return joined.where(F.when(is_new, inserted.condition).otherwise(stays)).select(
            *(
                F.when(is_new, value).otherwise(old).alias(name)
                for (value, old), name in zip(values, self._schema.fieldNames(), strict=True)
            )
        )

    def _look_up_keys(self) -> DataFrame:
        """Return the keys of payloads that have a row, each with the row's file."""
        key = list(self._changeset.key)
        columns = all_named(key)
        keys = F.broadcast(self._changeset.frame.select(*columns))
        table = self._transaction.read(self._files)
        keys_in_table = table.select(*columns, F.col("_metadata.file_name").alias(_FILE)).join(
            keys, key
        )
        return keys_in_table.localCheckpoint(eager=False)

    def _merged_rows(self, old_files: Sequence[DataFile], *, partial: bool) -> DataFrame:
        payloads = self._changeset.frame.withColumn(_HIT, F.lit(True))
        rows = self._read(old_files).alias("t")
        joined = rows.join(F.broadcast(payloads).alias("s"), self._law.same_key(), "left")
        stays, columns = matched_decisions(
            self._law, self._schema, F.col(f"s.{_HIT}").isNotNull(), partial=partial
        )
        named_columns = zip(columns, self._schema.fieldNames(), strict=True)
        return joined.where(stays).select(*(value.alias(name) for value, name in named_columns))

    def _read(self, files: Sequence[DataFile]) -> DataFrame:
        rows = self._transaction.read(files)
        if self._schema == self._transaction.schema:
            return rows
        return in_schema(rows, self._schema, self._changeset)

    def _write_files(self, frame: DataFrame, old_files: Sequence[DataFile]) -> tuple[DataFile, ...]:
        total = sum(file.size for file in old_files)
        return self._transaction.write(frame.coalesce(1 + total // _FILE_BYTES))
