"""The record key of a Hudi table: the key columns, or a column of ours that is made of them.

Hudi writes a key of several columns as ``a:1,b:2``, without escaping: the rows ``('x,b:y', 'z')``
and ``('x', 'y,b:z')`` of a table with two text columns as key become one (measured), and it refuses
the empty text as a key of one column. So where a key column can hold any text, the record key is a
column of its own with the key columns as a JSON array, in which quotes are escaped. Numbers and
dates cannot be mistaken and stay what Hudi's users know.

A bucket index takes any text with a comma and a colon for a key of several columns, and looks for
the next column behind a colon for ever where no comma stands between the last two colons, as in
``["1","2024-10-27 00:30:00"]`` (``KeyGenUtils.extractRecordKeysByFields`` of Hudi 1.2: the write
never ends). In such texts, which no bucket can have yet, colons are escaped. Rejected: to escape
all of them, since keys that were written before would get another text, and their rows a double.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    NumericType,
    StructType,
)

from lakeingest.engine.hudi_table import HUDI_COLUMNS, TAKEN_AWAY
from lakeingest.errors import ConfigError, DataError
from lakeingest.named import named
from lakeingest.sink.schema_change import SchemaChange

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
"""What Avro, in which Hudi keeps its schemas, takes as a name."""

_ENDLESS = ":[^,:]*:[^:]*$"
"""The last two colons have no comma between them."""

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


def refuse_other_texts(
    collection: str, key: Sequence[str], present: StructType, change: SchemaChange
) -> None:
    """Stop where a key column gets a type in which the values that there are have other texts.

    Hudi finds a row by its key's text, and would write 1.5 a second time, as 1.500.

    Args:
        collection: The table.
        key: Its key columns.
        present: Its columns.
        change: What becomes of them.

    Raises:
        DataError: One does; digits before the point are no other text.
    """
    for item in change.widened:
        if item.name in key and _scale(item.dataType) != _scale(present[item.name].dataType):
            message = (
                f"Column '{item.name}' of '{collection}' is of its key and becomes "
                f"{item.dataType.simpleString()}: Hudi finds rows by the text of their key, which "
                "is another one then, so each would be there twice. Nothing of this batch was "
                "published. Declare a type that holds both before the table is made "
                f"(lakeingest.table.{collection}.schema) and load it anew."
            )
            raise DataError(message)


def _scale(kind: DataType) -> object:
    """Return what the text of a number of this type depends on besides the number."""
    if isinstance(kind, IntegralType):
        return 0
    return kind.scale if isinstance(kind, DecimalType) else kind


def with_record_key(
    rows: DataFrame, key: Sequence[str], columns: tuple[str, ...], options: Mapping[str, str]
) -> DataFrame:
    """Add the column that ``record_key`` asks for, if any.

    Binary columns are written in hexadecimal, all others as Spark casts them to text: a moment as
    it is called in the session's zone, which is UTC in every run (``apply.run.run_session``).

    Args:
        rows: Of the table.
        key: Its key columns.
        columns: What ``record_key`` returns.
        options: How the table is written.
    """
    if columns == tuple(key):
        return rows
    (own,) = columns
    text = F.to_json(F.array(*(_text(rows, name) for name in key)))
    # Complex generators put the column's name before it, and Hudi finds that.
    bare = "Complex" not in options["hoodie.datasource.write.keygenerator.class"]
    if bare and options["hoodie.index.type"].upper() == "BUCKET":
        escaped = F.replace(text, F.lit(":"), F.lit("\\u003a"))
        text = F.when(text.contains(",") & text.rlike(_ENDLESS), escaped).otherwise(text)
    return rows.withColumn(own, text)


def _text(rows: DataFrame, name: str) -> Column:
    value = named(name)
    binary = rows.schema[name].dataType.typeName() == "binary"
    return F.hex(value) if binary else value.cast("string")
