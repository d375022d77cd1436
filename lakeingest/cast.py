"""Cast a column to a type that is known as an object, in one call to the JVM.

PySpark sends such a type as JSON, through the session's parser and with all settings of the
session: eight calls, against one for a type's name. A batch over four tables makes 120 such casts,
and the calls of all of them were an eighth of its processor time (measured).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, AtomicType, DataType, MapType, StructType, TimestampType

from lakeingest.engine.known_columns import made_once

EXACT_JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options of ``to_json``. By default its times end at milliseconds: two rows would look equal."""


def cast_to(value: Column, kind: DataType) -> Column:
    """Return a value cast to a type."""
    return value.cast(_type_name(kind) or kind)


@made_once
def null_of(kind: DataType) -> Column:
    """Return NULL of a type."""
    return cast_to(F.lit(None), kind)


def typed_values(schema: StructType, values: Mapping[str, Column]) -> dict[str, Column]:
    """Return a value of each column of a schema, in its type; NULL where none is given."""
    return {
        item.name: cast_to(values[item.name], item.dataType)
        if item.name in values
        else null_of(item.dataType)
        for item in schema
    }


def typed_columns(schema: StructType, values: Mapping[str, Column]) -> list[Column]:
    """Return ``typed_values`` under their names, to select."""
    return [value.alias(name) for name, value in typed_values(schema, values).items()]


def no_rows(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return no rows, with the columns of a schema.

    ``createDataFrame`` would start Python workers, which took half a second (measured).
    """
    return spark.sql("VALUES (1)").where(F.lit(False)).select(*typed_columns(schema, {}))


@lru_cache(maxsize=1024)
def _type_name(kind: DataType) -> str:
    """Return a type's name in SQL; empty where it would not say all.

    Names of a struct's fields may have any characters, and no name says that an element is never
    NULL. What ``timestamp`` means is a setting of the session.
    """
    if isinstance(kind, TimestampType):
        return "timestamp_ltz"
    if isinstance(kind, ArrayType) and kind.containsNull:
        element = _type_name(kind.elementType)
        return f"array<{element}>" if element else ""
    if isinstance(kind, MapType) and kind.valueContainsNull:
        key, value = _type_name(kind.keyType), _type_name(kind.valueType)
        return f"map<{key},{value}>" if key and value else ""
    return kind.simpleString() if isinstance(kind, AtomicType) else ""
