"""Decimals: Connect's ``Decimal``, Debezium's ``VariableScaleDecimal``, in bytes, numbers and text.

Spark stores 38 digits. MySQL has 65, PostgreSQL's unconstrained ``numeric`` 131,072. Types that may
be too large are text where the user says so (``lakeingest.decimal.too.large``); else a value that
is too large stops the run. Rejected: ``double``, which is another number, and rounding the scale
away.

``VariableScaleDecimal`` is text unless a DDL declares how many digits to expect: each value has its
own scale, and text keeps it (``1.50`` is not ``1.5`` in PostgreSQL either).
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from lakeingest.decode.types.decimal_octets import decimal_from_bytes, decimal_text, exactly
from lakeingest.decode.types.logical_type import LogicalType, Site, checked
from lakeingest.decode.types.octets import BASE64, OctetForm

DIGITS = 38
"""Most digits of Spark's decimals."""

VARIABLE = "io.debezium.data.VariableScaleDecimal"
VARIABLE_NAME = "variable decimal"
UNSIGNED = "bigint unsigned"
"""Comment of a DECIMAL(20,0) column in wire mode ``bigint.unsigned.handling.mode=long``."""

_SCALE = "scale "
_OWN_SCALE = "own scale"
_TEXT = StringType()
_TOO_LARGE = (
    "declare the column with more digits, or as STRING (its comment names the wire's type), or set "
    "lakeingest.decimal.too.large=string"
)
_SPECIAL = "NaN and infinity are no decimals: declare the column STRING or DOUBLE"


def decimal(precision: int, scale: int, mode: str = "precise") -> LogicalType:
    """Return ``decimal(precision, scale)`` for a ``decimal.handling.mode``, in JSON.

    Args:
        precision: Digits.
        scale: Digits after the point; see ``shape``.
        mode: ``precise`` (base64 bytes), ``string``, ``double`` or ``numeric`` (a JSON number; the
            last one is JsonConverter's ``decimal.format=NUMERIC``, which is exact).
    """
    spark = shape(precision, scale)
    name = _name(spark)
    if mode in ("double", "numeric"):
        return _of_number(spark, as_double=mode == "double")
    if mode == "string":
        read = checked(name, lambda value: _unrounded(value, spark), f"{_TOO_LARGE}; {_SPECIAL}")
        return LogicalType(_TEXT, spark, read, name, "digits")
    return in_octets(BASE64, precision, scale)


def _of_number(spark: DecimalType, *, as_double: bool) -> LogicalType:
    """Return the type of decimals in JSON numbers; one with more digits after the point stops.

    Spark's reader rounds to the scale that it is asked for. So it is asked for all the digits that
    fit behind those before the point: for DECIMAL(38, n) that is no more than n.

    Args:
        spark: The declared type.
        as_double: Whether numbers went through a double. Java before 19 may write one with a digit
            too many. So digits that a double does not hold are rounded.
    """
    wire = DecimalType(DIGITS, DIGITS - spark.precision + spark.scale)

    def read(value: Column) -> Column:
        stored = value.cast(spark)
        fits = stored.cast("double") == value.cast("double") if as_double else stored == value
        return F.when(fits, stored)

    name = _name(spark)
    return LogicalType(wire, spark, checked(name, read, _TOO_FINE), name)


_TOO_FINE = "it has more digits after the point: declare the column with as many"


def _unrounded(text: Column, spark: DecimalType) -> Column:
    """Return decimal text, also with an exponent, as ``spark``; NULL if too large or finer.

    The cast rounds. Rounding changes the significant digits of a number; if they are the same
    before and after, the cast dropped only zeros.
    """
    stored = text.cast(spark)
    return F.when(_significant(text) == _significant(stored.cast(_TEXT)), stored)


def _significant(text: Column) -> Column:
    digits = F.translate(F.substring_index(F.upper(text), "E", 1), "+-. ", "")
    return F.btrim(digits, F.lit("0"))


def shape(precision: int, scale: int) -> DecimalType:
    """Return the lake's type for decimals of a source, with at most 38 digits.

    Args:
        precision: Digits that the source keeps.
        scale: Digits after the point. Negative: the source rounds to hundreds or more
            (``NUMBER(5,-2)`` holds 1234500). Above the precision: zeros follow the point
            (``NUMBER(3,5)``). Spark has neither, but it has types with room for them.
    """
    digits = digits_of(precision, scale)
    return DecimalType(min(digits, DIGITS), min(max(scale, 0), DIGITS))


def digits_of(precision: int, scale: int) -> int:
    """Return how many digits a decimal type needs for all values of a source's type."""
    return max(precision, scale) if scale >= 0 else precision - scale


def _name(spark: DecimalType) -> str:
    return f"decimal({spark.precision},{spark.scale})"


def number(precision: int, scale: int) -> LogicalType:
    """Return ``Decimal`` as JsonConverter's ``decimal.format=NUMERIC`` writes it.

    Spark's reader rounds a number that has more digits after the point than its type, and a number
    read as text goes through a double. So a type that may have more digits is refused.
    """
    spark = shape(precision, scale)
    return LogicalType(spark, spark, name=_name(spark)) if scale <= DIGITS else large_number(scale)


def large_number(scale: int) -> LogicalType:
    """Return the type of such a number with any number of digits: a value stops the run."""

    def convert(value: Column, site: Site) -> Column:
        return F.when(value.isNotNull(), site.failed(_NO_TEXT, _IN_BYTES)).cast(_TEXT)

    return LogicalType(_TEXT, _TEXT, convert, "decimal as text", f"number, {_SCALE}{scale}")


_NO_TEXT = "Spark cannot read decimals of more than 38 digits from JSON numbers"
_IN_BYTES = (
    "set the converter's decimal.format=BASE64 and lakeingest.source.decimal.format=BASE64, or the "
    "connector's decimal.handling.mode=string"
)


def in_octets(octets: OctetForm, precision: int, scale: int) -> LogicalType:
    """Return ``decimal(precision, scale)`` in a format's octets."""
    spark = shape(precision, scale)
    name = _name(spark)

    def read(value: Column) -> Column:
        return decimal_from_bytes(octets.decode(value), precision, scale, spark)

    return LogicalType(
        octets.wire, spark, checked(name, read, _TOO_LARGE), name, f"{_SCALE}{scale}"
    )


def wire_scale(kind: LogicalType) -> int | None:
    """Return the scale of a ``Decimal`` with bytes on the wire; None for another type."""
    digits = kind.form.removeprefix(_SCALE)
    return None if digits == kind.form else int(digits)


def scales_differ(carried: LogicalType, declared: LogicalType) -> bool:
    """Return whether two nested types of one wire form differ in the scale of their decimals."""
    has_scale = any(_SCALE in kind.form for kind in (carried, declared))
    is_nested = isinstance(carried.wire, ArrayType | MapType | StructType)
    return is_nested and has_scale and carried.form != declared.form


def of_large(kind: LogicalType, scale: int, spark: DecimalType) -> LogicalType:
    """Return ``Decimal`` of any number of digits as the declared decimal.

    Args:
        kind: A type of ``large`` or ``large_number``.
        scale: The scale of that type.
        spark: The declared type; a value that does not fit it stops the run.
    """
    name = _name(spark)

    def convert(value: Column, site: Site) -> Column:
        fit = checked(name, lambda text: exactly(text, F.lit(scale), spark), _TOO_LARGE)
        return fit(kind.convert(value, site), site)

    return LogicalType(kind.wire, spark, convert, name, kind.form)


def large(octets: OctetForm, scale: int) -> LogicalType:
    """Return text for ``Decimal`` of any number of digits, in a format's octets."""
    decode = checked("decimal", lambda value: decimal_text(octets.decode(value), F.lit(scale)))
    # Not "string": the text on the wire is base64.
    return LogicalType(octets.wire, _TEXT, decode, "decimal as text", f"{_SCALE}{scale}")


def variable(octets: OctetForm, spark: DecimalType | None = None) -> LogicalType:
    """Return ``VariableScaleDecimal`` in a format's octets, as text or as a declared decimal."""
    parts = StructType([StructField("scale", IntegerType()), StructField("value", octets.wire)])

    def as_text(value: Column) -> Column:
        return decimal_text(octets.decode(value["value"]), value["scale"])

    if spark is None:
        return LogicalType(parts, _TEXT, checked(VARIABLE_NAME, as_text), VARIABLE_NAME, _OWN_SCALE)

    def exact(value: Column) -> Column:
        return exactly(as_text(value), value["scale"], spark)

    name = _name(spark)
    return LogicalType(parts, spark, checked(name, exact, _TOO_LARGE), name, _OWN_SCALE)


def unsigned() -> LogicalType:
    """Return MySQL's ``bigint unsigned`` in mode ``long``: values above 2^63-1 come negative."""
    spark = DecimalType(20, 0)

    def convert(value: Column) -> Column:
        modulus = F.lit("18446744073709551616").cast(spark)
        correction = F.when(value < 0, modulus).otherwise(F.lit(0).cast(spark))
        return (value.cast(spark) + correction).cast(spark)

    return LogicalType(LongType(), spark, checked(UNSIGNED, convert), UNSIGNED, UNSIGNED)
