"""Show what a publication changed: each row before and after it.

A row has changed where its place in the source's log did, or that of one of its values, and its
values, too. An incremental snapshot, or a connector that sends a row again, changes the place; the
default of a new column changes the values. The rows of a transaction are above the publication
before, so only these are looked for, and their earlier rows by key. A deleted row stays as a
tombstone. Where deletes remove rows (``lakeingest.deletes=hard``), the keys of both publications
are compared.

Rejected: Delta's change data feed. It shows an update as a delete and an insert where rows are
hidden by deletion vectors, costs a task per version and file, and Hudi's is another one.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.cast import EXACT_JSON
from lakeingest.errors import UsageError
from lakeingest.frame_schemas import OURS, MetadataColumns
from lakeingest.named import all_named, named
from lakeingest.reader.snapshot import Snapshot

_BEFORE, _AFTER = f"{OURS}before", f"{OURS}after"
_BEFORE_AT, _AFTER_AT = f"{_BEFORE}_at", f"{_AFTER}_at"


class Diff:
    """What one publication changed, table by table."""

    def __init__(
        self, before: Snapshot | None, after: Snapshot, above: str, names: MetadataColumns
    ) -> None:
        """Bind to two publications, one right after the other.

        Args:
            before: The earlier one; None: there is none.
            after: The later one.
            above: Position that all changed rows are above; empty: not known.
            names: Names of the metadata columns.
        """
        self._before = before
        self._after = after
        self._above = above
        self._names = names

    def __repr__(self) -> str:
        """Return what a notebook shows of it."""
        return f"<Diff: batch {self.batch}, {len(self.tables())} tables>"

    @property
    def batch(self) -> int:
        """Number of the publication."""
        return self._after.batch

    def tables(self) -> list[str]:
        """Names of the tables of which the publication has a new version, sorted."""
        earlier = _versions(self._before) if self._before else {}
        return [name for name, v in _versions(self._after).items() if v != earlier.get(name)]

    def table(self, name: str) -> DataFrame:
        """Return the rows of a table that the publication changed.

        Not those whose values are the same, or of which only a new column got its default.

        Columns: ``op`` (string: ``insert``, ``update`` or ``delete``), ``before`` and ``after``
        (structs of the table's columns as each publication has them; NULL where there is no row).

        Raises:
            UsageError: The publication has no such table, or the table got another key.
        """
        key = list(self._after.key(name))
        after = self._after.table(name, metadata=True)
        new = after.where(F.col(self._names.position) > F.lit(self._above))
        changed = new.select(*all_named(key), *self._state(new, _AFTER))
        if self._before is None or name not in self._before.versions:
            return _shown(changed.withColumns({_BEFORE: _no_row(changed), _BEFORE_AT: _no_text()}))
        if {*key} != {*self._before.key(name)}:
            message = (
                f"Table '{name}' was loaded anew with another key, so its rows before and after "
                f"publication {self.batch} cannot be compared."
            )
            raise UsageError(message)
        earlier = self._before.table(name, metadata=True)
        old = earlier.select(*all_named(key), *self._state(earlier, _BEFORE))
        own = old
        if self._above:
            # The rows of a transaction are few.
            keys = F.broadcast(changed.select(*all_named(key)))
            own = old.join(keys, key, "left_semi")
        joined = changed.join(own, key, "left")
        if self._after.removes_rows(name):
            gone = old.join(after.select(*all_named(key)), key, "left_anti")
            nothing = {_AFTER: _no_row(changed), _AFTER_AT: _no_text()}
            joined = joined.unionByName(gone.withColumns(nothing))
        return _shown(joined)

    def _state(self, rows: DataFrame, name: str) -> tuple[Column, Column]:
        """Return a row of a publication, and its place: the positions of row and values."""
        positions = F.col(self._names.position), F.to_json(self._names.column_positions)
        return self._row(rows).alias(name), F.concat_ws(" ", *positions).alias(f"{name}_at")

    def _row(self, rows: DataFrame) -> Column:
        """Return the source's columns of a live row as a struct; NULL for a tombstone."""
        ours = {*self._names.names, *self._names.keyless}
        columns = (named(name) for name in rows.columns if name not in ours)
        return F.when(~F.col(self._names.deleted), F.struct(*columns))


def _versions(snapshot: Snapshot) -> dict[str, tuple[str, int]]:
    """Return folder and version of each table: a load has versions of its own."""
    return {name: (snapshot.folder(name), v) for name, v in snapshot.versions.items()}


def _no_text() -> Column:
    return F.lit(None).cast("string")


def _no_row(changed: DataFrame) -> Column:
    return F.lit(None).cast(changed.schema[_AFTER].dataType)


def _shown(rows: DataFrame) -> DataFrame:
    before, after = F.col(_BEFORE), F.col(_AFTER)
    op = F.when(after.isNull(), "delete").when(before.isNull(), "insert").otherwise("update")
    moves = ~F.col(_BEFORE_AT).eqNullSafe(F.col(_AFTER_AT))
    # As text, since Spark compares no maps.
    differs = ~F.to_json(before, EXACT_JSON).eqNullSafe(F.to_json(after, EXACT_JSON))
    return rows.where(moves & differs).select(
        op.alias("op"), before.alias("before"), after.alias("after")
    )
