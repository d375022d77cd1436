"""Apply a table's settings to the changes of its schema: evolve, ignore, or stop.

A stop is a ``DataError``, before anything of the batch is written. The user then decides, sets the
policy for this kind and table, and runs again. A change that is evolved or ignored, and that a user
may want to know of, is reported once, in a warning. No policy applies to columns that the user
declared: the declaration is the user's decision.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import DataType

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.defaults import Default
from lakeingest.decode.types.versions import stored_as
from lakeingest.errors import DataError, load_anew
from lakeingest.plan.evolution import Change, Kind, Policies, Policy, SourceSchema, changes
from lakeingest.plan.presence import Presence
from lakeingest.widening import widens

_SCHEMAS = "`value.converter.schemas.enable=true`, or Avro"
_REPAIR = "To repair them, snapshot the table again (Debezium's incremental snapshot)."


@dataclass(frozen=True)
class SchemaPolicy:
    """The schema policy of one table: its settings, applied to the changes of its schema.

    Attributes:
        collection: The table.
        lake: Type of each of the source's columns in the lake; None: there is no table yet.
        before: Schema of the source's table after the last batch; None: unknown.
        policies: Policy for each kind of change.
        declared: Columns that the user declared, to which no policy applies.
    """

    collection: str
    lake: Mapping[str, DataType] | None
    before: SourceSchema | None
    policies: Policies
    declared: Collection[str]

    def taken(self, names: Sequence[str]) -> list[str]:
        """Return the names that may be columns of the lake."""
        return [name for name in names if not self._ignores(name)]

    def _ignores(self, name: str) -> bool:
        new = self.lake is not None and name not in self.lake and name not in self.declared
        return new and self.policies[Kind.ADDED] is Policy.IGNORE

    def judge(
        self,
        now: Sequence[SourceColumn],
        present: Presence,
        warn: Callable[[str], None],
        *,
        described: bool,
    ) -> None:
        """Apply the policies to the source's schema changes: raise an error, or warn.

        Args:
            now: The source's columns after this batch; empty: no record shows them.
            present: Presence of columns in the batch's records.
            warn: Takes a warning.
            described: Whether the records carry their schema.

        Raises:
            DataError: The policy of a change is ``stop``.
        """
        for text in self._rename_warnings(present):
            warn(f"Table '{self.collection}': {text}")
        if self.lake is None or not now:
            return
        schema_changes = changes(self.lake, self.before, now)
        for change in schema_changes:
            if self.policies[change.kind] is Policy.STOP and change.column not in self.declared:
                raise self._stop_error(change)
        for text in self._warnings(schema_changes, present, described=described):
            warn(f"Table '{self.collection}': {text}")

    def columns(
        self, columns: Sequence[SourceColumn], left_out: Collection[str]
    ) -> tuple[SourceColumn, ...]:
        """Return the columns to decode and merge, in the types that the table gets."""
        lake_columns = [c for c in columns if c.name not in left_out and not self._ignores(c.name)]
        return tuple(self._with_policy_type(column) for column in lake_columns)

    def fills(self, present: Presence) -> dict[str, Default]:
        """Return the defaults that old rows get in columns that this batch adds."""
        return {name: text for name, text in present.fills.items() if not self._ignores(name)}

    def _with_policy_type(self, column: SourceColumn) -> SourceColumn:
        """Return the column; with the lake's type if the policy ignores its change of type."""
        stored = (self.lake or {}).get(column.name)
        if stored is None or column.name in self.declared or widens(column.type.spark, stored):
            return column
        kind = Kind.WIDENED if widens(stored, column.type.spark) else Kind.RETYPED
        if self.policies[kind] is not Policy.IGNORE:
            return column
        return replace(column, type=stored_as(column.type, stored))

    def _stop_error(self, change: Change) -> DataError:
        name = change.kind.value
        ways = "ignore" if change.kind is Kind.RETYPED else "evolve or ignore"
        message = (
            f"Table '{self.collection}': {change}. Nothing of this batch was published. To go on, "
            f"set lakeingest.table.{self.collection}.schema.{name} (or lakeingest.schema.{name}) "
            f"to {ways}; `lakeingest config-reference` says what each does."
        )
        if change.kind is Kind.RETYPED:
            message += (
                f" Or declare the new type with lakeingest.table.{self.collection}.schema and "
                f"{load_anew(self.collection)}."
            )
        return DataError(message)

    def _warnings(
        self, schema_changes: Sequence[Change], present: Presence, *, described: bool
    ) -> list[str]:
        added = [change.column for change in schema_changes if change.kind is Kind.ADDED]
        dropped = [change.column for change in schema_changes if change.kind is Kind.DROPPED]
        warnings = []
        if dropped and self.policies[Kind.DROPPED] is Policy.EVOLVE:
            warnings.append(
                f"the source no longer sends {_quote(dropped)}. The lake keeps what its rows have "
                "there; rows that come later have NULL. (A renamed column is one that goes and "
                "another one that comes.)"
            )
        ignored = [name for name in added if self._ignores(name)]
        if ignored:
            warnings.append(
                f"{_quote(ignored)} of the source is not taken in (schema.added=ignore). Taken in "
                "later, it will be NULL in rows that do not change after that."
            )
        back = [name for name in added if name in (self.lake or {}) and name not in self.declared]
        if back:
            warnings.append(
                f"{_quote(back)} is sent again. Rows that did not change since have what they had "
                f"before it went, also if it was dropped and added anew. {_REPAIR}"
            )
        new = [name for name in added if name not in ignored and name not in back]
        return [*warnings, *self._default_warnings(new, present, described=described)]

    def _default_warnings(
        self, new: Sequence[str], present: Presence, *, described: bool
    ) -> list[str]:
        warnings = []
        if new and not described:
            warnings.append(
                f"{_quote(new)} is new. If it was added with a DEFAULT (or, in MySQL or MariaDB, "
                "NOT NULL), rows that did not change since have that value in the database and "
                f"NULL in the lake: JSON without schemas does not tell it ({_SCHEMAS} does). "
                f"{_REPAIR}"
            )
        if present.stand_ins:
            warnings.append(
                f"{_quote(present.stand_ins)} was added with a DEFAULT that is an expression, "
                "whose value no event tells. Rows that did not change since have NULL in the lake. "
                f"{_REPAIR}"
            )
        warnings += self._zero_warnings(present)
        columns_before = self.before.by_name() if self.before else {}
        late = [name for name in new if name in columns_before]
        if late:
            warnings.append(
                f"{_quote(late)} is taken in now, but was there before: it is NULL in rows that "
                f"did not change since. {_REPAIR}"
            )
        return warnings

    def _rename_warnings(self, present: Presence) -> list[str]:
        """Return warnings that also the batch that makes the table gives, if it has older rows."""
        renamed = self.taken(present.renamed)
        if not renamed:
            return []
        return [
            f"{_quote(renamed)} came when another column went, so it may have been renamed: rows "
            "that did not change since then have the old column's value in the database, else the "
            "DEFAULT. No event tells which, and they have NULL in the lake. "
            f"{_REPAIR}"
        ]

    def _zero_warnings(self, present: Presence) -> list[str]:
        zeros, unfilled = self.taken(present.zeros), self.taken(present.unfilled)
        warnings = []
        if zeros:
            warnings.append(
                f"{_quote(zeros)} was added NOT NULL without a DEFAULT. Rows that did not change "
                "since have 0 or the empty text there, as the server gives them, unless it numbers "
                f"or computes them (AUTO_INCREMENT, GENERATED), which no event tells. {_REPAIR}"
            )
        if unfilled:
            warnings.append(
                f"{_quote(unfilled)} was added NOT NULL, and no event tells the value that rows "
                "which did not change since have in the database. They have NULL in the lake. "
                f"{_REPAIR}"
            )
        return warnings


def _quote(names: Sequence[str]) -> str:
    quoted = ", ".join(f"'{name}'" for name in names)
    return f"column {quoted}" if len(names) == 1 else f"columns {quoted}"
