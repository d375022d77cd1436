"""The merge law as a rewrite of the touched files: three jobs where the engine's MERGE takes eight.

One look at the table's keys tells which payloads have a row and in which files those are. None:
the payloads are appended. Else those files are written anew with the law's clauses applied, beside
the payloads that have no row. Both in one transaction that read the whole table, so what a rival
changes meanwhile makes it fail (``engine/delta_transaction.py``).

Whether every key is new is looked at, not concluded: inserts alone do not prove it (a re-delivered
insert, a tombstone of a re-used key).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.engine.delta_transaction import DataFile, DeltaTransaction
from lakeingest.sink.contract import Changeset
from lakeingest.sink.merge_law import Clause, MergeLaw, target

_FILE = "_file"
_HIT = "_hit"
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
    ) -> None:
        """Bind to the files of the transaction's version. The changeset must be a small one."""
        self._transaction = transaction
        self._files = files
        self._changeset = changeset
        self._law = law
        self._schema = transaction.schema

    def write(self, *, partial: bool) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
        """Write the new files; return what to add and what to remove.

        Args:
            partial: Whether columns are decided one by one.
        """
        key = list(self._changeset.key)
        payloads = self._changeset.frame.alias("s")
        if not self._files:
            return self._written(self._inserted(payloads), ()), ()
        known = self._known()
        row = known.agg(F.count("*").alias("rows"), F.collect_set(_FILE).alias("files")).first()
        rows, names = (row["rows"], set(row["files"])) if row else (0, set())
        touched = tuple(file for file in self._files if file.name in names)
        if not touched:
            return self._written(self._inserted(payloads), ()), ()
        frame = self._rewritten(touched, partial=partial)
        if rows < self._changeset.rows:
            missing = self._changeset.frame.join(F.broadcast(known), key, "left_anti")
            frame = frame.unionByName(self._inserted(missing.alias("s")))
        return self._written(frame, touched), touched

    def _known(self) -> DataFrame:
        """Keys of payloads that have a row, each with its file."""
        key = list(self._changeset.key)
        keys = F.broadcast(self._changeset.frame.select(*key))
        table = self._transaction.read(self._files)
        found = table.select(*key, F.col("_metadata.file_name").alias(_FILE)).join(keys, key)
        return found.localCheckpoint(eager=False)

    def _rewritten(self, touched: Sequence[DataFile], *, partial: bool) -> DataFrame:
        payloads = self._changeset.frame.withColumn(_HIT, F.lit(True))
        rows = self._transaction.read(touched).alias("t")
        joined = rows.join(F.broadcast(payloads).alias("s"), self._law.same_key(), "left")
        clauses = self._law.matched(partial=partial)
        hit = F.coalesce(F.col(f"s.{_HIT}"), F.lit(False))
        for clause in clauses:
            if clause.values is None:
                # The first clause, if any: no other one can have claimed the row.
                joined = joined.where(~F.coalesce(hit & clause.condition, F.lit(False)))
        changed = [clause for clause in clauses if clause.values is not None]
        return joined.select(
            *(self._decided(changed, hit, name).alias(name) for name in self._schema.fieldNames())
        )

    def _decided(self, clauses: Sequence[Clause], hit: Column, name: str) -> Column:
        kind = self._schema[name].dataType
        value = target(name)
        for clause in reversed(clauses):
            new = (clause.values or {}).get(name, target(name)).cast(kind)
            value = F.when(hit & clause.condition, new).otherwise(value)
        return value

    def _inserted(self, payloads: DataFrame) -> DataFrame:
        clause = self._law.inserted()
        return payloads.where(clause.condition).select(*_values(clause, self._schema))

    def _written(self, frame: DataFrame, touched: Sequence[DataFile]) -> tuple[DataFile, ...]:
        total = sum(file.size for file in touched)
        return self._transaction.write(frame.coalesce(1 + total // _FILE_BYTES))


def _values(clause: Clause, schema: StructType) -> list[Column]:
    values = clause.values or {}
    return [
        values.get(item.name, F.lit(None)).cast(item.dataType).alias(item.name) for item in schema
    ]
