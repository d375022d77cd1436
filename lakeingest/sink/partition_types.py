"""Decide which columns can be partition columns: folder names must preserve their values.

Folder names preserve integers, dates and booleans, and text except two values. The empty text is
read back as NULL, on Delta and on Hudi alike (measured), and so is the name that stands for NULL. A
later batch would not find a key with such a value. A row with one of these values stops the batch,
because the stored row would differ from the source's row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DateType, IntegralType, StringType, StructType

from lakeingest.errors import ConfigError
from lakeingest.named import named
from lakeingest.sink.contract import Changeset

NO_FOLDER = "LAKEINGEST_NO_FOLDER"
"""Start of a write's error message when no folder name can preserve a partition value."""

_LOST_VALUES = ("", "__HIVE_DEFAULT_PARTITION__")
_TYPES = (BooleanType, DateType, IntegralType, StringType)


def refuse_types(collection: str, schema: StructType, partition: Sequence[str]) -> None:
    """Raise an error for a partition column of a type that folder names do not preserve.

    Args:
        collection: The source table.
        schema: Schema with the partition columns.
        partition: Names of the partition columns.

    Raises:
        ConfigError: There is such a column.
    """
    for name in partition:
        kind = schema[name].dataType
        if not isinstance(kind, _TYPES):
            message = (
                f"Column '{name}' of '{collection}' is {kind.simpleString()}, which cannot be a "
                "partition; whole numbers, dates, booleans and text can. Nothing of this batch was "
                f"published. Choose another column in lakeingest.table.{collection}.partition."
            )
            raise ConfigError(message)


def kept_by_folders(changeset: Changeset) -> Changeset:
    """Return the changeset; its write fails on a partition value that no folder name preserves."""
    frame = changeset.frame
    guards = {}
    for name in changeset.partition:
        if isinstance(frame.schema[name].dataType, StringType):
            failure = F.raise_error(F.lit(NO_FOLDER)).cast("string")
            guards[name] = F.when(named(name).isin(*_LOST_VALUES), failure).otherwise(named(name))
    return replace(changeset, frame=frame.withColumns(guards)) if guards else changeset
