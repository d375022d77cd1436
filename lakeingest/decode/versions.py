"""A column in records of several schema versions: each record is read by its own.

Between two versions a column's wire form may change in ways that its values do not show: the bytes
of ``1.50`` are those of ``0.0150`` where the scale is four, and a number of milliseconds is a
moment in 1970 where microseconds are meant. So a value is converted by the version that its record
names (``Site.schema``), and then stored as the type that all of them share.

Only where the versions differ so: everything else is read in one way, as it is where a batch has
one version. Two ways were rejected. A frame per version and their union would read and fold a batch
once per version. The newest version's type for all of them is right for types that only grow, and
gives other values without a word for the rest.

Where not even the wire's types are the same (another ``time.precision.mode``), the field is read as
text, and that as the version's type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    NumericType,
    StringType,
    StructField,
    StructType,
)

from lakeingest.decode.json_limits import ANY_LENGTH
from lakeingest.decode.logical_type import LogicalType, Site, as_type, squeezed
from lakeingest.decode.octets import base64
from lakeingest.widening import widens

Version = tuple[frozenset[bytes], LogicalType]
"""What names the schemas in which a column is of a type; none: all that no other version has."""


def of_versions(kind: LogicalType, versions: Mapping[bytes, LogicalType]) -> LogicalType:
    """Return ``kind`` so that it reads records of other versions, too.

    Args:
        kind: What the column is stored as, and how it is read where nothing else is said.
        versions: How it is read of records with these schemas.
    """
    unlike: dict[LogicalType, set[bytes]] = {}
    for tag, version in versions.items():
        if not _alike(version, kind):
            unlike.setdefault(version, set()).add(tag)
    others = [(frozenset(tags), version) for version, tags in unlike.items()]
    return joined([(frozenset(), kind), *others]) if others else kind


def _alike(one: LogicalType, kind: LogicalType) -> bool:
    """Tell whether ``kind`` reads what is written as ``one``."""
    if one.form != kind.form:
        return False
    # A number as it is: the readers widen it.
    numbers = isinstance(one.wire, NumericType) and isinstance(kind.wire, NumericType)
    return one.wire == kind.wire or (numbers and widens(one.wire, kind.wire))


def joined(versions: Sequence[Version]) -> LogicalType:
    """Return one type of several versions; the first says what it is stored as."""
    (_, kind), *others = versions
    apart = any(version.wire != kind.wire for _, version in others)

    def read(version: LogicalType, value: Column, site: Site) -> Column:
        wire = _from_text(value, version.wire) if apart else value
        return stored_as(version, kind.spark).convert(wire, site)

    def convert(value: Column, site: Site) -> Column:
        own = read(kind, value, site)
        if site.schema is None:
            return own
        chosen: Column | None = None
        for tags, version in others:
            mine = site.schema.isin(*sorted(tags))
            stored = read(version, value, site)
            chosen = F.when(mine, stored) if chosen is None else chosen.when(mine, stored)
        return own if chosen is None else chosen.otherwise(own)

    wire = StringType() if apart else kind.wire
    return replace(kind, wire=wire, convert=convert, versions=tuple(versions))


def _from_text(text: Column, wire: DataType) -> Column:
    """Return what a reader makes of a field that it was told to read as text."""
    if isinstance(wire, StringType):
        return text
    if isinstance(wire, BinaryType):
        return base64(text)
    whole = F.concat(F.lit('{"value":'), text, F.lit("}"))
    read = F.from_json(
        whole, StructType([StructField("value", wire)]), {"mode": "FAILFAST", **ANY_LENGTH}
    )
    return read.getField("value")


def stored_as(version: LogicalType, spark: DataType) -> LogicalType:
    """Return a version whose values are stored as ``spark``; one that would be another stops."""
    return (as_type if widens(version.spark, spark) else squeezed)(version, spark)
