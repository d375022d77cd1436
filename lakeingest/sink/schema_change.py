"""What a new source schema means for a table: nothing, new columns, wider types, or no fit.

Only widenings that keep every value are made: int to long, float to double, a decimal with at
least as many digits on both sides. Anything else stops the run before anything is published; the
rejected way, casting with NULL for what does not fit, loses data in silence.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import StructField, StructType

from lakeingest.errors import DataError
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
