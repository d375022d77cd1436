"""State the merge law as clauses, for rows of the table and for payloads without a row.

There are two forms. When every payload has all its columns, the table has no partial rows and the
batch has no truncate, the row's position alone decides. Otherwise each fillable column has its own
position. So an update that omits a column keeps the table's value, and an older change that arrives
late can still supply a column that a newer change omits.

A column is *missing* when no value of it is known above the last delete. With
``toast.missing=fail`` the write itself raises the error, so there is no commit, and P5 holds
without a second read of the table.

The law is a list of clauses and not a complete MERGE, because two writers apply it: the engine's
MERGE (``delta/merge.py``) and a rewrite of the affected files (``delta/rewrite.py``). With one law
for both, they cannot diverge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.frame_schemas import FIRST_OP, MetadataColumns
from lakeingest.named import quoted
from lakeingest.position import is_missing, missing_below, present_entries
from lakeingest.sink.contract import Changeset

MISSING_VALUE = "LAKEINGEST_MISSING_VALUE"
"""Start of a write's error message when an unavailable value has no earlier value."""

SMALL_BYTES = 16 * 1024 * 1024
"""Largest text size of a changeset that Spark broadcasts instead of shuffling the table."""


def small(frame: DataFrame, changeset: Changeset) -> DataFrame:
    """Mark a frame of the changeset's rows for broadcast if it is small.

    Spark cannot decide this: a checkpointed frame keeps the size estimate of the plan that the
    checkpoint cut off.
    """
    return F.broadcast(frame) if changeset.size <= SMALL_BYTES else frame


def source(name: str) -> Column:
    """Return a column of the changeset, whose frame needs the alias ``s``."""
    return F.col(f"s.{quoted(name)}")


def target(name: str) -> Column:
    """Return a column of the table, whose frame needs the alias ``t``."""
    return F.col(f"t.{quoted(name)}")


def refuse_missing(positions: Column, deleted: Column) -> Column:
    """Return ``positions``; fail for a live row that has a column without any known value."""
    absent = F.coalesce(F.exists(F.map_values(positions), is_missing), F.lit(False))
    failure = F.raise_error(F.lit(MISSING_VALUE)).cast("map<string,string>")
    return F.when(absent & ~deleted, failure).otherwise(positions)


def without_forgiven(positions: Column, forgiven: Sequence[str]) -> Column:
    """Return column positions without the missing-value markers of ``forgiven`` columns."""
    if not forgiven:
        return positions
    kept = F.map_filter(positions, lambda name, at: ~(name.isin(*forgiven) & is_missing(at)))
    return F.when(F.size(kept) > 0, kept)


@dataclass(frozen=True)
class Clause:
    """A condition, and what to do with a row for which it holds.

    Attributes:
        condition: Condition of the clause. The first clause whose condition holds applies.
        values: New values by column. Other columns keep their values (in an insert: NULL). None:
            remove the row.
    """

    condition: Column
    values: Mapping[str, Column] | None


class MergeLaw:
    """The clauses of one table and changeset, over the aliases ``s`` and ``t``."""

    def __init__(
        self,
        names: MetadataColumns,
        changeset: Changeset,
        existing: set[str],
        *,
        hard: bool,
        null_missing: bool,
    ) -> None:
        """Bind the law to a changeset.

        Args:
            names: Names of the metadata columns.
            changeset: Payloads to merge.
            existing: Names of the table's columns.
            hard: Whether a delete removes the row.
            null_missing: Whether a column without any known value becomes NULL
                (``toast.missing=null``) and does not fail the write.
        """
        self._names = names
        self._changeset = changeset
        self._existing = existing
        self._hard = hard
        self._null_missing = null_missing
        self._newer = source(names.position) > target(names.position)

    def same_key(self) -> Column:
        """Return the condition that joins a row with its payload."""
        same = F.lit(True)
        for name in self._changeset.key:
            same = same & (target(name) == source(name))
        return same

    def matched(self, *, partial: bool) -> list[Clause]:
        """Return the clauses for a row that has a payload.

        Args:
            partial: Whether each fillable column is decided by its own position.
        """
        names = self._names
        deleted = source(names.deleted)
        clauses = []
        if self._changeset.deletes:
            tombstone = None if self._hard else self._tombstone_values()
            clauses.append(Clause(self._newer & deleted, tombstone))
        if not partial:
            return [
                *clauses,
                Clause(self._newer, {**self._payload_values(), **self._reset_dropped_columns()}),
            ]
        # Use `<=`: a redelivered change at the row's position may arrive with an older one that
        # supplies the columns it omits. A delete at the row's position applied before the row got
        # this key (``payload/deferred_key_order.py``), and supplies nothing.
        earlier_delete = deleted & (source(names.position) == target(names.position))
        supplement = (
            (source(names.position) <= target(names.position))
            & ~earlier_delete
            & ~target(names.deleted)
            & target(names.column_positions).isNotNull()
            & self._supplies_newer_value()
        )
        return [
            *clauses,
            Clause(
                self._newer | supplement,
                {**self._values_by_column(), **self._reset_dropped_columns()},
            ),
        ]

    def inserted(self) -> Clause:
        """Return the clause for a payload that has no row."""
        keep = ~source(self._names.deleted) if self._hard else F.lit(True)
        return Clause(keep, self._payload_values())

    def swept(self) -> Clause | None:
        """Return the clause for a row without a payload; None: the batch has no truncate."""
        floor = self._changeset.floor
        if not floor:
            return None
        names = self._names
        below = target(names.position) < F.lit(floor)
        if self._hard:
            return Clause(below, None)
        tombstone = {
            names.position: F.lit(floor),
            names.deleted: F.lit(True),
            names.column_positions: F.lit(None).cast("map<string,string>"),
            **{name: F.lit(value) for name, value in self._changeset.floor_event.items()},
        }
        return Clause(below & ~target(names.deleted), tombstone)

    def _tombstone_values(self) -> dict[str, Column]:
        names = self._names
        return {
            names.position: source(names.position),
            names.deleted: F.lit(True),
            names.column_positions: F.lit(None).cast("map<string,string>"),
            **{name: source(name) for name in names.event},
            # A delete has only the key, so the row keeps its values of the partition columns.
            **{name: target(name) for name in self._changeset.partition},
        }

    def _payload_values(self) -> dict[str, Column]:
        names = self._names
        values = {name: source(name) for name in self._columns() if name in self._existing}
        values[names.position] = source(names.position)
        values[names.deleted] = source(names.deleted)
        values[names.column_positions] = self._checked_positions(
            source(names.column_positions), source(names.deleted)
        )
        return values

    def _reset_dropped_columns(self) -> dict[str, Column]:
        """Reset columns that the source has dropped, for a key that is inserted after a delete.

        Otherwise these columns keep their values. Not detected: a row that one batch changes,
        deletes and inserts. It keeps the old row's values in the dropped columns.
        """
        others = (*self._columns(), *self._names.names, self._names.record_key)
        dropped = sorted(self._existing - set(others))
        reinserted = self._newer & (target(self._names.deleted) | (source(FIRST_OP) == "d"))
        continues = ~F.coalesce(reinserted, F.lit(False))
        return {name: F.when(continues, target(name)) for name in dropped}

    def _columns(self) -> Iterator[str]:
        """Yield the columns that a payload supplies: the source's and, always, RFC-39's."""
        yield from self._changeset.columns
        yield from self._names.event

    def _checked_positions(self, positions: Column, deleted: Column) -> Column:
        positions = without_forgiven(positions, self._changeset.forgiven)
        return positions if self._null_missing else refuse_missing(positions, deleted)

    def _values_by_column(self) -> dict[str, Column]:
        names = self._names
        fillable = [name for name in self._changeset.fillable if name in self._existing]
        row_position = F.greatest(source(names.position), target(names.position))
        values: dict[str, Column] = {}
        entries = []
        for name in self._columns():
            if name not in self._existing:
                continue
            if name not in fillable:
                values[name] = F.when(self._newer, source(name)).otherwise(target(name))
                continue
            source_at, target_at = self._source_position(name), self._target_position(name)
            newest = F.greatest(source_at, target_at)
            values[name] = F.when(
                ~is_missing(newest),
                F.when(source_at > target_at, source(name)).otherwise(target(name)),
            )
            entry = F.when(newest != row_position, newest)
            entries.append(F.struct(F.lit(name).alias("key"), entry.alias("value")))
        older = present_entries(entries)
        deleted = F.when(self._newer, F.lit(False)).otherwise(target(names.deleted))
        positions = F.when(F.size(older) > 0, older)
        values[names.position] = row_position
        values[names.deleted] = deleted
        values[names.column_positions] = self._checked_positions(positions, deleted)
        return values

    def _supplies_newer_value(self) -> Column:
        """Return whether the changeset has a newer value of some column than the table."""
        more = F.lit(False)
        for name in self._changeset.fillable:
            if name in self._existing:
                more = more | (self._source_position(name) > self._target_position(name))
        return more

    def _source_position(self, name: str) -> Column:
        names = self._names
        own = F.coalesce(F.element_at(source(names.column_positions), name), source(names.position))
        return F.when(source(names.deleted), missing_below(source(names.position))).otherwise(own)

    def _target_position(self, name: str) -> Column:
        names = self._names
        own = F.coalesce(F.element_at(target(names.column_positions), name), target(names.position))
        is_deleted = target(names.deleted)
        if not self._changeset.floor:
            return F.when(is_deleted, missing_below(target(names.position))).otherwise(own)
        floor = F.lit(self._changeset.floor)
        return (
            F.when(target(names.position) < floor, missing_below(floor))
            .when(is_deleted, missing_below(target(names.position)))
            .otherwise(own)
        )


def inserted_rows(payloads: DataFrame, law: MergeLaw, schema: StructType) -> DataFrame:
    """Return payloads without a row as new rows of the table.

    Args:
        payloads: The changeset's frame, or a part of it.
        law: The merge law of the changeset.
        schema: The table's schema, which the returned rows have.
    """
    clause = law.inserted()
    return payloads.alias("s").where(clause.condition).select(*inserted_values(clause, schema))


def inserted_values(clause: Clause, schema: StructType) -> list[Column]:
    """Return the table's columns from an insert's clause; NULL for columns that it omits."""
    values = clause.values or {}
    return [
        values.get(item.name, F.lit(None)).cast(item.dataType).alias(item.name) for item in schema
    ]
