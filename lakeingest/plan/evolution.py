"""Find the changes of a source's schema, as data, and what each kind means for the lake.

Three schemas are compared. The *lake's* columns and types: a batch must fit into them. The source's
table after the *last batch* (stored in the table's own commit, ``CommitNote.schema``): it decides
what is a change. A column that the lake has and that the source has not sent for a year is no
change, and the lake has no nullability, defaults and order. The batch's records show what the
source has *now*. Rejected: compare with the lake alone. Every batch would report the same dropped
column, and Spark would have to look into every record for it (``decode.row.Absences``).

The settings choose ``evolve``, ``ignore`` or ``stop`` for each kind; ``evolve`` is the default
where it loses no value:

* ``added``: the column is added. Old rows get its default where the records show it (or the zero
  that MySQL gives them, ``implicit.py``), else NULL.
* ``dropped``: the column and its values stay, because the lake cannot get them back. Rows that come
  later have NULL there. (``ignore``: the same, without a warning.)
* ``widened``: the lake's type becomes the wider one. (``ignore``: it stays; a value that does not
  fit stops the run.)
* ``narrowed``: every value fits, so the lake's type stays. It is a kind of its own only so that
  its policy can be ``stop``.
* ``retyped``: neither type holds the other's values; ``stop``. (``ignore``: values are read as the
  lake's type; a value that changes by this stops the run.)
* ``reordered``, ``nullability``, ``default``: the lake's columns are matched by name, are all
  nullable, and have no defaults. So the change is only noted in the history.

A renamed column looks like one dropped and one added column: Debezium sends no more than that. So a
column that comes in the step in which another one goes gets no default (``presence.py``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyspark.sql.types import DataType

from lakeingest.decode.columns import SourceColumn
from lakeingest.named import quoted
from lakeingest.widening import widens


class Kind(str, Enum):
    """Kinds of changes, as settings name them."""

    ADDED = "added"
    DROPPED = "dropped"
    WIDENED = "widened"
    NARROWED = "narrowed"
    RETYPED = "retyped"
    REORDERED = "reordered"
    NULLABILITY = "nullability"
    DEFAULT = "default"


class Policy(str, Enum):
    """How to handle a schema change."""

    EVOLVE = "evolve"
    IGNORE = "ignore"
    STOP = "stop"


Policies = Mapping[Kind, Policy]

DEFAULTS: Policies = {kind: Policy.STOP if kind is Kind.RETYPED else Policy.EVOLVE for kind in Kind}


@dataclass(frozen=True)
class DescribedColumn:
    """A column of the source's table.

    Attributes:
        name: Its name.
        type: Type in the lake, as Spark writes it.
        nullable: Whether it may be NULL; None: unknown.
        default: Its default in JSON; None: it has none, or the default is unknown.
    """

    name: str
    type: str
    nullable: bool | None = None
    default: str | None = None

    def ddl(self) -> str:
        """Return the column as SQL would declare it."""
        mark = " NOT NULL" if self.nullable is False else ""
        default = f" DEFAULT {self.default}" if self.default is not None else ""
        return f"{quoted(self.name)} {self.type.upper()}{mark}{default}"


@dataclass(frozen=True)
class SourceSchema:
    """Schema of the source's table."""

    columns: tuple[DescribedColumn, ...]

    @classmethod
    def of(cls, columns: Sequence[SourceColumn]) -> SourceSchema:
        """Describe columns as the records show them."""
        return cls(
            tuple(
                DescribedColumn(c.name, c.type.spark.simpleString(), c.nullable, c.default)
                for c in columns
            )
        )

    @classmethod
    def from_json(cls, text: str) -> SourceSchema | None:
        """Parse the text of ``to_json``; return None for the empty text."""
        return cls(tuple(DescribedColumn(*item) for item in json.loads(text))) if text else None

    def to_json(self) -> str:
        """Serialise to a short text: every commit of the table holds it."""
        items = []
        for column in self.columns:
            item = [column.name, column.type, column.nullable, column.default]
            while item[-1] is None:
                item.pop()
            items.append(item)
        return json.dumps(items, separators=(",", ":"), ensure_ascii=False)

    def ddl(self) -> str:
        """Return the columns as SQL would declare them, for people."""
        return ", ".join(column.ddl() for column in self.columns)

    def by_name(self) -> dict[str, DescribedColumn]:
        """Return the columns by name."""
        return {column.name: column for column in self.columns}


@dataclass(frozen=True)
class Change:
    """One change of a table's schema.

    Attributes:
        kind: Kind of the change.
        column: The column; empty if the change concerns all columns.
        before: Type in the lake; empty for kinds that do not compare types.
        now: What the source has now: a type, or ``nullable`` or ``NOT NULL``; else empty.
    """

    kind: Kind
    column: str = ""
    before: str = ""
    now: str = ""

    def __str__(self) -> str:
        """Describe the change in a few words, without any value of a row."""
        if self.kind is Kind.REORDERED:
            return "its columns changed their order"
        text = f"column '{self.column}' was {self.kind.value}"
        if self.kind is Kind.NULLABILITY:
            text = f"column '{self.column}' became {self.now}"
        elif self.kind is Kind.DEFAULT:
            text = f"the default of column '{self.column}' changed"
        elif self.before:
            text += f", from {self.before} in the lake to {self.now} at the source"
        elif self.now:
            text += f" as {self.now}"
        return text


def changes(
    lake: Mapping[str, DataType],
    before: SourceSchema | None,
    now: Sequence[SourceColumn],
) -> tuple[Change, ...]:
    """Compare a table with its source's table now; return the changes.

    Args:
        lake: Type of each of the lake's columns, those of the source only.
        before: The source's table after the last batch; None: unknown, the lake stands for it.
        now: The source's table after this batch.
    """
    columns_before = before.by_name() if before else {}
    changes_ = [
        change for column in now for change in _column_changes(column, lake, columns_before)
    ]
    names_now = {column.name for column in now}
    dropped = [name for name in (columns_before if before else lake) if name not in names_now]
    changes_ += [Change(Kind.DROPPED, name) for name in dropped]
    names = [column.name for column in now if column.name in columns_before]
    if names != [name for name in columns_before if name in names_now]:
        changes_.append(Change(Kind.REORDERED))
    return tuple(changes_)


def _column_changes(
    column: SourceColumn,
    lake: Mapping[str, DataType],
    columns_before: Mapping[str, DescribedColumn],
) -> list[Change]:
    source_type = column.type.spark
    type_name = source_type.simpleString()
    column_before = columns_before.get(column.name)
    column_changes = []
    if column.name not in lake or (columns_before and column_before is None):
        # The lake may have the column already: declared before it came, or from before it went.
        column_changes.append(Change(Kind.ADDED, column.name, "", type_name))
    if column.name not in lake:
        return column_changes
    lake_type = lake[column.name]
    if widens(source_type, lake_type):
        if (
            column_before is not None
            and column_before.type != type_name
            and source_type != lake_type
        ):
            column_changes.append(
                Change(Kind.NARROWED, column.name, lake_type.simpleString(), type_name)
            )
    else:
        change_kind = Kind.WIDENED if widens(lake_type, source_type) else Kind.RETYPED
        column_changes.append(Change(change_kind, column.name, lake_type.simpleString(), type_name))
    if column_before is None or column.nullable is None:
        return column_changes
    if column_before.nullable is not None and column_before.nullable != column.nullable:
        nullability = "nullable" if column.nullable else "NOT NULL"
        column_changes.append(Change(Kind.NULLABILITY, column.name, "", nullability))
    if column_before.nullable is not None and column_before.default != column.default:
        column_changes.append(Change(Kind.DEFAULT, column.name))
    return column_changes
