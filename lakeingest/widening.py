"""Decide whether one type holds every value of another (vocabulary for decoding and sinks)."""

from __future__ import annotations

from pyspark.sql.types import (
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
)

_INTEGERS: tuple[type[DataType], ...] = (ByteType, ShortType, IntegerType, LongType)


def widens(narrow: DataType, wide: DataType) -> bool:
    """Return whether every value of ``narrow`` is also a value of ``wide``."""
    if narrow == wide:
        return True
    if type(narrow) in _INTEGERS and type(wide) in _INTEGERS:
        return _INTEGERS.index(type(narrow)) <= _INTEGERS.index(type(wide))
    if isinstance(narrow, FloatType) and isinstance(wide, DoubleType):
        return True
    if isinstance(narrow, DecimalType) and isinstance(wide, DecimalType):
        whole = wide.precision - wide.scale >= narrow.precision - narrow.scale
        return whole and wide.scale >= narrow.scale
    return False
