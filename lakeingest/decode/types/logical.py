"""Map Debezium's and Connect's logical types to Spark types: one entry per semantic name.

Each type is defined in the module of its family (``temporal.py``, ``structured.py``,
``decimals.py``, ``octets.py``, ``composed.py``). Here are the names by which schemas and declared
comments find it, and the differences between JSON and Avro. Source: Debezium's ``io.debezium.time``
and ``io.debezium.data`` packages; table in the connector documentation, "Data type mappings".

``Bits`` stay as they come, little-endian (the first octet has the lowest eight bits), as Java's
``BitSet`` writes them. A column of bits has no sign and no size that would make it a number, and
another reader of Debezium's topics finds the same octets. ``bit(1)`` is a boolean on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NumericType,
    ShortType,
    StringType,
)

from lakeingest.decode.types import decimals, structured, temporal
from lakeingest.decode.types.composed import entries, pairs
from lakeingest.decode.types.decimals import decimal
from lakeingest.decode.types.logical_type import (
    LogicalType,
    as_type,
    checked,
    plain,
)
from lakeingest.decode.types.octets import BASE64, OCTETS, RAW, OctetForm, binary
from lakeingest.decode.types.versions import join_versions, stored_as
from lakeingest.widening import widens

DECIMAL = "org.apache.kafka.connect.data.Decimal"


def text(name: str = "string") -> LogicalType:
    """Return the type of text as it is.

    A wire value of another JSON type becomes its JSON text, as Spark writes it: without blanks, and
    a number with a fraction goes through a double, which keeps 15 digits.
    """
    return LogicalType(StringType(), StringType(), name=name)


def _int8(value: Column) -> Column:
    # Spark's JSON reader accepts 128 to 255 as a byte and wraps them around.
    return F.when(value.between(-128, 127), value.cast("tinyint"))


_FLOAT = LogicalType(FloatType(), FloatType(), name="float")
_FLOAT_IN_TEXT = replace(_FLOAT, form="digits of a float")
"""A float in JSON. As a double, the same digits are another number: a float's 0.1 is above 0.1."""

PRIMITIVES: Mapping[str, LogicalType] = {
    "boolean": LogicalType(BooleanType(), BooleanType(), name="boolean"),
    "int8": LogicalType(ShortType(), ByteType(), checked("int8", _int8), "int8"),
    "int16": LogicalType(ShortType(), ShortType(), name="int16"),
    "int32": LogicalType(IntegerType(), IntegerType(), name="int32"),
    "int64": LogicalType(LongType(), LongType(), name="int64"),
    "float": _FLOAT_IN_TEXT,
    "float32": _FLOAT_IN_TEXT,
    "double": LogicalType(DoubleType(), DoubleType(), name="double"),
    "float64": LogicalType(DoubleType(), DoubleType(), name="double"),
    "string": text(),
    "bytes": binary(),
}
"""Connect's primitive types."""

SEMANTIC: Mapping[str, LogicalType] = {
    "io.debezium.time.Date": temporal.DATE,
    "io.debezium.time.Time": temporal.MILLI_TIME,
    "io.debezium.time.MicroTime": temporal.MICRO_TIME,
    "io.debezium.time.NanoTime": temporal.NANO_TIME,
    "io.debezium.time.Timestamp": temporal.MILLI_TIMESTAMP,
    "io.debezium.time.MicroTimestamp": temporal.MICRO_TIMESTAMP,
    "io.debezium.time.NanoTimestamp": temporal.NANO_TIMESTAMP,
    "io.debezium.time.ZonedTimestamp": temporal.ZONED_TIMESTAMP,
    "io.debezium.time.IsoDate": temporal.ISO_DATE,
    "io.debezium.time.IsoTime": temporal.ISO_TIME,
    "io.debezium.time.IsoTimestamp": temporal.ISO_TIMESTAMP,
    "io.debezium.time.Year": PRIMITIVES["int32"],
    "io.debezium.time.StructuredDate": structured.STRUCTURED_DATE,
    "io.debezium.time.StructuredTime": structured.STRUCTURED_TIME,
    "io.debezium.time.StructuredTimestamp": structured.STRUCTURED_TIMESTAMP,
    "io.debezium.time.StructuredZonedTime": structured.STRUCTURED_ZONED_TIME,
    "io.debezium.time.StructuredZonedTimestamp": structured.STRUCTURED_ZONED_TIMESTAMP,
    "io.debezium.time.StructuredDuration": structured.STRUCTURED_DURATION,
    "io.debezium.data.VariableScaleDecimal": decimals.variable(BASE64),
    "io.debezium.data.Bits": binary(),
    "org.apache.kafka.connect.data.Date": temporal.DATE,
    "org.apache.kafka.connect.data.Time": temporal.MILLI_TIME,
    "org.apache.kafka.connect.data.Timestamp": temporal.MILLI_TIMESTAMP,
}
"""Semantic names whose wire form says more than their primitive type.

Names that are text on the wire (Json, Xml, Uuid, Enum, EnumSet, Ltree, Tsvector, ZonedTime,
Interval …), numbers (MicroDuration, NanoDuration) or made of other types (Point, Geometry,
DoubleVector …) need no entry: the lake stores their primitive type.
"""


@dataclass(frozen=True)
class Form:
    """The differences between JSON and Avro on the wire: octets, small integers, maps.

    Attributes:
        octets: How octets look.
        entries: Key and value to a map whose keys are not text.
        primitives: Connect's primitive types.
        semantic: Semantic names that say more than their primitive type.
        numeric: Whether decimals are numbers, not octets.
        too_large: Policy for decimals of more than 38 digits: ``fail`` or ``string``.
    """

    octets: OctetForm
    entries: Callable[[LogicalType, LogicalType], LogicalType]
    primitives: Mapping[str, LogicalType]
    semantic: Mapping[str, LogicalType]
    numeric: bool = False
    too_large: str = "fail"

    def decimal(self, precision: int, scale: int) -> LogicalType:
        """Return Connect's ``Decimal``.

        Args:
            precision: Digits that the source allows.
            scale: Digits after the point; see ``decimals.shape``.
        """
        fits = decimals.digits_of(precision, scale) <= decimals.DIGITS
        if not fits and self.too_large == "string":
            return self.large(scale)
        if self.numeric:
            return decimals.number(precision, scale)
        return decimals.in_octets(self.octets, precision, scale)

    def large(self, scale: int) -> LogicalType:
        """Return a ``Decimal`` of any number of digits, as text."""
        return decimals.large_number(scale) if self.numeric else decimals.large(self.octets, scale)

    def variable(self, spark: DecimalType) -> LogicalType:
        """Return ``VariableScaleDecimal`` as a declared decimal."""
        return decimals.variable(self.octets, spark)

    def with_policy(self, too_large: str) -> Form:
        """Return the form under a policy for decimals that are too large."""
        return replace(self, too_large=too_large)


JSON = Form(BASE64, pairs, PRIMITIVES, SEMANTIC)
"""JsonConverter's form: octets are base64 text."""

JSON_NUMERIC = replace(JSON, numeric=True)
"""The same with ``decimal.format=NUMERIC``: decimals are numbers."""

AVRO = Form(
    OCTETS,
    entries,
    {
        **PRIMITIVES,
        "int8": LogicalType(IntegerType(), ByteType(), checked("int8", _int8), "int8"),
        "int16": LogicalType(
            IntegerType(), ShortType(), plain(lambda value: value.cast("smallint")), "int16"
        ),
        # Avro's reader widens a float as a cast does.
        "float32": _FLOAT,
        "bytes": RAW,
    },
    {
        **SEMANTIC,
        "io.debezium.data.VariableScaleDecimal": decimals.variable(OCTETS),
        "io.debezium.data.Bits": RAW,
    },
)
"""AvroConverter's form: octets are octets, int8 and int16 are ``int`` with ``connect.type``."""


_HOLDS_NUMBERS = (NumericType, StringType)


def declared_type(
    carried: LogicalType, stored: LogicalType, *, alone: bool = True
) -> LogicalType | None:
    """Return the type that reads a record by its schema and stores it as a DDL declares.

    Where a batch has several versions of the type, each is judged by itself. What they have in
    common says nothing: a number and a decimal's octets are both read as text, and read by one type
    a number would become another one.

    Args:
        carried: The type by the record's schema; by the DDL, if the record has none.
        stored: The type by the DDL and its comments.
        alone: Whether all records of the batch have this type. Then the DDL may say what its values
            mean. Among several versions it says what those of one mean: by it, another one's
            seconds would be microseconds.

    Returns:
        None if the declared type does not hold such values. A number that is declared as text or
        as another type of number is stored so if it stays the same; if not, it stops the run.
    """
    if carried.versions:
        each = [(tags, declared_type(kind, stored, alone=False)) for tags, kind in carried.versions]
        versions = [(tags, kind) for tags, kind in each if kind is not None]
        return join_versions(versions) if len(versions) == len(each) else None
    special = as_declared(carried, stored)
    if special is not None:
        return special
    if widens(carried.spark, stored.spark):
        return as_type(carried, stored.spark)
    same_meaning = alone or carried.form == stored.form
    if same_meaning and carried.wire == stored.wire and not decimals.scales_differ(carried, stored):
        return stored
    if isinstance(carried.spark, NumericType) and isinstance(stored.spark, _HOLDS_NUMBERS):
        return stored_as(carried, stored.spark)
    return None


def as_declared(carried: LogicalType, stored: LogicalType) -> LogicalType | None:
    """Return the type that reads as a record's schema says and stores as a DDL declares.

    Only for cases that a wider type alone does not cover: decimals as their digits and as decimals
    of another scale, ``numeric`` and text as a decimal, and MySQL's unsigned bigint, which a schema
    calls int64. Only the schema has the scale of a decimal's bytes: with a declared scale they
    would be another number. A value that does not fit the declared type stops the run.

    Args:
        carried: The type by the record's schema.
        stored: The type by the DDL and its comments.

    Returns:
        None where the two are not such a case.
    """
    if carried.versions:
        return _each_as_declared(carried, stored)
    if stored.name == decimals.UNSIGNED and carried.wire == stored.wire:
        return stored
    if carried.spark == stored.spark:
        return None
    if carried.name == decimals.VARIABLE_NAME and isinstance(stored.spark, DecimalType):
        raw = carried.wire == AVRO.semantic[decimals.VARIABLE].wire
        return (AVRO if raw else JSON).variable(stored.spark)
    if _of_decimals(carried) and _of_decimals(stored):
        return stored_as(carried, stored.spark)
    if isinstance(stored.spark, DecimalType):
        return _as_decimal(carried, stored.spark)
    if isinstance(carried.spark, DecimalType) and isinstance(stored.spark, StringType):
        large = {RAW.wire: AVRO.large, StringType(): JSON.large}.get(carried.wire)
        scale = decimals.wire_scale(carried)
        return large(scale) if large is not None and scale is not None else None
    return None


def _of_decimals(kind: LogicalType) -> bool:
    return isinstance(kind.spark, ArrayType) and isinstance(kind.spark.elementType, DecimalType)


def _as_decimal(carried: LogicalType, spark: DecimalType) -> LogicalType | None:
    if isinstance(carried.spark, DecimalType):
        return stored_as(carried, spark)
    if not isinstance(carried.spark, StringType):
        return None
    scale = decimals.wire_scale(carried)
    if scale is not None:
        return decimals.of_large(carried, scale, spark)
    # Digits are base64, too, so only the schema separates text from bytes.
    is_text = isinstance(carried.wire, StringType) and not carried.form
    return decimal(spark.precision, spark.scale, "string") if is_text else None


def _each_as_declared(carried: LogicalType, stored: LogicalType) -> LogicalType | None:
    """Return the same where the batch's records have several versions of the type."""
    each = [(tags, kind, as_declared(kind, stored)) for tags, kind in carried.versions]
    if all(special is None for _, _, special in each):
        return None
    return join_versions(
        [(tags, special or stored_as(kind, stored.spark)) for tags, kind, special in each]
    )
