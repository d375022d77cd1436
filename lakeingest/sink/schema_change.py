"""What a new source schema means for a table: nothing, new columns, wider types, or no fit.

Only widenings that keep every value are made: int to long, float to double, a decimal with at
least as many digits on both sides. Anything else stops the run before anything is published; the
rejected way, casting with NULL for what does not fit, loses data in silence. What a user may decide
about a change (``plan/evolution.py``) is decided before; here is the last look at what is written.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakeingest.errors import DataError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.named import named
from lakeingest.sink.contract import Changeset
from lakeingest.widening import widens


@dataclass(frozen=True)
class SchemaChange:
    """Columns to add and columns to widen."""

    added: tuple[StructField, ...]
    widened: tuple[StructField, ...]


def schema_change(collection: str, table: StructType, wanted: StructType) -> SchemaChange:
    """Compare the table with what the source sends now.

    Raises:
        DataError: A column's type neither fits nor widens.
    """
    present = {item.name: item for item in table}
    added, widened = [], []
    for item in wanted:
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
                f"lakeingest.table.{collection}.schema, or move the table away and load it anew."
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


def in_schema(table: DataFrame, schema: StructType, changeset: Changeset) -> DataFrame:
    """Return a table's rows in its new schema, with the defaults of columns that are new to it."""

    def value(item: StructField) -> Column:
        fill = changeset.fills.get(item.name, F.lit(None))
        # No event had a word on a column that is new: what is NULL was never told.
        return F.coalesce(named(item.name), fill) if item.name in table.columns else fill

    return table.select(*(value(item).cast(item.dataType).alias(item.name) for item in schema))
