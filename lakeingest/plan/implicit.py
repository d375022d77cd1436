"""Give the zeros that MySQL and MariaDB put in old rows of a column added NOT NULL, no DEFAULT.

Other databases refuse such an ALTER on a table with rows. These two fill in the zero of the type.
They rewrite no row in the binlog, and the records' schema shows no default. The zero is known for
numbers and for text. It is unknown for dates (0000-00-00 has no day), enumerations (the first of
their values), JSON, and octets of a fixed length; a warning names these columns instead. A warning
names the filled columns, too: a column that the server numbers or computes (AUTO_INCREMENT,
GENERATED) looks the same. Source: MySQL's manual, "Data Type Default Values".
"""

from __future__ import annotations

from pyspark.sql.types import DecimalType

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings

_ZEROS = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "float", "double"), "0"),
    "boolean": "false",
    "string": '""',
}
"""Zeros in JSON, by type name. A text with a meaning (an enumeration) has another type name."""

_ZERO_OCTET = '"AA=="'


def implicit_value(column: SourceColumn, encodings: Encodings) -> str | None:
    """Return the zero of a column's type, in the form of ``SourceColumn.default``.

    Args:
        column: The column, as the records' schema describes it.
        encodings: The connector's settings.

    Returns:
        None if the zero is unknown.
    """
    kind = column.type
    if isinstance(kind.spark, DecimalType):
        return "0" if isinstance(kind.wire, DecimalType) else _ZERO_OCTET
    if kind.name == "string" and encodings.decimal == "string":
        # The text may be a decimal number, whose zero is not the empty text.
        return None
    return _ZEROS.get(kind.name)
