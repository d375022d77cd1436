"""What a logical type is: how the wire shows it, what the lake stores, the expression between.

A conversion that yields null for a value that is not null would drop data in silence, so each
fallible one is wrapped in ``checked``, which fails the job. Its message names the column and the
type, never the value; the table is added where the failure is caught (``apply/spark_errors.py``),
because a decoder does not know whose rows it reads.

So a conversion is told its ``Site``. The rejected way, the column's name inside ``LogicalType``,
would make one type of each column, and two tables of the same shape would no longer be equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

CONVERSION_FAILED = "LAKEINGEST_CONVERSION"
"""Start of the message of a value that does not fit its declared type."""


@dataclass(frozen=True)
class Site:
    """Where a value is converted, and by what policy.

    Attributes:
        column: Name of its column, for messages.
        infinite: What becomes of times that are infinite or not in the years 1 to 9999: ``fail``,
            ``null`` or ``edge``; of those in a key ``refuse``.
        schema: Names the schema of the value's record (binary): by it a type knows which of a
            batch's versions of itself is meant (``versions.py``). Null: nothing tells; the type is
            what it is stored as.
    """

    column: str = ""
    infinite: str = "fail"
    schema: Column | None = field(default=None, compare=False)

    def refused(self, name: str, remedy: str = "") -> Column:
        """Return an expression that fails the job, because a value is none of its type.

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
    """Return the value: the wire shows it as the lake stores it."""
    return value


def plain(convert: Callable[[Column], Column]) -> Convert:
    """Return a conversion that cannot fail."""
    return lambda value, _: convert(value)


def checked(name: str, convert: Callable[[Column], Column], remedy: str = "") -> Convert:
    """Return a conversion that fails the job where it gives null for a value.

    Args:
        name: The type in words.
        convert: Gives null for what does not fit.
        remedy: See ``Site.refused``.
    """

    # Of two arguments coalesce evaluates the second only where the first is null: a value that
    # fits is converted once, which a condition over the result does not promise.
    def conversion(value: Column, site: Site) -> Column:
        failed = F.when(value.isNotNull(), site.refused(name, remedy))
        return F.coalesce(convert(value), failed)

    return conversion


@dataclass(frozen=True)
class LogicalType:
    """How one type is shown on the wire and stored in the lake.

    Attributes:
        wire: Type that ``from_json`` or ``from_avro`` reads.
        spark: Type of the target column.
        convert: ``(wire column, site) -> Column`` of type ``spark``.
        name: Semantic name, for messages and for telling placeholders.
        form: What the wire's type does not tell of a value: its unit, scale or notation; empty: it
            is what it looks like. Types of one wire and form are converted alike.
        versions: What it is in each version of the schema (``versions.Version``), where a batch
            has several that differ; ``convert`` minds them already.
    """

    wire: DataType
    spark: DataType
    convert: Convert = field(default=same, compare=False)
    name: str = ""
    form: str = ""
    versions: tuple[tuple[frozenset[bytes], LogicalType], ...] = ()


def as_type(kind: LogicalType, spark: DataType) -> LogicalType:
    """Return the type whose values are stored as ``spark``, a type that holds all of them."""
    if kind.spark == spark:
        return kind

    def convert(value: Column, site: Site) -> Column:
        return kind.convert(value, site).cast(spark)

    return replace(kind, spark=spark, convert=convert, versions=())


def squeezed(kind: LogicalType, spark: DataType) -> LogicalType:
    """Return the type whose values are stored as ``spark``, which need not hold them.

    A value that does not come back the same from ``spark`` fails the job.
    """
    name = f"{spark.simpleString()}, its type in the lake"

    def convert(wire: Column, site: Site) -> Column:
        value = kind.convert(wire, site)
        stored = value.cast(spark)
        fits = F.when(stored.cast(kind.spark) == value, stored)
        return F.coalesce(fits, F.when(wire.isNotNull(), site.refused(name)))

    return replace(kind, spark=spark, convert=convert, versions=())
