"""Decimals: Connect's ``Decimal``, Debezium's ``VariableScaleDecimal``, in bytes, numbers and text.

Spark holds 38 digits. MySQL has 65, PostgreSQL's unconstrained ``numeric`` 131,072: what may be too
large is text where the user says so (``lakeingest.decimal.too.large``), else a value that is too
large stops the run. Rejected: ``double``, which is another number, and rounding the scale away.

``VariableScaleDecimal`` is text unless a DDL declares how many digits to expect: each value has a
scale of its own, and text keeps it (``1.50`` is not ``1.5`` in PostgreSQL either).
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from lakeingest.decode.logical_type import LogicalType, checked
from lakeingest.decode.number import decimal_from_bytes, decimal_text, once
from lakeingest.decode.octets import RAW, base64

DIGITS = 38
"""What Spark's decimals hold."""

VARIABLE = "io.debezium.data.VariableScaleDecimal"
VARIABLE_NAME = "variable decimal"
UNSIGNED = "bigint unsigned"
"""Comment of a DECIMAL(20,0) that comes as ``bigint.unsigned.handling.mode=long`` writes it."""

_OWN_SCALE = "own scale"
_TEXT = StringType()
_TOO_LARGE = (
    "declare the column with more digits, or as STRING (its comment names the wire's type), or set "
    "lakeingest.decimal.too.large=string"
)
_SPECIAL = "NaN and infinity are no decimals: declare the column STRING or DOUBLE"

Octets = Callable[[Column], Column]


def _unchanged(value: Column) -> Column:
    return value


def decimal(precision: int, scale: int, mode: str = "precise") -> LogicalType:
    """Return ``decimal(precision, scale)`` for a ``decimal.handling.mode``, in JSON.

    Args:
        precision: Digits, 1 to 38.
        scale: Digits after the point.
        mode: ``precise`` (base64 bytes), ``string`` or ``double`` (JSON number, also what
            JsonConverter's ``decimal.format=NUMERIC`` writes).
    """
    spark = DecimalType(precision, scale)
    name = f"decimal({precision},{scale})"
    if mode == "double":
        return LogicalType(spark, spark, name=name)
    if mode == "string":
        read = checked(name, lambda value: value.cast(spark), f"{_TOO_LARGE}; {_SPECIAL}")
        return LogicalType(_TEXT, spark, read, name, "digits")
    return _decimal(_TEXT, base64, precision, scale)


def raw_decimal(precision: int, scale: int) -> LogicalType:
    """Return ``decimal(precision, scale)`` whose bytes are octets."""
    return _decimal(RAW.wire, _unchanged, precision, scale)


def _decimal(wire: DataType, octets: Octets, precision: int, scale: int) -> LogicalType:
    name = f"decimal({precision},{scale})"
    decode = checked(
        name, lambda value: decimal_from_bytes(octets(value), precision, scale), _TOO_LARGE
    )
    return LogicalType(wire, DecimalType(precision, scale), decode, name, f"scale {scale}")


def large_decimal(scale: int) -> LogicalType:
    """Return text for ``Decimal`` of any number of digits, in base64."""
    return _large(_TEXT, base64, scale)


def raw_large_decimal(scale: int) -> LogicalType:
    """Return text for ``Decimal`` of any number of digits, in octets."""
    return _large(RAW.wire, _unchanged, scale)


def _large(wire: DataType, octets: Octets, scale: int) -> LogicalType:
    decode = checked("decimal", lambda value: decimal_text(octets(value), F.lit(scale)))
    # Not "string": text as it is would be base64.
    return LogicalType(wire, _TEXT, decode, "decimal as text", f"scale {scale}")


def variable_decimal(spark: DecimalType | None = None) -> LogicalType:
    """Return ``VariableScaleDecimal`` with base64 bytes; text, or the decimal that is declared."""
    return _variable(_TEXT, base64, spark)


def raw_variable_decimal(spark: DecimalType | None = None) -> LogicalType:
    """Return ``VariableScaleDecimal`` with octets; text, or the decimal that is declared."""
    return _variable(RAW.wire, _unchanged, spark)


def _variable(wire: DataType, octets: Octets, spark: DecimalType | None) -> LogicalType:
    parts = StructType([StructField("scale", IntegerType()), StructField("value", wire)])

    def shown(value: Column) -> Column:
        return decimal_text(octets(value["value"]), value["scale"])

    if spark is None:
        return LogicalType(parts, _TEXT, checked(VARIABLE_NAME, shown), VARIABLE_NAME, _OWN_SCALE)

    def exact(value: Column) -> Column:
        more = value["scale"] - spark.scale

        def cast(text: Column) -> Column:
            # The cast would round away what stands behind the declared digits.
            rest = F.substr(text, F.length(text) - more + 1)
            return F.when((more <= 0) | (F.translate(rest, "0", "") == ""), text.cast(spark))

        return once(shown(value), cast)

    name = f"decimal({spark.precision},{spark.scale})"
    return LogicalType(parts, spark, checked(name, exact, _TOO_LARGE), name, _OWN_SCALE)


def unsigned() -> LogicalType:
    """Return MySQL's ``bigint unsigned`` in mode ``long``: what is above 2^63-1 comes negative."""
    spark = DecimalType(20, 0)

    def convert(value: Column) -> Column:
        wrapped = F.lit("18446744073709551616").cast(spark)
        missing = F.when(value < 0, wrapped).otherwise(F.lit(0).cast(spark))
        return (value.cast(spark) + missing).cast(spark)

    return LogicalType(LongType(), spark, checked(UNSIGNED, convert), UNSIGNED, UNSIGNED)
