"""Compute the schema change of a table: none, new columns, wider types, or a conflict.

Only widenings that preserve every value are applied: int to long, float to double, a decimal with
at least as many digits on both sides. Any other change of a type stops the run before anything is
published. Rejected: a cast that gives NULL for values that do not fit; it loses data silently. The
user's schema policies (``plan/evolution.py``) apply earlier; this is the last check before a write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakeingest.cast import cast_to
from lakeingest.errors import DataError, load_anew
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.named import named
from lakeingest.sink.contract import Changeset
from lakeingest.widening import widens


@dataclass(frozen=True)
class SchemaChange:
    """A change of a table's schema.

    Attributes:
        added: Columns to add.
        widened: Columns to widen, with their new types.
    """

    added: tuple[StructField, ...]
    widened: tuple[StructField, ...]


def schema_change(collection: str, table: StructType, batch: StructType) -> SchemaChange:
    """Compare the table's schema with the batch's.

    Args:
        collection: The source table.
        table: Schema of the table.
        batch: Schema of the batch's rows.

    Returns:
        The columns to add and to widen. A column whose type fits into the table's is in neither.

    Raises:
        DataError: A column's type neither fits nor widens.
    """
    present = {item.name: item for item in table}
    added, widened = [], []
    for item in batch:
        old = present.get(item.name)
        if old is None:
            added.append(item)
        elif widens(item.dataType, old.dataType):
            continue
        elif widens(old.dataType, item.dataType):
            widened.append(item)
        else:
            message = (
                f"Column '{item.name}' of '{collection}' is {old.dataType.simpleString()} in the "
                f"lake and {item.dataType.simpleString()} at the source; that is not a widening. "
                "Nothing of this batch was published. Declare a type that holds both with "
                f"lakeingest.table.{collection}.schema, or {load_anew(collection)}."
            )
            raise DataError(message)
    return SchemaChange(tuple(added), tuple(widened))


def evolved_schema(table: StructType, change: SchemaChange, names: MetadataColumns) -> StructType:
    """Return the table's schema after a change: metadata columns stay last."""
    wide = {item.name: item.dataType for item in change.widened}
    fields = [
        StructField(item.name, wide.get(item.name, item.dataType), item.nullable, item.metadata)
        for item in table
    ]
    metadata = [item for item in fields if item.name in names.names]
    columns = [item for item in fields if item.name not in names.names]
    added = [StructField(item.name, item.dataType) for item in change.added]
    return StructType([*columns, *added, *metadata])


def in_schema(
    table: DataFrame, schema: StructType, changeset: Changeset, more: Sequence[str] = ()
) -> DataFrame:
    """Return a table's rows in its new schema, with the defaults of its new columns.

    Args:
        table: Rows in the old schema.
        schema: The new schema.
        changeset: The changeset that brings it.
        more: Further columns of ``table`` to keep.
    """

    def value(item: StructField) -> Column:
        fill = changeset.fills.get(item.name, F.lit(None))
        # No earlier event supplied a new column, so a NULL in it is not a value of the source.
        return F.coalesce(named(item.name), fill) if item.name in table.columns else fill

    new = [cast_to(value(item), item.dataType).alias(item.name) for item in schema]
    return table.select(*new, *more)
