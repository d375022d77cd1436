"""Choose the record key of a Hudi table: the key columns, or an added column built from them.

Hudi writes a key of several columns as ``a:1,b:2`` without escaping. So the rows ``('x,b:y', 'z')``
and ``('x', 'y,b:z')`` of a table with two text columns as key become one row (measured). It also
refuses the empty text as a key of one column. So when a key column can hold any text, the record
key is an added column with the key columns as a JSON array, in which quotes are escaped. Numbers
and dates are unambiguous; such key columns are the record key, as users of Hudi expect.

A bucket index treats any text with a comma and a colon as a key of several columns. When no comma
is between the last two colons, as in ``["1","2024-10-27 00:30:00"]``, it searches for the next
column after a colon for ever (``KeyGenUtils.extractRecordKeysByFields`` of Hudi 1.2: the write
never ends). In such texts, colons are escaped; no bucket can contain such a text yet. Rejected: to
escape the colons of all texts. Keys in existing tables would get another text, and their rows
would be duplicated.
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

from lakeingest.engine.hudi.table import DELETE_MARKER, HUDI_COLUMNS
from lakeingest.errors import ConfigError, DataError, load_anew
from lakeingest.named import named
from lakeingest.sink.schema_change import SchemaChange

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
"""Names that Avro accepts; Hudi keeps its schemas in Avro."""

_UNPARSABLE = ":[^,:]*:[^:]*$"
"""Text in which no comma is between the last two colons."""

_PLAIN_TYPES = (NumericType, DateType, BooleanType)


def refuse_names(collection: str, names: Iterable[str]) -> None:
    """Raise an error for a column name that Hudi reserves or cannot store.

    Args:
        collection: The source table.
        names: Names of the table's columns.

    Raises:
        ConfigError: There is such a name.
    """
    for name in names:
        if name in (*HUDI_COLUMNS, DELETE_MARKER):
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
    """Return whether a type's text has no colon and no comma, and is never empty."""
    return isinstance(kind, _PLAIN_TYPES)


def record_key(schema: StructType, key: Sequence[str], own: str) -> tuple[str, ...]:
    """Return the columns that Hudi uses as record key.

    Args:
        schema: Schema of the table.
        key: Key columns of the table.
        own: Name of the column to add when the key columns cannot be the record key.
    """
    if all(is_plain(schema[name].dataType) for name in key):
        return tuple(key)
    return (own,)


def refuse_other_texts(
    collection: str, key: Sequence[str], present: StructType, change: SchemaChange
) -> None:
    """Raise an error if a key column gets a type in which present values have another text.

    Hudi finds a row by its key's text, and would write 1.5 a second time, as 1.500.

    Args:
        collection: The source table.
        key: Key columns of the table.
        present: Schema of the table.
        change: The change of the schema.

    Raises:
        DataError: A key column gets such a type. More digits before the decimal point do not
            change the text.
    """
    for item in change.widened:
        if item.name in key and _scale(item.dataType) != _scale(present[item.name].dataType):
            message = (
                f"Column '{item.name}' of '{collection}' is of its key and becomes "
                f"{item.dataType.simpleString()}: Hudi finds rows by the text of their key, which "
                "is another one then, so each would be there twice. Nothing of this batch was "
                f"published. Declare a type that holds both (lakeingest.table.{collection}.schema) "
                f"and {load_anew(collection)}."
            )
            raise DataError(message)


def _scale(kind: DataType) -> object:
    """Return the part of a type that changes the text of its values: scale or whole type."""
    if isinstance(kind, IntegralType):
        return 0
    return kind.scale if isinstance(kind, DecimalType) else kind


def with_record_key(
    rows: DataFrame, key: Sequence[str], columns: tuple[str, ...], options: Mapping[str, str]
) -> DataFrame:
    """Add the record key column if ``record_key`` returns one.

    The text of a binary column is hexadecimal; the text of any other column is Spark's cast. The
    text of a timestamp depends on the session's time zone, which is UTC in every run
    (``apply.run_session``).

    Args:
        rows: Rows of the table.
        key: Key columns of the table.
        columns: Columns that ``record_key`` returns.
        options: Options of the table's writes.
    """
    if columns == tuple(key):
        return rows
    (own,) = columns
    text = F.to_json(F.array(*(_text(rows, name) for name in key)))
    # Complex key generators put the column's name before the value, and Hudi finds the name.
    bare = "Complex" not in options["hoodie.datasource.write.keygenerator.class"]
    if bare and options["hoodie.index.type"].upper() == "BUCKET":
        escaped = F.replace(text, F.lit(":"), F.lit("\\u003a"))
        text = F.when(text.contains(",") & text.rlike(_UNPARSABLE), escaped).otherwise(text)
    return rows.withColumn(own, text)


def _text(rows: DataFrame, name: str) -> Column:
    value = named(name)
    binary = rows.schema[name].dataType.typeName() == "binary"
    return F.hex(value) if binary else value.cast("string")
