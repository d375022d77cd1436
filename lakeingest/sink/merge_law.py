"""State the merge law as clauses, for rows of the table and for payloads without a row.

There are two forms. When every payload has all its columns, the table has no partial rows and the
batch has no truncate, the row's position alone decides. Otherwise each fillable column has its own
position. So an update that omits a column keeps the table's value, and an older change that arrives
late can still supply a column that a newer change omits.

A column is *missing* when no value of it is known above the last delete. With
``toast.missing=fail`` the write itself raises the error, so there is no commit, and P5 holds
without a second read of the table.

The law is a list of clauses and not a complete MERGE, because two writers apply it: the engine's
MERGE (``delta/merge.py``), and a join of table and payloads (``merge_join.py``). With one law for
both, they cannot diverge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.engine.known_columns import made_once
from lakeingest.frame_schemas import FIRST_OP, MetadataColumns
from lakeingest.named import quoted
from lakeingest.position import is_missing, missing_below, present_entries

MISSING_VALUE = "LAKEINGEST_MISSING_VALUE"
"""Start of a write's error message when an unavailable value has no earlier value."""


@made_once
def source(name: str) -> Column:
    """Return a column of the changeset, whose frame needs the alias ``s``."""
    return F.col(f"s.{quoted(name)}")


@made_once
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
    entries = F.map_filter(positions, lambda name, at: ~(name.isin(*forgiven) & is_missing(at)))
    return F.when(F.size(entries) > 0, entries)


def checked_positions(
    positions: Column, deleted: Column, forgiven: Sequence[str], *, fails: bool
) -> Column:
    """Return column positions without forgiven marks; fail for other missing values.

    Args:
        positions: The positions.
        deleted: Whether the row is deleted.
        forgiven: See ``Changeset``.
        fails: Whether a column without any known value fails the write.
    """
    positions = without_forgiven(positions, forgiven)
    return refuse_missing(positions, deleted) if fails else positions


@made_once
def _source_positions(
    positions: str, deleted: str, forgiven: tuple[str, ...], *, fails: bool
) -> Column:
    return checked_positions(source(positions), source(deleted), forgiven, fails=fails)


@made_once
def _same_key(key: tuple[str, ...]) -> Column:
    same = F.lit(True)
    for name in key:
        same = same & (target(name) == source(name))
    return same


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


@dataclass(frozen=True)
class MergeLaw:
    """The clauses of one table and changeset, over the aliases ``s`` and ``t``.

    Batches of a table mostly have equal laws, because a law knows no rows, but for a truncate.

    Attributes:
        names: Names of the metadata columns.
        schema: The table's schema after the merge.
        hard: Whether a delete removes the row.
        null_missing: Whether a column without any known value becomes NULL
            (``toast.missing=null``) and does not fail the write.
        partial: Whether each fillable column is decided by its own position.
        columns: These and the following: see ``Changeset``.
    """

    names: MetadataColumns
    schema: StructType
    hard: bool
    null_missing: bool
    partial: bool
    columns: tuple[str, ...]
    key: tuple[str, ...]
    fillable: tuple[str, ...]
    partition: tuple[str, ...]
    forgiven: tuple[str, ...]
    deletes: bool
    floor: str
    floor_event: tuple[tuple[str, object], ...]

    def __hash__(self) -> int:
        """Hash the law of a batch without a truncate.

        Raises:
            TypeError: Another batch has another truncate, so nothing is kept by such a law.
        """
        if self.floor:
            message = "the law of a truncate is that of one batch"
            raise TypeError(message)
        return hash((self.schema, self.key, self.columns, self.fillable, self.partial))

    @cached_property
    def newer(self) -> Column:
        """Return whether the payload is newer than the row."""
        return source(self.names.position) > target(self.names.position)

    def same_key(self) -> Column:
        """Return the condition that joins a row with its payload."""
        return _same_key(self.key)

    def matched(self) -> list[Clause]:
        """Return the clauses for a row that has a payload; only the first one can remove it."""
        names = self.names
        deleted = source(names.deleted)
        clauses = []
        if self.deletes:
            tombstone = {
                **self._tombstone_values(source(names.position)),
                **{name: source(name) for name in names.event},
                # A delete has only the key, so the row keeps its values of the partition columns.
                **{name: target(name) for name in self.partition},
            }
            clauses.append(Clause(self.newer & deleted, None if self.hard else tombstone))
        if not self.partial:
            values = {**self._payload_values(), **self._reset_dropped_columns()}
            return [*clauses, Clause(self.newer, values)]
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
        values = {**self._values_by_column(), **self._reset_dropped_columns()}
        return [*clauses, Clause(self.newer | supplement, values)]

    def inserted(self) -> Clause:
        """Return the clause for a payload that has no row."""
        keep = ~source(self.names.deleted) if self.hard else F.lit(True)
        return Clause(keep, self._payload_values())

    def swept(self) -> Clause | None:
        """Return the clause for a row without a payload; None: the batch has no truncate."""
        floor = self.floor
        if not floor:
            return None
        names = self.names
        below = target(names.position) < F.lit(floor)
        if self.hard:
            return Clause(below, None)
        event = {name: F.lit(value) for name, value in self.floor_event}
        tombstone = {**self._tombstone_values(F.lit(floor)), **event}
        return Clause(below & ~target(names.deleted), tombstone)

    def _tombstone_values(self, position: Column) -> dict[str, Column]:
        names = self.names
        no_positions = F.lit(None).cast("map<string,string>")
        return {
            names.position: position,
            names.deleted: F.lit(True),
            names.column_positions: no_positions,
        }

    def _payload_values(self) -> dict[str, Column]:
        names = self.names
        values = {name: source(name) for name in self._supplied()}
        values[names.position] = source(names.position)
        values[names.deleted] = source(names.deleted)
        values[names.column_positions] = _source_positions(
            names.column_positions,
            names.deleted,
            self.forgiven,
            fails=not self.null_missing,
        )
        return values

    def _reset_dropped_columns(self) -> dict[str, Column]:
        """Reset columns that the source has dropped, for a key that is inserted after a delete.

        Otherwise these columns keep their values. Not detected: a row that one batch changes,
        deletes and inserts. It keeps the old row's values in the dropped columns.
        """
        others = (*self._supplied(), *self.names.names, self.names.record_key)
        dropped = sorted(self._existing - set(others))
        reinserted = self.newer & (target(self.names.deleted) | (source(FIRST_OP) == "d"))
        continues = ~F.coalesce(reinserted, F.lit(False))
        return {name: F.when(continues, target(name)) for name in dropped}

    @cached_property
    def _existing(self) -> set[str]:
        return set(self.schema.fieldNames())

    def _supplied(self) -> Iterator[str]:
        """Yield the table's columns that a payload supplies: the source's and RFC-39's."""
        for name in (*self.columns, *self.names.event):
            if name in self._existing:
                yield name

    def _fillable(self) -> list[str]:
        return [name for name in self.fillable if name in self._existing]

    def _values_by_column(self) -> dict[str, Column]:
        names = self.names
        fillable = self._fillable()
        row_position = F.greatest(source(names.position), target(names.position))
        values: dict[str, Column] = {}
        entries = []
        for name in self._supplied():
            if name not in fillable:
                values[name] = F.when(self.newer, source(name)).otherwise(target(name))
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
        deleted = F.when(self.newer, F.lit(False)).otherwise(target(names.deleted))
        positions = F.when(F.size(older) > 0, older)
        values[names.position] = row_position
        values[names.deleted] = deleted
        values[names.column_positions] = checked_positions(
            positions, deleted, self.forgiven, fails=not self.null_missing
        )
        return values

    def _supplies_newer_value(self) -> Column:
        """Return whether the changeset has a newer value of some column than the table."""
        more = F.lit(False)
        for name in self._fillable():
            more = more | (self._source_position(name) > self._target_position(name))
        return more

    def _source_position(self, name: str) -> Column:
        names = self.names
        own = F.coalesce(F.element_at(source(names.column_positions), name), source(names.position))
        # A redelivered delete at the row's position applied before the row got this key (see
        # ``matched``), so its mark hides none of the row's values.
        at_row = (own == missing_below(target(names.position))) & ~target(names.deleted)
        own = F.when(at_row, missing_below()).otherwise(own)
        return F.when(source(names.deleted), missing_below(source(names.position))).otherwise(own)

    def _target_position(self, name: str) -> Column:
        names = self.names
        own = F.coalesce(F.element_at(target(names.column_positions), name), target(names.position))
        is_deleted = target(names.deleted)
        if not self.floor:
            return F.when(is_deleted, missing_below(target(names.position))).otherwise(own)
        floor = F.lit(self.floor)
        return (
            F.when(target(names.position) < floor, missing_below(floor))
            .when(is_deleted, missing_below(target(names.position)))
            .otherwise(own)
        )
