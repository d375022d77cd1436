"""Recognise unavailable values while decoding; after this stage nobody compares strings.

What an unchanged TOAST value looks like depends on the declared type (Debezium's
``PostgresValueConverter``, seen on the wire with 3.4.1 and 3.7.0): the placeholder text for text
types, its base64 for bytea, one-element arrays, its byte codes for integer arrays, a name-based
UUID for ``uuid[]``. Types that are not in this list cannot be unavailable on the wire; Debezium
sends null for some of them (README, limits).
"""

from __future__ import annotations

import base64

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, LongType, MapType, StringType

from lakeingest.decode.columns import Encodings, SourceColumn


def unavailable(wire: Column, column: SourceColumn, encodings: Encodings) -> Column | None:
    """Return a condition: this wire value stands for "unchanged, not sent"; null if it cannot."""
    raw = encodings.placeholder_bytes()
    text = raw.decode(errors="replace")
    encoded = base64.b64encode(raw).decode()
    kind = column.type.wire
    if isinstance(kind, StringType):
        hstore = f'{{"{text}":"{text}"}}'
        return F.coalesce(wire.isin(text, encoded, hstore), F.lit(False))
    if isinstance(kind, BinaryType):
        return F.coalesce(wire == F.lit(raw), F.lit(False))
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, BinaryType):
        return F.coalesce((F.size(wire) == 1) & (F.get(wire, F.lit(0)) == F.lit(raw)), F.lit(False))
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType):
        alone = F.get(wire, F.lit(0)).isin(text, encoded, encodings.uuid_mark())
        return F.coalesce((F.size(wire) == 1) & alone, F.lit(False))
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, IntegerType | LongType):
        codes = F.array(*(F.lit(code) for code in raw)).cast(kind)
        return F.coalesce(wire == codes, F.lit(False))
    if isinstance(kind, MapType) and isinstance(kind.valueType, StringType):
        return F.coalesce(F.element_at(wire, F.lit(text)) == F.lit(text), F.lit(False))
    return None


def can_be_unavailable(column: SourceColumn, encodings: Encodings) -> bool:
    """Tell whether a column of this type has a recognisable placeholder."""
    return unavailable(F.lit(None), column, encodings) is not None
