"""Convert Connect's ``Decimal`` bytes to Spark decimals and to text, in Spark expressions.

The wire has the unscaled value as big-endian two's complement, base64 in JSON. Spark has no cast
from such bytes. So the code takes their hexadecimal digits, sign-extends them to 64 or 128 bits,
reads them with ``conv``, and puts the scale behind the digits as an exponent, which the cast from
text reads exactly. Rejected: decimal arithmetic (``high * 2^64 + low`` and a division by
``10^scale``). It loses digits to Spark's precision rules above 38.

Numbers of more than 38 digits are text from the beginning (``long_unscaled_text``): a long division
by hand, four octets into nine digits, so that each step fits 64 bits.

``once`` binds an expression that is used several times. Spark would write it out each time, and a
plan that is large enough takes longer to make than to run (ten seconds for one column, seen).
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

_WORD = 16
_WHOLE = DecimalType(38, 0)
_TWO_TO_64 = "18446744073709551616"


def unscaled_text(data: Column, wide: bool) -> Column:
    """Return the two's complement integer in ``data`` (binary) as decimal text.

    NULL where there are no bytes or more than fit: ``lpad`` would cut them to another number.

    Args:
        data: At most 8 bytes, or at most 16 when ``wide``.
        wide: Whether more than 8 bytes may come.
    """
    octets = F.length(data)
    fits = (octets > 0) & (octets <= (_WORD if wide else _WORD // 2))
    digits = F.hex(F.when(fits, data))
    negative = F.substring(digits, 1, 1) >= F.lit("8")

    def sign_extended(width: int) -> Column:
        return F.when(negative, F.lpad(digits, width, "F")).otherwise(F.lpad(digits, width, "0"))

    narrow = F.conv(sign_extended(_WORD), 16, -10)
    if not wide:
        return narrow
    both = sign_extended(2 * _WORD)
    high = F.conv(F.substring(both, 1, _WORD), 16, -10).cast(_WHOLE)
    low = F.conv(F.substring(both, _WORD + 1, _WORD), 16, 10).cast(_WHOLE)
    # Sum a negative number from the multiple of 2^64 above it: for the lowest numbers of 38
    # digits, the multiple below has 39 digits.
    word = F.lit(_TWO_TO_64).cast(DecimalType(20, 0))
    up, rest = high + negative.cast("int"), low - F.when(negative, word).otherwise(F.lit(0))
    full = (up.cast(_WHOLE) * word + rest.cast(_WHOLE)).cast(_WHOLE).cast("string")
    return F.when(F.length(digits) <= _WORD, narrow).otherwise(full)


_LIMB = 1_000_000_000
_DIGITS_IN_LIMB = 9
_HEX_IN_WORD = 8


def long_unscaled_text(data: Column) -> Column:
    """Return the two's complement integer in ``data`` (binary, any length) as decimal text.

    Much slower than ``unscaled_text``, so use it only where that function gives NULL. NULL where
    there are no bytes.
    """
    return once(F.hex(F.when(F.length(data) > 0, data)), _long_text)


def once(value: Column, use: Callable[[Column], Column]) -> Column:
    """Return ``use(value)`` with ``value`` computed once, however often it is used."""
    return F.get(F.transform(F.array(value), use), F.lit(0))


def _long_text(digits: Column) -> Column:
    """Return the decimal text of a two's complement integer in hexadecimal digits."""
    negative = F.substring(digits, 1, 1) >= F.lit("8")
    # A negative number's magnitude is one more than its inverted bits.
    inverted = F.translate(digits, "0123456789ABCDEF", "FEDCBA9876543210")
    magnitude = F.when(negative, inverted).otherwise(digits)
    count = F.ceil(F.length(digits) / _HEX_IN_WORD).cast("int")
    gap = count * _HEX_IN_WORD - F.length(digits)
    padded = F.concat(F.substr(F.lit("0" * _HEX_IN_WORD), F.lit(1), gap), magnitude)

    def words(whole: Column) -> Column:
        last = F.length(whole) / _HEX_IN_WORD

        def word(at: Column) -> Column:
            octets = F.substr(whole, (at - 1) * _HEX_IN_WORD + 1, F.lit(_HEX_IN_WORD))
            number = F.conv(octets, 16, 10).cast("bigint")
            return number + (negative & (at == last)).cast("bigint")

        return F.transform(F.sequence(F.lit(1), last.cast("int")), word)

    limbs = F.aggregate(once(padded, words), F.array(F.lit(0).cast("bigint")), _with_word)
    limb_texts = F.transform(
        F.reverse(limbs), lambda n: F.lpad(n.cast("string"), _DIGITS_IN_LIMB, "0")
    )

    def signed(text: Column) -> Column:
        sign = F.when(negative, F.lit("-")).otherwise(F.lit(""))
        return F.when(text == "", F.lit("0")).otherwise(F.concat(sign, text))

    return once(F.call_function("ltrim", F.lit("0"), F.array_join(limb_texts, "")), signed)


def _with_word(limbs: Column, word: Column) -> Column:
    """Return the number times 2^32 plus ``word``, as limbs of nine digits, lowest first."""

    def step(state: Column, limb: Column) -> Column:
        total = limb * F.lit(2**32) + state["carry"]
        rest = F.concat(state["limbs"], F.array(total % _LIMB))
        carry = F.call_function("div", total, F.lit(_LIMB))
        return F.struct(rest.alias("limbs"), carry.alias("carry"))

    def finish(state: Column) -> Column:
        carry = state["carry"]
        high = F.call_function("div", carry, F.lit(_LIMB))
        more = (
            F.when(carry >= _LIMB, F.array(carry % _LIMB, high))
            .when(carry > 0, F.array(carry))
            .otherwise(F.array().cast("array<bigint>"))
        )
        return F.concat(state["limbs"], more)

    nothing = F.struct(F.array().cast("array<bigint>").alias("limbs"), word.alias("carry"))
    return F.aggregate(limbs, nothing, step, finish)


def decimal_from_bytes(data: Column, precision: int, scale: int, spark: DecimalType) -> Column:
    """Decode Connect ``Decimal`` bytes; NULL if too large, or finer than ``spark``.

    Args:
        data: The unscaled value.
        precision: Digits of the unscaled value.
        scale: Digits after the point; negative: zeros before it.
        spark: Type of the result.
    """
    if scale > spark.scale:
        return exactly(decimal_text(data, F.lit(scale)), F.lit(scale), spark)
    digits = unscaled_text(data, wide=precision > 18)
    # Text with an exponent is exact and cheap: Spark casts '-150E-2' to decimal without rounding.
    return F.concat(digits, F.lit(f"E{-scale}")).cast(spark)


def exactly(text: Column, scale: Column, spark: DecimalType) -> Column:
    """Return plain decimal text as ``spark``; NULL if too large, or finer than ``spark``.

    Args:
        text: A result of ``decimal_text``.
        scale: Digits after its point.
        spark: Type of the result.
    """
    more = scale - spark.scale

    def cast(text: Column) -> Column:
        # The cast would round away the digits that the type has no room for.
        rest = F.substr(text, F.length(text) - more + 1)
        return F.when((more <= 0) | (F.translate(rest, "0", "") == ""), text.cast(spark))

    return once(text, cast)


def decimal_text(data: Column, scale: Column) -> Column:
    """Decode Connect ``VariableScaleDecimal`` parts to plain decimal text.

    Args:
        data: The unscaled value, of any length.
        scale: Digits after the point; negative: zeros before it.
    """
    digits = F.coalesce(unscaled_text(data, wide=True), long_unscaled_text(data))
    return once(digits, lambda unscaled: _with_point(unscaled, scale))


def _with_point(digits: Column, scale: Column) -> Column:
    sign = F.when(F.startswith(digits, F.lit("-")), F.lit("-")).otherwise(F.lit(""))
    magnitude = F.translate(digits, "-", "")
    zeros = F.greatest(scale + 1 - F.length(magnitude), F.lit(0))
    full = F.concat(F.array_join(F.array_repeat(F.lit("0"), zeros), ""), magnitude)
    whole = F.substr(full, F.lit(1), F.length(full) - scale)
    fraction = F.substr(full, F.length(full) - scale + 1, scale)
    trailing = F.array_join(F.array_repeat(F.lit("0"), -scale), "")
    return (
        F.when((scale == 0) | (digits == "0") & (scale < 0), digits)
        .when(scale < 0, F.concat(digits, trailing))
        .otherwise(F.concat(sign, whole, F.lit("."), fraction))
    )
