"""The merge law as clauses: what becomes of a row of the table, and of a payload without one.

Two forms. Where every payload has all its columns, the table has no partial rows and nothing was
truncated, the row position alone decides. Otherwise each fillable column is decided by its own
position, so an update that left a column out keeps the table's value, and an older change that
arrives late can still supply a column that a newer one left out.

A column for which no value is known above the last delete is *missing*; with ``toast.missing=fail``
the write itself raises, so the commit does not happen and P5 holds without a second look at the
table.

Clauses and not a finished MERGE, because two ways of writing obey them: the engine's MERGE
(``delta_merge``) and a rewrite of the touched files (``delta_rewrite``). One law cannot drift
apart.
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
"""Start of the message of a write that met an unavailable value with nothing before it."""

SMALL_BYTES = 16 * 1024 * 1024
"""A changeset of at most this much text is sent to every task instead of shuffling the table."""


def small(frame: DataFrame, changeset: Changeset) -> DataFrame:
    """Mark a frame of the changeset's rows for broadcast, if it is small.

    Spark cannot know: a held frame has the size estimate of the plan that it was cut off from.
    """
    return F.broadcast(frame) if changeset.size <= SMALL_BYTES else frame


def source(name: str) -> Column:
    """A column of the changeset, which is to be aliased ``s``."""
    return F.col(f"s.{quoted(name)}")


def target(name: str) -> Column:
    """A column of the table, which is to be aliased ``t``."""
    return F.col(f"t.{quoted(name)}")


def refuse_missing(positions: Column, deleted: Column) -> Column:
    """Return ``positions``, or fail where a live row has a column without any known value."""
    absent = F.coalesce(F.exists(F.map_values(positions), is_missing), F.lit(False))
    failure = F.raise_error(F.lit(MISSING_VALUE)).cast("map<string,string>")
    return F.when(absent & ~deleted, failure).otherwise(positions)


def without_forgiven(positions: Column, forgiven: Sequence[str]) -> Column:
    """Return column positions without the marks of missing values in ``forgiven`` columns."""
    if not forgiven:
        return positions
    kept = F.map_filter(positions, lambda name, at: ~(name.isin(*forgiven) & is_missing(at)))
    return F.when(F.size(kept) > 0, kept)


@dataclass(frozen=True)
class Clause:
    """What happens on a condition.

    Attributes:
        condition: When; of several clauses the first one that holds.
        values: New values by column; columns that are not named keep theirs (of an insert: NULL).
            Null removes the row.
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
            changeset: What is merged.
            existing: Names of the table's columns.
            hard: Whether a delete removes the row.
            null_missing: Whether a column without any known value becomes NULL
                (``toast.missing=null``) instead of failing.
        """
        self._names = names
        self._changeset = changeset
        self._existing = existing
        self._hard = hard
        self._null_missing = null_missing
        self._newer = source(names.position) > target(names.position)

    def same_key(self) -> Column:
        """Condition that joins a row with its payload."""
        same = F.lit(True)
        for name in self._changeset.key:
            same = same & (target(name) == source(name))
        return same

    def matched(self, *, partial: bool) -> list[Clause]:
        """What becomes of a row that has a payload.

        Args:
            partial: Whether columns are decided one by one.
        """
        names = self._names
        deleted = source(names.deleted)
        clauses = []
        if self._changeset.deletes:
            bury = None if self._hard else self._bury()
            clauses.append(Clause(self._newer & deleted, bury))
        if not partial:
            return [*clauses, Clause(self._newer, {**self._whole(), **self._reborn()})]
        # Not only below the row: a change that comes again at the row's own position may bring an
        # older one with it that has what it left out.
        # A delete at the row's own place was taken before the row came to the key
        # (``payload/deferred_key_order.py``), and supplies nothing.
        gone = deleted & (source(names.position) == target(names.position))
        late = (
            (source(names.position) <= target(names.position))
            & ~gone
            & ~target(names.deleted)
            & target(names.column_positions).isNotNull()
            & self._supplies()
        )
        return [*clauses, Clause(self._newer | late, {**self._by_column(), **self._reborn()})]

    def inserted(self) -> Clause:
        """What becomes of a payload that has no row."""
        keep = ~source(self._names.deleted) if self._hard else F.lit(True)
        return Clause(keep, self._whole())

    def swept(self) -> Clause | None:
        """What becomes of a row without a payload; null where the batch has no truncate."""
        floor = self._changeset.floor
        if not floor:
            return None
        names = self._names
        below = target(names.position) < F.lit(floor)
        if self._hard:
            return Clause(below, None)
        bury = {
            names.position: F.lit(floor),
            names.deleted: F.lit(True),
            names.column_positions: F.lit(None).cast("map<string,string>"),
            **{name: F.lit(value) for name, value in self._changeset.floor_event.items()},
        }
        return Clause(below & ~target(names.deleted), bury)

    def _bury(self) -> dict[str, Column]:
        names = self._names
        return {
            names.position: source(names.position),
            names.deleted: F.lit(True),
            names.column_positions: F.lit(None).cast("map<string,string>"),
            **{name: source(name) for name in names.event},
            # A delete knows no more than the key: the row is marked, or taken away, where it lies.
            **{name: target(name) for name in self._changeset.partition},
        }

    def _whole(self) -> dict[str, Column]:
        names = self._names
        values = {name: source(name) for name in self._columns() if name in self._existing}
        values[names.position] = source(names.position)
        values[names.deleted] = source(names.deleted)
        values[names.column_positions] = self._guarded(
            source(names.column_positions), source(names.deleted)
        )
        return values

    def _reborn(self) -> dict[str, Column]:
        """Empty the columns that the source has no more where a key was deleted and is used again.

        They keep their values otherwise. Not seen: a row that is changed, deleted and inserted in
        one batch; it keeps the old one's, in columns that are no more.
        """
        others = (*self._columns(), *self._names.names, self._names.record_key)
        gone = sorted(self._existing - set(others))
        died = self._newer & (target(self._names.deleted) | (source(FIRST_OP) == "d"))
        lives = ~F.coalesce(died, F.lit(False))
        return {name: F.when(lives, target(name)) for name in gone}

    def _columns(self) -> Iterator[str]:
        """Columns that a payload has a word on: the source's and, always, RFC-39's."""
        yield from self._changeset.columns
        yield from self._names.event

    def _guarded(self, positions: Column, deleted: Column) -> Column:
        positions = without_forgiven(positions, self._changeset.forgiven)
        return positions if self._null_missing else refuse_missing(positions, deleted)

    def _by_column(self) -> dict[str, Column]:
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
            ours, theirs = self._source_position(name), self._target_position(name)
            best = F.greatest(ours, theirs)
            values[name] = F.when(
                ~is_missing(best),
                F.when(ours > theirs, source(name)).otherwise(target(name)),
            )
            entry = F.when(best != row_position, best)
            entries.append(F.struct(F.lit(name).alias("key"), entry.alias("value")))
        older = present_entries(entries)
        deleted = F.when(self._newer, F.lit(False)).otherwise(target(names.deleted))
        positions = F.when(F.size(older) > 0, older)
        values[names.position] = row_position
        values[names.deleted] = deleted
        values[names.column_positions] = self._guarded(positions, deleted)
        return values

    def _supplies(self) -> Column:
        """Tell whether the changeset knows more of some column than the table does."""
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
        gone = target(names.deleted)
        if not self._changeset.floor:
            return F.when(gone, missing_below(target(names.position))).otherwise(own)
        floor = F.lit(self._changeset.floor)
        return (
            F.when(target(names.position) < floor, missing_below(floor))
            .when(gone, missing_below(target(names.position)))
            .otherwise(own)
        )


def inserted_rows(payloads: DataFrame, law: MergeLaw, schema: StructType) -> DataFrame:
    """Return payloads without a row as rows of the table.

    Args:
        payloads: The changeset's frame, or a part of it.
        law: The merge law of the changeset.
        schema: The table's schema, which the rows have then.
    """
    clause = law.inserted()
    return payloads.alias("s").where(clause.condition).select(*inserted_values(clause, schema))


def inserted_values(clause: Clause, schema: StructType) -> list[Column]:
    """Return the table's columns as an insert's clause gives them; NULL where it names none."""
    values = clause.values or {}
    return [
        values.get(item.name, F.lit(None)).cast(item.dataType).alias(item.name) for item in schema
    ]
