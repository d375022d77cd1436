"""Which columns can be a partition: those whose values the names of folders keep.

Whole numbers, dates and booleans are kept, and text but for two values. The empty text comes back
as NULL, on Delta and on Hudi alike (measured), and a key that holds it would not be found again; so
would the name that stands for no value. A row with one of them stops the batch: kept by halves it
would be another row than the source's.
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
"""Start of the message of a write that met a partition value which no folder keeps."""

_NOT_KEPT = ("", "__HIVE_DEFAULT_PARTITION__")
_TYPES = (BooleanType, DateType, IntegralType, StringType)


def refuse_types(collection: str, schema: StructType, partition: Sequence[str]) -> None:
    """Stop at a partition column whose values are not names of folders.

    Raises:
        ConfigError: There is one.
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
    """Let the write fail at a partition value that would not come back."""
    frame = changeset.frame
    guards = {}
    for name in changeset.partition:
        if isinstance(frame.schema[name].dataType, StringType):
            failure = F.raise_error(F.lit(NO_FOLDER)).cast("string")
            guards[name] = F.when(named(name).isin(*_NOT_KEPT), failure).otherwise(named(name))
    return replace(changeset, frame=frame.withColumns(guards)) if guards else changeset
