"""Read the ``DEFAULT`` of an added column: the value of older rows, which no event has.

``ALTER TABLE … ADD COLUMN … DEFAULT`` gives the value to every row of the database and writes no
row, so only the records' schema has it. A schema has constants only. For an expression (``now()``,
``gen_random_uuid()``) Debezium writes a stand-in, epoch or zero, which no row has. If a type makes
a stand-in easy to tell from a constant that somebody would write, the stand-in is not used as a
value. Zero, false and the empty text are used: there people do write the constant.
Source: Debezium's ``PostgresDefaultValueConverter`` (placeholders of generated values),
``BinlogDefaultValueConverter`` (``CURRENT_TIMESTAMP``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StructField, StructType, TimestampNTZType, TimestampType

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.types.logical_type import Site

_ZERO_UUID = "00000000-0000-0000-0000-000000000000"
_EPOCH = "1970-01-01"


def is_stand_in(column: SourceColumn) -> bool:
    """Return whether the schema's default stands in for an expression of the source."""
    if column.default is None:
        return False
    value = json.loads(column.default)
    if isinstance(column.type.spark, DateType | TimestampType | TimestampNTZType):
        return value == 0 or (isinstance(value, str) and value.startswith(_EPOCH))
    return bool(value == _ZERO_UUID)


@dataclass(frozen=True)
class Default:
    """The default of an added column.

    Attributes:
        text: The default in JSON (``SourceColumn.default``).
        schema: Tag of the schema that has it: it gives the column's type at that time.
    """

    text: str
    schema: bytes = b""


def default_value(column: SourceColumn, default: Default, infinite: str = "fail") -> Column:
    """Return a default as a value of the lake.

    Args:
        column: The column that has it.
        default: The default; if it does not fit the column, the job fails.
        infinite: Policy for a time that no lake can store (``Site``).
    """
    wire = StructType([StructField("value", column.type.wire)])
    text = F.lit(f'{{"value":{default.text}}}')
    read = F.from_json(text, wire, {"mode": "FAILFAST"}).getField("value")
    return column.type.convert(read, Site(column.name, infinite, F.lit(default.schema)))
