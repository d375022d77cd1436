"""Decide which types hold or become values of another (vocabulary for decoding and sinks)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NumericType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
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


_CAST_FROM: Mapping[type[DataType], tuple[type[DataType], ...]] = {
    BinaryType: _INTEGERS,
    BooleanType: (NumericType, DateType, TimestampType),
    NumericType: (NumericType, BooleanType, DateType, TimestampType),
    DateType: (TimestampType, TimestampNTZType),
    TimestampNTZType: (DateType, TimestampType),
    TimestampType: (NumericType, BooleanType, DateType, TimestampNTZType),
}


def casts(source: DataType, target: DataType) -> bool:
    """Return whether Spark casts values of ``source`` to ``target``.

    Any other cast fails while Spark analyses the query. Source: Spark 3.5, ``Cast.canCast``. Maps
    and structs are left out: Spark cannot compare maps, and casts structs by place, not by name.
    """
    if source == target or isinstance(target, StringType):
        return True
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return casts(source.elementType, target.elementType)
    if isinstance(source, StringType):
        return isinstance(target, AtomicType)
    return any(
        isinstance(target, kind) and isinstance(source, sources)
        for kind, sources in _CAST_FROM.items()
    )
