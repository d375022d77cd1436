"""The record key of a Hudi table: the key columns, or a column of ours that is made of them.

Hudi writes a key of several columns as ``a:1,b:2``, without escaping: the rows ``('x,b:y', 'z')``
and ``('x', 'y,b:z')`` of a table with two text columns as key become one (measured), and it refuses
the empty text as a key of one column. So where a key column can hold any text, the record key is a
column of its own with the key columns as a JSON array, in which quotes are escaped. Numbers, dates
and times cannot be mistaken and stay what Hudi's users know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, DateType, NumericType, StructType

from lakeingest.engine.hudi_table import HUDI_COLUMNS, TAKEN_AWAY
from lakeingest.errors import ConfigError
from lakeingest.named import named

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
"""What Avro, in which Hudi keeps its schemas, takes as a name."""

_PLAIN = (NumericType, DateType, BooleanType)


def refuse_names(collection: str, names: Iterable[str]) -> None:
    """Stop at a column that Hudi has no name for.

    Raises:
        ConfigError: There is one.
    """
    for name in names:
        if name in (*HUDI_COLUMNS, TAKEN_AWAY):
            message = (
                f"Column '{name}' of '{collection}' has a name that Hudi keeps for itself. Nothing "
                "of this batch was published. Rename it on the way (Connect's ReplaceField "
                f"transform), or set lakeingest.table.{collection}.format=delta."
            )
            raise ConfigError(message)
        if not _NAME.fullmatch(name):
            message = (
                f"Column '{name}' of '{collection}' cannot be in a Hudi table: its names are made "
                "of letters without accents, digits and underscores. Nothing of this batch was "
                f"published. Set lakeingest.table.{collection}.format=delta, which takes any name, "
                "or rename the column in the connector."
            )
            raise ConfigError(message)


def is_plain(kind: DataType) -> bool:
    """Tell whether a type's text holds no colon and no comma, and is never empty."""
    return isinstance(kind, _PLAIN)


def record_key(schema: StructType, key: Sequence[str], own: str) -> tuple[str, ...]:
    """Return the columns that Hudi is to take as record key.

    Args:
        schema: The table's.
        key: Its key columns.
        own: Name of the column that is made where those would not do.
    """
    if all(is_plain(schema[name].dataType) for name in key):
        return tuple(key)
    return (own,)


def with_record_key(rows: DataFrame, key: Sequence[str], columns: tuple[str, ...]) -> DataFrame:
    """Add the column that ``record_key`` asks for, if any.

    Binary columns are written in hexadecimal, all others as Spark casts them to text: a moment as
    it is called in the session's zone, which is UTC in every run (``apply.run.run_session``).
    """
    if columns == tuple(key):
        return rows
    (own,) = columns
    return rows.withColumn(own, F.to_json(F.array(*(_text(rows, name) for name in key))))


def _text(rows: DataFrame, name: str) -> Column:
    value = named(name)
    binary = rows.schema[name].dataType.typeName() == "binary"
    return F.hex(value) if binary else value.cast("string")
