"""Debezium and Connect logical types to Spark types: one entry per semantic name.

A column has three sides: how the wire shows it (``wire``, the type that ``from_json`` reads), what
the lake stores (``spark``) and the expression between. A conversion that yields null for a value
that is not null would drop data in silence, so each fallible one is wrapped in ``_checked``, which
fails the job with a message that names the type and never the value.

Times of day are ISO text: Spark 3.5 has no TIME type and a long in three possible units is a trap.
Timestamps without zone are ``timestamp_ntz``, computed by interval arithmetic so that no session
time zone can enter. Source: Debezium's ``io.debezium.time`` and ``io.debezium.data`` packages;
table in the connector documentation, "Data type mappings".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
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
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakeingest.decode.number import decimal_from_bytes, decimal_text

CONVERSION_FAILED = "LAKEINGEST_CONVERSION"
"""Start of the message of a value that does not fit its declared type."""


def _same(value: Column) -> Column:
    return value


@dataclass(frozen=True)
class LogicalType:
    """How one type is shown on the wire and stored in the lake.

    Attributes:
        wire: Type that ``from_json`` reads.
        spark: Type of the target column.
        convert: ``(wire column) -> Column`` of type ``spark``.
        name: Semantic name, for messages and for telling placeholders.
    """

    wire: DataType
    spark: DataType
    convert: Callable[[Column], Column] = field(default=_same, compare=False)
    name: str = ""


def _checked(name: str, convert: Callable[[Column], Column]) -> Callable[[Column], Column]:
    def checked(value: Column) -> Column:
        converted = convert(value)
        failed = F.raise_error(F.lit(f"{CONVERSION_FAILED}: a value is not a {name}"))
        return F.when(value.isNotNull() & converted.isNull(), failed).otherwise(converted)

    return checked


_EPOCH = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"


def _ntz(unit: str, divisor: int = 1) -> Callable[[Column], Column]:
    def convert(value: Column) -> Column:
        # Decimal and not double: 19 digits of nanoseconds do not fit 53 bits.
        whole = value.cast("decimal(20,0)") / F.lit(divisor)
        count = value if divisor == 1 else F.floor(whole).cast("bigint")
        return F.expr(_EPOCH) + F.expr(f"INTERVAL '{unit}' SECOND") * count

    return convert


def _time_of_day(per_second: int) -> Callable[[Column], Column]:
    def convert(value: Column) -> Column:
        size = F.abs(value)
        second = F.floor(size / per_second).cast("bigint")
        micros = ((size % per_second) * F.lit(1_000_000) / per_second).cast("bigint")
        shown = F.format_string(
            "%s%02d:%02d:%02d.%06d",
            # MySQL's TIME is a span and may be negative.
            F.when(value < 0, F.lit("-")).otherwise(F.lit("")),
            F.floor(second / 3600),
            F.floor(second / 60) % 60,
            second % 60,
            micros,
        )
        # format_string makes the text "null" of a null.
        return F.when(value.isNotNull(), shown)

    return convert


_STRING = StringType()


def text(name: str = "string") -> LogicalType:
    """Text as it is; a wire value of another JSON type is kept as its JSON text."""
    return LogicalType(_STRING, _STRING, name=name)


def decimal(precision: int, scale: int, mode: str = "precise") -> LogicalType:
    """Return ``decimal(precision, scale)`` for a ``decimal.handling.mode``.

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
        return LogicalType(_STRING, spark, _checked(name, lambda value: value.cast(spark)), name)
    decode = _checked(name, lambda value: decimal_from_bytes(_base64(value), precision, scale))
    return LogicalType(_STRING, spark, decode, name)


def _base64(value: Column) -> Column:
    # unbase64 skips what is no base64: "12.50" would become the bytes of "1250".
    return F.try_to_binary(value, F.lit("base64"))


def binary(mode: str = "bytes") -> LogicalType:
    """Return ``binary`` for a ``binary.handling.mode``."""
    readers: Mapping[str, Callable[[Column], Column]] = {
        "bytes": _base64,
        "base64": _base64,
        "base64-url-safe": lambda value: _base64(F.translate(value, "-_", "+/")),
        "hex": F.unhex,
    }
    name = f"binary/{mode}"
    return LogicalType(_STRING, BinaryType(), _checked(name, readers[mode]), name)


def array(element: LogicalType) -> LogicalType:
    """Return an array of ``element``."""
    convert = (
        _same if element.convert is _same else lambda value: F.transform(value, element.convert)
    )
    return LogicalType(
        ArrayType(element.wire), ArrayType(element.spark), convert, f"array<{element.name}>"
    )


def mapping(value: LogicalType) -> LogicalType:
    """Return a map from string to ``value``."""
    return LogicalType(
        MapType(_STRING, value.wire),
        MapType(_STRING, value.spark),
        lambda wire: F.transform_values(wire, lambda _, item: value.convert(item)),
        f"map<{value.name}>",
    )


def struct(fields: Mapping[str, LogicalType]) -> LogicalType:
    """Return a struct of named logical types."""

    def convert(wire: Column) -> Column:
        parts = [kind.convert(wire[name]).alias(name) for name, kind in fields.items()]
        return F.when(wire.isNotNull(), F.struct(*parts))

    return LogicalType(
        StructType([StructField(name, kind.wire) for name, kind in fields.items()]),
        StructType([StructField(name, kind.spark) for name, kind in fields.items()]),
        convert,
        "struct",
    )


def _zoned(value: Column) -> Column:
    # Without a zone Spark would read the session's.
    return F.when(value.rlike(r"(Z|[+-]\d\d(:?\d\d)?)$"), value.cast("timestamp"))


def _int8(value: Column) -> Column:
    # Spark's JSON reader takes 128 to 255 for a byte and wraps them around.
    return F.when(value.between(-128, 127), value.cast("tinyint"))


PRIMITIVES: Mapping[str, LogicalType] = {
    "boolean": LogicalType(BooleanType(), BooleanType(), name="boolean"),
    "int8": LogicalType(ShortType(), ByteType(), _checked("int8", _int8), "int8"),
    "int16": LogicalType(ShortType(), ShortType(), name="int16"),
    "int32": LogicalType(IntegerType(), IntegerType(), name="int32"),
    "int64": LogicalType(LongType(), LongType(), name="int64"),
    "float": LogicalType(FloatType(), FloatType(), name="float"),
    "float32": LogicalType(FloatType(), FloatType(), name="float"),
    "double": LogicalType(DoubleType(), DoubleType(), name="double"),
    "float64": LogicalType(DoubleType(), DoubleType(), name="double"),
    "string": text(),
    "bytes": binary(),
}
"""Connect's primitive types."""

_DAYS = LogicalType(IntegerType(), DateType(), F.date_from_unix_date, "date")
_LONG = LongType()
_NTZ = TimestampNTZType()
_VARIABLE = struct({"scale": PRIMITIVES["int32"], "value": text()})

SEMANTIC: Mapping[str, LogicalType] = {
    "io.debezium.time.Date": _DAYS,
    "org.apache.kafka.connect.data.Date": _DAYS,
    "io.debezium.time.Time": LogicalType(_LONG, _STRING, _time_of_day(1_000), "time"),
    "org.apache.kafka.connect.data.Time": LogicalType(_LONG, _STRING, _time_of_day(1_000), "time"),
    "io.debezium.time.MicroTime": LogicalType(_LONG, _STRING, _time_of_day(1_000_000), "time"),
    "io.debezium.time.NanoTime": LogicalType(_LONG, _STRING, _time_of_day(1_000_000_000), "time"),
    "io.debezium.time.Timestamp": LogicalType(_LONG, _NTZ, _ntz("0.001"), "timestamp"),
    "org.apache.kafka.connect.data.Timestamp": LogicalType(_LONG, _NTZ, _ntz("0.001"), "timestamp"),
    "io.debezium.time.MicroTimestamp": LogicalType(_LONG, _NTZ, _ntz("0.000001"), "timestamp"),
    "io.debezium.time.NanoTimestamp": LogicalType(
        _LONG, _NTZ, _ntz("0.000001", 1_000), "timestamp"
    ),
    "io.debezium.time.ZonedTimestamp": LogicalType(
        _STRING, TimestampType(), _checked("zoned timestamp", _zoned), "zoned timestamp"
    ),
    "io.debezium.time.IsoTimestamp": LogicalType(
        _STRING,
        _NTZ,
        _checked("timestamp", lambda v: F.rtrim(F.translate(v, "Z", "")).cast(_NTZ)),
        "timestamp",
    ),
    "io.debezium.time.IsoDate": LogicalType(
        _STRING,
        DateType(),
        _checked("date", lambda v: F.translate(v, "Z", "").cast("date")),
        "date",
    ),
    "io.debezium.time.Year": PRIMITIVES["int32"],
    "io.debezium.data.VariableScaleDecimal": LogicalType(
        _VARIABLE.wire,
        _STRING,
        _checked("variable decimal", lambda v: decimal_text(_base64(v["value"]), v["scale"])),
        "variable decimal",
    ),
    "io.debezium.data.Bits": binary(),
}
"""Semantic names whose wire form says more than their primitive type.

Names that are text on the wire (Json, Xml, Uuid, Enum, EnumSet, Ltree, ZonedTime, Interval …) need
no entry: their primitive type, string, is what the lake stores.
"""


def as_type(kind: LogicalType, spark: DataType) -> LogicalType:
    """Return the type whose values are stored as ``spark``, a type that holds all of them."""
    if kind.spark == spark:
        return kind
    return replace(kind, spark=spark, convert=lambda value: kind.convert(value).cast(spark))


def squeezed(kind: LogicalType, spark: DataType) -> LogicalType:
    """Return the type whose values are stored as ``spark``, which need not hold them.

    A value that does not come back the same from ``spark`` fails the job.
    """
    name = f"{spark.simpleString()}, its type in the lake"

    def convert(wire: Column) -> Column:
        value = kind.convert(wire)
        stored = value.cast(spark)
        return F.when(stored.cast(kind.spark) == value, stored)

    return replace(kind, spark=spark, convert=_checked(name, convert))


@dataclass(frozen=True)
class Form:
    """What differs between JSON and Avro on the wire: octets, and integers of less than 32 bits.

    Attributes:
        decimal: ``(precision, scale)`` to Connect's ``Decimal``.
        primitives: Connect's primitive types.
        semantic: Semantic names that say more than their primitive.
    """

    decimal: Callable[[int, int], LogicalType]
    primitives: Mapping[str, LogicalType]
    semantic: Mapping[str, LogicalType]


JSON = Form(decimal, PRIMITIVES, SEMANTIC)
"""JsonConverter's form: octets are base64 text."""


def _raw_decimal(precision: int, scale: int) -> LogicalType:
    name = f"decimal({precision},{scale})"
    decode = _checked(name, lambda value: decimal_from_bytes(value, precision, scale))
    return LogicalType(BinaryType(), DecimalType(precision, scale), decode, name)


_RAW_BYTES = LogicalType(BinaryType(), BinaryType(), name="binary")
_RAW_VARIABLE = StructType(
    [StructField("scale", IntegerType()), StructField("value", BinaryType())]
)

AVRO = Form(
    _raw_decimal,
    {
        **PRIMITIVES,
        "int8": LogicalType(IntegerType(), ByteType(), _checked("int8", _int8), "int8"),
        "int16": LogicalType(
            IntegerType(), ShortType(), lambda value: value.cast("smallint"), "int16"
        ),
        "bytes": _RAW_BYTES,
    },
    {
        **SEMANTIC,
        "io.debezium.data.VariableScaleDecimal": LogicalType(
            _RAW_VARIABLE,
            _STRING,
            _checked("variable decimal", lambda v: decimal_text(v["value"], v["scale"])),
            "variable decimal",
        ),
        "io.debezium.data.Bits": _RAW_BYTES,
    },
)
"""AvroConverter's form: octets are octets, int8 and int16 are ``int`` with ``connect.type``."""
