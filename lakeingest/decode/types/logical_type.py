"""A logical type: its form on the wire, its type in the lake, and the conversion between them.

A conversion that gives NULL for a value that is not NULL would drop data in silence. So each
conversion that can fail is wrapped in ``checked``, which fails the job. Its message names the
column and the type, never the value. The code that catches the failure adds the table
(``apply/spark_errors.py``), because a decoder does not know whose rows it reads.

So a conversion gets its ``Site``. Rejected: the column's name inside ``LogicalType``. It would make
one type of each column, and two tables of the same shape would no longer be equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from lakeingest.cast import cast_to, null_of
from lakeingest.widening import casts

CONVERSION_FAILED = "LAKEINGEST_CONVERSION"
"""Start of the message about a value that does not fit its declared type."""


@dataclass(frozen=True)
class Site:
    """The place where a value is converted, and the policy.

    Attributes:
        column: Name of its column, for messages.
        infinite: Policy for times that are infinite or not in the years 1 to 9999: ``fail``,
            ``null`` or ``edge``; in a key ``refuse``.
        schema: Tag of the schema of the value's record (binary). With it a type finds the right one
            of its versions in the batch (``versions.py``). None: no tag; the value has the stored
            type.
    """

    column: str = ""
    infinite: str = "fail"
    schema: Column | None = field(default=None, compare=False)

    def refused(self, name: str, remedy: str = "") -> Column:
        """Return an expression that fails the job, because a value is not of its type.

        Args:
            name: The type in words.
            remedy: What the user can do, if more than to compare the declaration with the source.
        """
        return self.failed(f"a value is not a {name}", remedy)

    def failed(self, what: str, remedy: str = "") -> Column:
        """Return an expression that fails the job.

        Args:
            what: What is wrong with a value of this column.
            remedy: What the user can do.
        """
        because = f"{what}; {remedy}" if remedy else what
        return F.raise_error(F.lit(f"{CONVERSION_FAILED}: column '{self.column}': {because}"))


Convert: TypeAlias = Callable[[Column, Site], Column]
"""``(wire column, where) -> Column`` of the stored type."""


def same(value: Column, _: Site) -> Column:
    """Return the value: wire and lake have the same form."""
    return value


def plain(convert: Callable[[Column], Column]) -> Convert:
    """Return a conversion that cannot fail."""
    return lambda value, _: convert(value)


def checked(name: str, convert: Callable[[Column], Column], remedy: str = "") -> Convert:
    """Return a conversion that fails the job where it gives NULL for a value.

    Args:
        name: The type in words.
        convert: Gives NULL for a value that does not fit.
        remedy: See ``Site.refused``.
    """

    # coalesce evaluates its second argument only where the first one is NULL, so a value that fits
    # is converted once. A condition over the result does not promise this.
    def conversion(value: Column, site: Site) -> Column:
        failed = F.when(value.isNotNull(), site.refused(name, remedy))
        return F.coalesce(convert(value), failed)

    return conversion


@dataclass(frozen=True)
class LogicalType:
    """How one type looks on the wire and in the lake.

    Attributes:
        wire: Type that ``from_json`` or ``from_avro`` reads.
        spark: Type of the target column.
        convert: ``(wire column, site) -> Column`` of type ``spark``.
        name: Semantic name, for messages and to recognise placeholders.
        form: What the wire's type does not say about a value: its unit, scale or notation; empty:
            nothing. Types with the same wire type and form have the same conversion.
        versions: The type in each version of the schema (``versions.Version``), where a batch has
            several that differ; ``convert`` respects them already.
    """

    wire: DataType
    spark: DataType
    convert: Convert = field(default=same, compare=False)
    name: str = ""
    form: str = ""
    versions: tuple[tuple[frozenset[bytes], LogicalType], ...] = ()


def as_type(kind: LogicalType, spark: DataType) -> LogicalType:
    """Return the type with values stored as ``spark``, which can hold all of them."""
    if kind.spark == spark:
        return kind

    def convert(value: Column, site: Site) -> Column:
        return cast_to(kind.convert(value, site), spark)

    return replace(kind, spark=spark, convert=convert, versions=())


def as_narrower_type(kind: LogicalType, spark: DataType) -> LogicalType:
    """Return the type with values stored as ``spark``, which may not hold all of them.

    A value that is not the same after a cast to ``spark`` and back fails the job. Where Spark has
    no such cast, each value does. A struct is stored field by field, by name: a field that it lacks
    is NULL, and one that ``spark`` lacks must be NULL.
    """
    name = f"{spark.simpleString()}, its type in the lake"

    def convert(wire: Column, site: Site) -> Column:
        return _stored(kind.convert(wire, site), kind.spark, spark, site.refused(name))

    return replace(kind, spark=spark, convert=convert, versions=())


def _stored(value: Column, own: DataType, spark: DataType, refused: Column) -> Column:
    """Return a value of type ``own`` as ``spark``; ``refused`` where it would be another value."""
    if own == spark:
        return value
    if isinstance(own, StructType) and isinstance(spark, StructType):
        return _stored_by_name(value, own, spark, refused)
    other = F.when(value.isNotNull(), refused)
    if not (casts(own, spark) and casts(spark, own)):
        return cast_to(other, spark)
    stored = cast_to(value, spark)
    fits = F.when(cast_to(stored, own) == value, stored)
    return F.coalesce(fits, other)


def _stored_by_name(value: Column, own: StructType, spark: StructType, refused: Column) -> Column:
    fields = {item.name: item.dataType for item in own}
    parts = [
        _stored(value[item.name], fields[item.name], item.dataType, refused).alias(item.name)
        if item.name in fields
        else null_of(item.dataType).alias(item.name)
        for item in spark
    ]
    stored = F.when(value.isNotNull(), F.struct(*parts))
    for name in own.names:
        if name not in spark.names:
            stored = F.when(value[name].isNotNull(), refused).otherwise(stored)
    return stored
