"""The merge law as a rewrite of files: one to three jobs where the engine's MERGE takes eight.

A small table is joined with its payloads and written anew, in one task. Of a larger one, and where
all payloads may be new, one look at the keys tells which payloads have a row and in which files
those are. None: the payloads are appended. Else those files are written anew with the law's clauses
applied, beside the payloads that have no row. All in one transaction that read the whole table, so
what a rival changes meanwhile makes it fail (``engine/delta_transaction.py``).

Whether every key is new is looked at, not concluded: inserts alone do not prove it (a re-delivered
insert, a tombstone of a re-used key). Where one key column of all payloads lies beyond everything
in the table's statistics, as numbers from a sequence do, that is proof and no row is read.
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
"""Bytes up to which a table is written anew without a look at which of its files are touched."""

_FILE_BYTES = 32 * 1024 * 1024
"""Touched bytes per task and file: what is rewritten together becomes one file."""


class Rewrite:
    """One changeset on one version of one table."""

    def __init__(
        self,
        transaction: DeltaTransaction,
        files: Sequence[DataFile],
        changeset: Changeset,
        law: MergeLaw,
        schema: StructType,
    ) -> None:
        """Bind to the files of the transaction's version, and to the schema that the table gets.

        The changeset must be a small one.
        """
        self._transaction = transaction
        self._files = files
        self._changeset = changeset
        self._law = law
        self._schema = schema

    def write(self, *, partial: bool) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
        """Write the new files; return what to add and what to remove.

        Args:
            partial: Whether columns are decided one by one.
        """
        if not self._files:
            return self._appended()
        if self._changeset.inserts_only:
            if self._lie_beyond():
                return self._appended()
        elif self._is_small():
            return self._written(self._whole(partial=partial), self._files), tuple(self._files)
        return self._touched(partial=partial)

    def _touched(self, *, partial: bool) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
        key = list(self._changeset.key)
        known = self._known()
        row = known.agg(F.count("*").alias("rows"), F.collect_set(_FILE).alias("files")).first()
        rows, names = (row["rows"], set(row["files"])) if row else (0, set())
        touched = tuple(file for file in self._files if file.name in names)
        if not touched:
            return self._appended()
        frame = self._rewritten(touched, partial=partial)
        if rows < self._changeset.rows:
            missing = self._changeset.frame.join(F.broadcast(known), key, "left_anti")
            frame = frame.unionByName(inserted_rows(missing, self._law, self._schema))
        return self._written(frame, touched), touched

    def _appended(self) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
        return self._written(inserted_rows(self._changeset.frame, self._law, self._schema), ()), ()

    def _lie_beyond(self) -> bool:
        """Tell whether statistics prove that no payload has a row in the table."""
        spans: dict[str, tuple[int, int]] = {}
        for name in self._changeset.key:
            if not isinstance(self._schema[name].dataType, IntegralType):
                continue
            found = [file.span(name) for file in self._files]
            known = [span for span in found if span is not None]
            if len(known) == len(found):
                spans[name] = min(low for low, _ in known), max(high for _, high in known)
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

    def _whole(self, *, partial: bool) -> DataFrame:
        """The table as it will be; in one task, where a full join needs no exchange."""
        rows = self._read(self._files).withColumn(_ROW, F.lit(True)).coalesce(1)
        payloads = self._changeset.frame.withColumn(_HIT, F.lit(True)).coalesce(1)
        hinted = payloads.hint("shuffle_hash").alias("s")
        joined = rows.alias("t").join(hinted, self._law.same_key(), "full")
        new = F.col(f"t.{_ROW}").isNull()
        inserted = self._law.inserted()
        kept, decided = matched_decisions(
            self._law, self._schema, F.col(f"s.{_HIT}").isNotNull() & ~new, partial=partial
        )
        values = zip(inserted_values(inserted, self._schema), decided, strict=True)
        return joined.where(F.when(new, inserted.condition).otherwise(kept)).select(
            *(
                F.when(new, value).otherwise(old).alias(name)
                for (value, old), name in zip(values, self._schema.fieldNames(), strict=True)
            )
        )

    def _known(self) -> DataFrame:
        """Keys of payloads that have a row, each with its file."""
        key = list(self._changeset.key)
        columns = all_named(key)
        keys = F.broadcast(self._changeset.frame.select(*columns))
        table = self._transaction.read(self._files)
        found = table.select(*columns, F.col("_metadata.file_name").alias(_FILE)).join(keys, key)
        return found.localCheckpoint(eager=False)

    def _rewritten(self, touched: Sequence[DataFile], *, partial: bool) -> DataFrame:
        payloads = self._changeset.frame.withColumn(_HIT, F.lit(True))
        rows = self._read(touched).alias("t")
        joined = rows.join(F.broadcast(payloads).alias("s"), self._law.same_key(), "left")
        kept, decided = matched_decisions(
            self._law, self._schema, F.col(f"s.{_HIT}").isNotNull(), partial=partial
        )
        named = zip(decided, self._schema.fieldNames(), strict=True)
        return joined.where(kept).select(*(value.alias(name) for value, name in named))

    def _read(self, files: Sequence[DataFile]) -> DataFrame:
        rows = self._transaction.read(files)
        if self._schema == self._transaction.schema:
            return rows
        return in_schema(rows, self._schema, self._changeset)

    def _written(self, frame: DataFrame, touched: Sequence[DataFile]) -> tuple[DataFile, ...]:
        total = sum(file.size for file in touched)
        return self._transaction.write(frame.coalesce(1 + total // _FILE_BYTES))
