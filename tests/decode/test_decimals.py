"""Decimals, with Python's integers as the oracle: every width, sign and precision in one job."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from decimal import Context, Decimal
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, StringType

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.types.composed import array
from lakeingest.decode.types.decimals import decimal, unsigned
from lakeingest.decode.types.logical import JSON, JSON_NUMERIC, PRIMITIVES, as_declared
from lakeingest.decode.types.logical_type import LogicalType
from tests.decode.wire import decode_texts, event, failures, minimal_width, unscaled

EXACT = Context(prec=80)

FORMS = ((5, 5), (10, 2), (18, 0), (19, 4), (38, 0), (38, 18))
"""Precision and scale; 18 is the last that fits 8 octets, 38 Spark's limit."""


def unscaled_values(precision: int) -> list[int]:
    """Zero, the edges of every width, the edges of the precision, and random ones between."""
    largest = 10**precision - 1
    edges = {0, 1, largest, largest - 1, 10 ** (precision - 1)}
    for width in range(1, 17):
        power = 2 ** (8 * width - 1)
        edges.update((power - 1, power, power + 1, 2 * power - 1, 2 * power))
    draw = random.Random(precision)
    edges.update(draw.randrange(10 ** draw.randint(1, precision)) for _ in range(60))
    values = sorted(value for value in edges if value <= largest)
    # -(10^38 - 1) down to the last multiple of 2^64 has a test of its own.
    return [*values, *(-value for value in values if value < 10**38 - 2**65)]


def test_unscaled_bytes_of_every_width_and_sign_decode_exactly(spark: SparkSession) -> None:
    columns = [SourceColumn(f"d{p}_{s}", decimal(p, s)) for p, s in FORMS]
    values = {
        column.name: unscaled_values(p) for column, (p, _) in zip(columns, FORMS, strict=True)
    }
    assert {minimal_width(value) for value in values["d38_0"]} == set(range(1, 17))
    texts = [
        event({name: unscaled(numbers[n]) for name, numbers in values.items() if n < len(numbers)})
        for n in range(max(len(numbers) for numbers in values.values()))
    ]
    decoded = decode_texts(spark, columns, texts)
    wrong = [
        (column.name, value, decoded[n][column.name])
        for column, (_, scale) in zip(columns, FORMS, strict=True)
        for n, value in enumerate(values[column.name])
        if decoded[n][column.name] != Decimal(value).scaleb(-scale, EXACT)
    ]
    assert wrong == []


def test_sign_extended_bytes_decode_to_the_same_number(spark: SparkSession) -> None:
    columns = [SourceColumn("narrow", decimal(9, 2)), SourceColumn("wide", decimal(30, 2))]
    numbers = [0, 1, -1, 127, -128, 99_999, -99_999]
    texts = [event({"narrow": unscaled(n, 8), "wide": unscaled(n, 16)}) for n in numbers]
    expected = [Decimal(n).scaleb(-2) for n in numbers]
    decoded = decode_texts(spark, columns, texts)
    assert [row["narrow"] for row in decoded] == expected
    assert [row["wide"] for row in decoded] == expected


def test_numbers_keep_every_digit_with_decimal_format_numeric(spark: SparkSession) -> None:
    written = [
        "123456789012345678901234567890.12345678",
        "-0.00000001",
        "999999999999999999999999999999.99999999",
        "0",
        "1E+3",
    ]
    texts = ['{"after":{"n":' + digits + "}}" for digits in written]
    decoded = decode_texts(spark, [SourceColumn("n", decimal(38, 8, "numeric"))], texts)
    assert [row["n"] for row in decoded] == [Decimal(digits) for digits in written]


def test_numbers_that_spark_would_round_stop_the_run(spark: SparkSession) -> None:
    forms = (("string", (60, 30)), ("string", (50, 40)), ("fail", (50, 40)))
    columns = [
        SourceColumn(f"n{at}", JSON_NUMERIC.with_policy(policy).decimal(*form))
        for at, (policy, form) in enumerate(forms)
    ]
    nothing = dict.fromkeys(("n0", "n1", "n2"))
    assert decode_texts(spark, columns, [event(nothing)]) == [nothing]
    number = "12345678901234567890.1234567890123456789"
    texts = [f'{{"after":{{"{name}":{number}}}}}' for name in nothing]
    for name, reason in zip(nothing, failures(spark, columns, texts), strict=True):
        assert re.search(rf"column '{name}'.*decimal\.format=BASE64", reason or "it did not fail")


SHAPES = {
    (5, -2): (12345, DecimalType(7, 0), "1234500"),
    (20, -2): (-(10**20 - 1), DecimalType(22, 0), f"-{10**20 - 1}00"),
    (3, 5): (123, DecimalType(5, 5), "0.00123"),
    (38, 38): (-1, DecimalType(38, 38), f"-0.{1:038}"),
    (50, 40): (-(10**37), DecimalType(38, 38), f"-0.001{0:035}"),
    (60, 50): (5 * 10**49, DecimalType(38, 38), f"0.5{0:037}"),
    (65, 30): (-(10**30), DecimalType(38, 30), f"-1.{0:030}"),
    (38, -3): (7, DecimalType(38, 0), "7000"),
}
"""Precision and scale at the source: an unscaled value, what the lake stores, the number."""


def test_a_decimal_of_any_scale_is_stored_as_the_same_number(spark: SparkSession) -> None:
    columns = [SourceColumn(f"c{at}", JSON.decimal(*form)) for at, form in enumerate(SHAPES)]
    assert [column.type.spark for column in columns] == [kind for _, kind, _ in SHAPES.values()]
    row = {f"c{at}": unscaled(value) for at, (value, _, _) in enumerate(SHAPES.values())}
    (decoded,) = decode_texts(spark, columns, [event(row)])
    assert list(decoded.values()) == [Decimal(text) for _, _, text in SHAPES.values()]


def test_a_decimal_that_38_digits_do_not_hold_stops_the_run(spark: SparkSession) -> None:
    large = [((50, 40), 1), ((50, 40), 10**40), ((38, -3), 10**35), ((65, 30), 10**38)]
    columns = [SourceColumn(f"n{at}", JSON.decimal(*form)) for at, (form, _) in enumerate(large)]
    texts = [event({f"n{at}": unscaled(value)}) for at, (_, value) in enumerate(large)]
    for at, reason in enumerate(failures(spark, columns, texts)):
        assert f"column 'n{at}': a value is not a decimal(38," in (reason or "it did not fail")


def decoded(spark: SparkSession, kind: LogicalType, values: Iterable[Any]) -> list[Any]:
    texts = [event({"n": value}) for value in values]
    return [row["n"] for row in decode_texts(spark, [SourceColumn("n", kind)], texts)]


def test_text_keeps_every_digit_with_decimal_handling_mode_string(spark: SparkSession) -> None:
    written = ["123456789012345678901234567890.12345678", "-0.00000001", "7", "1E+3"]
    numbers = decoded(spark, decimal(38, 8, "string"), written)
    assert numbers == [Decimal(digits) for digits in written]


def test_decimals_of_more_than_38_digits_are_exact_as_text(spark: SparkSession) -> None:
    numbers = [0, 1, -1, 10**38, -(10**38), 10**65 - 1, 1 - 10**65, 2**127, -(2**127), 2**128]
    numbers += [2 ** (8 * width - 1) + shift for width in range(15, 30) for shift in (-1, 0, 1)]
    draw = random.Random(65)
    numbers += [draw.randrange(-(10**65), 10**65) for _ in range(40)]
    numbers += [10**900 + 7, -(10**900)]
    assert form_of(65, 30).wire == StringType()
    texts = decoded(spark, form_of(65, 30), [unscaled(n) for n in numbers])
    assert texts == [f"{Decimal(n).scaleb(-30, Context(prec=1000)):f}" for n in numbers]


def form_of(precision: int, scale: int) -> LogicalType:
    return JSON.with_policy("string").decimal(precision, scale)


def test_a_column_that_fits_stays_a_decimal_whatever_becomes_of_larger_ones() -> None:
    assert form_of(38, 10).spark == DecimalType(38, 10)
    assert form_of(39, 10).spark == StringType()
    assert JSON.decimal(65, 10).spark == DecimalType(38, 10)


def test_an_unconstrained_numeric_is_the_decimal_that_is_declared(spark: SparkSession) -> None:
    parts = [(2, 150), (0, -7), (-2, 12), (5, 1_500_000), (3, 0), (40, 0)]
    wire = [{"scale": s, "value": unscaled(n)} for s, n in parts]
    numbers = decoded(spark, JSON.variable(DecimalType(20, 3)), wire)
    assert numbers == [Decimal(n).scaleb(-s) for s, n in parts]


def test_an_unsigned_bigint_in_mode_long_is_unwrapped(spark: SparkSession) -> None:
    numbers = [0, 1, 2**63 - 1, 2**63, 2**64 - 1]
    wrapped = [n if n < 2**63 else n - 2**64 for n in numbers]
    assert decoded(spark, unsigned(), wrapped) == [Decimal(n) for n in numbers]


CARRIED: dict[str, tuple[LogicalType, Any, str]] = {
    "fewer digits behind the point": (JSON.decimal(12, 4), unscaled(15_000), "1.50"),
    "and a larger number": (JSON.decimal(38, 0), unscaled(-7), "-7.00"),
    "more than 38 digits": (form_of(50, 4), unscaled(-15_000), "-1.50"),
    "text": (PRIMITIVES["string"], "1234", "1234.00"),
    "text with an exponent": (PRIMITIVES["string"], "1.50E+1", "15.00"),
}
"""What the schema says of a column that is declared DECIMAL(10,2), a value and the lake's."""

FINER = {
    "bytes": (JSON.decimal(12, 4), unscaled(15_001)),
    "of an array": (array(JSON.decimal(12, 4)), [unscaled(15_001)]),
    "more than 38 digits": (form_of(50, 4), unscaled(15_001)),
    "text": (PRIMITIVES["string"], "1.5001"),
    "text of next to nothing": (PRIMITIVES["string"], "1E-7"),
}


def test_the_records_schema_says_how_a_declared_decimal_is_written(spark: SparkSession) -> None:
    columns = [
        SourceColumn(name, as_declared(kind, decimal(10, 2)) or decimal(10, 2))
        for name, (kind, _, _) in CARRIED.items()
    ]
    many = as_declared(array(JSON.decimal(12, 4)), array(decimal(10, 2)))
    columns.append(SourceColumn("many", many or array(decimal(10, 2))))
    row: dict[str, Any] = {name: value for name, (_, value, _) in CARRIED.items()}
    row["many"] = [unscaled(15_000), None]
    (decoded,) = decode_texts(spark, columns, [event(row)])
    assert decoded.pop("many") == [Decimal("1.50"), None]
    assert decoded == {name: Decimal(text) for name, (_, _, text) in CARRIED.items()}


def test_a_declared_decimal_never_rounds_what_the_records_carry(spark: SparkSession) -> None:
    columns = []
    for name, (kind, value) in FINER.items():
        ddl_type = array(decimal(10, 2)) if isinstance(value, list) else decimal(10, 2)
        columns.append(SourceColumn(name, as_declared(kind, ddl_type) or ddl_type))
    texts = [event({name: value}) for name, (_, value) in FINER.items()]
    for name, reason in zip(FINER, failures(spark, columns, texts), strict=True):
        assert f"column '{name}': a value is not a" in (reason or "it did not fail")
