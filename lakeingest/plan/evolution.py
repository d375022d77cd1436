"""What a source does to its schema, as data: a list of changes, and what each means for the lake.

Three views are compared. The *lake's* columns and types say what a batch must fit into. The
source's table as the *last batch* left it (kept in the table's own commit, ``CommitNote.schema``)
says what is a change at all: a column that the lake has and the source has not sent for a year is
no news, and nullability, defaults and order are not in the lake. The batch's records say what the
source has *now*. The rejected way, comparing with the lake alone, would tell of the same dropped
column in every batch, and would have to look into every record for it (``decode.row.Absences``).

What may be done is said by kind, as ``evolve``, ``ignore`` or ``stop``; ``evolve`` is the default
where no value is lost by it:

* ``added``: the column is added; old rows have its default where the records tell it (or the zero
  that MySQL gives them, ``implicit.py``), else NULL.
* ``dropped``: the column stays, and so do the values in it, because the lake cannot get them back.
  Rows that come later have NULL there. (``ignore``: the same, without a warning.)
* ``widened``: the lake's type becomes the wider one. (``ignore``: it stays; a value that does not
  fit stops the run.)
* ``narrowed``: every value fits, so the lake's type stays. It is a kind of its own only so that
  it can be asked to ``stop``.
* ``retyped``: neither type holds the other's values; ``stop``. (``ignore``: values are read as the
  lake's type; one that is not the same afterwards stops the run.)
* ``reordered``, ``nullability``, ``default``: the lake's columns go by name, are all nullable, and
  have no defaults, so there is nothing to do but to note it in the history.

A renamed column is one that is dropped and another one that is added: Debezium does not tell more.
So one that comes in the step in which another goes is given no default (``presence.py``).
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
    """What to do about a change."""

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
        nullable: Whether it may be NULL; null: not told.
        default: Its default in JSON; null: none, or not told.
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
    """What the source's table looks like."""

    columns: tuple[DescribedColumn, ...]

    @classmethod
    def of(cls, columns: Sequence[SourceColumn]) -> SourceSchema:
        """Describe columns as they are shown."""
        return cls(
            tuple(
                DescribedColumn(c.name, c.type.spark.simpleString(), c.nullable, c.default)
                for c in columns
            )
        )

    @classmethod
    def from_json(cls, text: str) -> SourceSchema | None:
        """Read what ``to_json`` wrote; null of the empty text."""
        return cls(tuple(DescribedColumn(*item) for item in json.loads(text))) if text else None

    def to_json(self) -> str:
        """Write it down in few words: it is in every commit of the table."""
        described = []
        for column in self.columns:
            item = [column.name, column.type, column.nullable, column.default]
            while item[-1] is None:
                item.pop()
            described.append(item)
        return json.dumps(described, separators=(",", ":"), ensure_ascii=False)

    def ddl(self) -> str:
        """Return it for people."""
        return ", ".join(column.ddl() for column in self.columns)

    def by_name(self) -> dict[str, DescribedColumn]:
        """Return the columns by name."""
        return {column.name: column for column in self.columns}


@dataclass(frozen=True)
class Change:
    """One change of a table's schema.

    Attributes:
        kind: What sort of change.
        column: The column; empty where it concerns all of them.
        before: Type in the lake, or what was said before, where something was.
        now: What the source has now.
    """

    kind: Kind
    column: str = ""
    before: str = ""
    now: str = ""

    def __str__(self) -> str:
        """Say it in a few words, without any value of a row."""
        if self.kind is Kind.REORDERED:
            return "its columns changed their order"
        told = f"column '{self.column}' was {self.kind.value}"
        if self.kind is Kind.NULLABILITY:
            told = f"column '{self.column}' became {self.now}"
        elif self.kind is Kind.DEFAULT:
            told = f"the default of column '{self.column}' changed"
        elif self.before:
            told += f", from {self.before} in the lake to {self.now} at the source"
        elif self.now:
            told += f" as {self.now}"
        return told


def changes(
    lake: Mapping[str, DataType],
    before: SourceSchema | None,
    now: Sequence[SourceColumn],
) -> tuple[Change, ...]:
    """Compare a table with what its source has now.

    Args:
        lake: Type of each of the lake's columns, those of the source only.
        before: The source's table after the last batch; null: not known, the lake stands for it.
        now: The source's table after this batch.
    """
    known = before.by_name() if before else {}
    found = [change for column in now for change in _of_column(column, lake, known)]
    have = {column.name for column in now}
    gone = [name for name in (known if before else lake) if name not in have]
    found += [Change(Kind.DROPPED, name) for name in gone]
    names = [column.name for column in now if column.name in known]
    if names != [name for name in known if name in have]:
        found.append(Change(Kind.REORDERED))
    return tuple(found)


def _of_column(
    column: SourceColumn, lake: Mapping[str, DataType], known: Mapping[str, DescribedColumn]
) -> list[Change]:
    kind = column.type.spark
    shown = kind.simpleString()
    was = known.get(column.name)
    found = []
    if column.name not in lake or (known and was is None):
        # The lake may have it: declared before it came, or from the time before it went.
        found.append(Change(Kind.ADDED, column.name, "", shown))
    if column.name not in lake:
        return found
    stored = lake[column.name]
    if widens(kind, stored):
        if was is not None and was.type != shown and kind != stored:
            found.append(Change(Kind.NARROWED, column.name, stored.simpleString(), shown))
    else:
        other = Kind.WIDENED if widens(stored, kind) else Kind.RETYPED
        found.append(Change(other, column.name, stored.simpleString(), shown))
    if was is None or column.nullable is None:
        return found
    if was.nullable is not None and was.nullable != column.nullable:
        said = "nullable" if column.nullable else "NOT NULL"
        found.append(Change(Kind.NULLABILITY, column.name, "", said))
    if was.nullable is not None and was.default != column.default:
        found.append(Change(Kind.DEFAULT, column.name))
    return found
