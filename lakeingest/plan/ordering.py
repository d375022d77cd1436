"""Read the columns that a user orders rows by from envelopes, as text."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakeingest.decode.wire import WireFormat
from lakeingest.plan.spec import Ordering

_BLOCK = "source."
"""Prefix of the name of a field of the source block."""


def with_ordering_fields(source: StructType, ordering: Ordering) -> StructType:
    """Return the fields to read of the source block, with the fields that order rows."""
    lists = (ordering.columns, *ordering.tables.values())
    order_fields = {
        name.removeprefix(_BLOCK) for names in lists for name in names if _in_block(name)
    }
    missing = sorted(order_fields - set(source.fieldNames()))
    return StructType([*source, *(StructField(name, StringType()) for name in missing)])


def ordering_values(format_: WireFormat, ordering: Ordering) -> Column:
    """Return the ordering values of an envelope with ``collection``, as an array of texts.

    Returns:
        NULL where the source's log orders the row.
    """
    by_table: Column | None = None
    for collection, names in ordering.tables.items():
        mine, texts = F.col("collection") == F.lit(collection), _texts(format_, names)
        by_table = F.when(mine, texts) if by_table is None else by_table.when(mine, texts)
    others = _texts(format_, ordering.columns)
    return others if by_table is None else by_table.otherwise(others)


def _in_block(name: str) -> bool:
    return name.startswith(_BLOCK)


def _texts(format_: WireFormat, names: Sequence[str]) -> Column:
    if not names:
        return F.lit(None).cast("array<string>")
    columns = [name for name in names if not _in_block(name)]
    of_row = format_.ordering(F.col("value"), columns) if columns else None

    def text(name: str) -> Column:
        if of_row is not None and not _in_block(name):
            return F.get(of_row, F.lit(columns.index(name)))
        return F.col("source").getField(name.removeprefix(_BLOCK)).cast("string")

    return F.array(*map(text, names))
