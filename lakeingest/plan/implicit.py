"""What MySQL and MariaDB give old rows of a column that is added NOT NULL without a DEFAULT.

Other databases refuse such an ALTER on a table with rows; these two fill in the zero of the type,
and neither rewrites a row in the binlog nor has a default in the records' schema. The zero is known
for numbers and for text. It is not for dates (0000-00-00 has no day), enumerations (the first of
their values), JSON and octets of a fixed length; those are told to the user instead. So are all,
because a column that the server numbers or computes (AUTO_INCREMENT, GENERATED) looks the same.
Source: MySQL's manual, "Data Type Default Values".
"""

from __future__ import annotations

from pyspark.sql.types import DecimalType

from lakeingest.decode.columns import Encodings, SourceColumn

_ZEROS = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "float", "double"), "0"),
    "boolean": "false",
    "string": '""',
}
"""By the name of a type, as JSON; a text with a meaning (an enumeration) has another name."""

_NO_OCTETS_BUT_ZERO = '"AA=="'

CONNECTORS = frozenset({"mysql", "mariadb"})


def implicit_value(column: SourceColumn, encodings: Encodings) -> str | None:
    """Return the zero of a column's type, as ``SourceColumn.default`` has one.

    Args:
        column: As the records' schema describes it.
        encodings: The connector's settings.

    Returns:
        Null where it is not known.
    """
    kind = column.type
    if isinstance(kind.spark, DecimalType):
        return "0" if isinstance(kind.wire, DecimalType) else _NO_OCTETS_BUT_ZERO
    if kind.name == "string" and encodings.decimal == "string":
        # It may be a number.
        return None
    return _ZEROS.get(kind.name)
