"""The ``DEFAULT`` of a column that was added: what rows from before have, though no event says so.

``ALTER TABLE … ADD COLUMN … DEFAULT`` gives every row of the database the value and writes no row,
so the records' schema is the only place that tells it. It tells constants only. For an expression
(``now()``, ``gen_random_uuid()``) Debezium writes a stand-in, epoch or zero, which no row has;
where a type makes a stand-in easy to tell from a constant that somebody would write, it is not
taken for a value. Zero, false and the empty text are: there the constant is what people write.
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
from lakeingest.decode.logical_type import Site

_ZERO_UUID = "00000000-0000-0000-0000-000000000000"
_EPOCH = "1970-01-01"


def is_stand_in(column: SourceColumn) -> bool:
    """Tell whether the default that the schema has stands for an expression of the source's."""
    if column.default is None:
        return False
    value = json.loads(column.default)
    if isinstance(column.type.spark, DateType | TimestampType | TimestampNTZType):
        return value == 0 or (isinstance(value, str) and value.startswith(_EPOCH))
    return bool(value == _ZERO_UUID)


@dataclass(frozen=True)
class Default:
    """The default of a column that was added.

    Attributes:
        text: In JSON (``SourceColumn.default``).
        schema: Names the schema that tells it: of the column's type then.
    """

    text: str
    schema: bytes = b""


def default_value(column: SourceColumn, default: Default, infinite: str = "fail") -> Column:
    """Return a default as a value of the lake.

    Args:
        column: Whose it is.
        default: One that does not fit fails the job.
        infinite: Policy for a time that no lake holds (``Site``).
    """
    wire = StructType([StructField("value", column.type.wire)])
    text = F.lit(f'{{"value":{default.text}}}')
    read = F.from_json(text, wire, {"mode": "FAILFAST"}).getField("value")
    return column.type.convert(read, Site(column.name, infinite, F.lit(default.schema)))
