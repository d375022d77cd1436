"""Refuse to change the columns of a table in which a row is all of its values.

Such a row is found by a hash of its values (``plan/keyless.py``). A row from before a column was
dropped, came with a default, moved or got another type has another hash than the same row in a
later event, and its delete or update would miss it. A column that is NULL in old rows is not in
their hash, and numbers with the same digits after the point have the same text.

Rejected, until someone needs it: to hash by the newest schema, and to write all hashes of the table
again in the commit that changes the schema.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import pairwise

from lakeingest.errors import DataError
from lakeingest.plan.evolution import SourceSchema

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\(\d+,(\d+)\)")


def refuse_changed_rows(
    collection: str, schemas: Iterable[SourceSchema], taken: Collection[str], *, ordered: bool
) -> None:
    """Stop where rows of one schema would not be found by events of the next one.

    Args:
        collection: The table.
        schemas: The source's columns, from the last batch to the newest record of this one.
        taken: Columns that the lake has, or gets.
        ordered: Whether values are hashed in the order of these columns.

    Raises:
        DataError: The schema changed so.
    """
    for before, after in pairwise(schemas):
        change = _change(before, after, taken, ordered=ordered)
        if change:
            setting = f"lakeingest.table.{collection}.keyless=full-row"
            message = (
                f"Table '{collection}' has no key, so a row is all of its values ({setting}), and "
                f"{change}: by later events, earlier rows would not be found. Nothing of this "
                "batch was published. Leave the table out of lakeingest.source.topics; or give it "
                "a primary key, let the connector take a new snapshot of all tables into new "
                "topics (its topics and offsets deleted), and load it into another "
                "lakeingest.target.path."
            )
            raise DataError(message)


def _text_form(type_: str) -> str:
    """Return what a type says about the text of its values."""
    return _DECIMAL.sub(r"\1 digits behind the point", "int" if type_ in _INTEGERS else type_)


def _change(
    before: SourceSchema, after: SourceSchema, taken: Collection[str], *, ordered: bool
) -> str:
    """Return what changed, as a clause; empty: nothing that changes the hash of a row."""
    old = {name: column for name, column in before.by_name().items() if name in taken}
    new = {name: column for name, column in after.by_name().items() if name in taken}
    for name, column in old.items():
        if name not in new:
            return f"its column '{name}' was dropped"
        if _text_form(column.type) != _text_form(new[name].type):
            return f"its column '{name}' has another type"
    for name in new.keys() - old.keys():
        if new[name].default is not None:
            return f"its column '{name}' came with a default"
    if ordered and [name for name in new if name in old] != [*old]:
        return "its columns have another order"
    return ""
