"""A column in records of several schema versions: its own version reads each record.

Between two versions a column's wire form may change in ways that its values do not show. The bytes
of ``1.50`` are those of ``0.0150`` if the scale is four, and a number of milliseconds is a moment
in 1970 if read as microseconds. So the version that a record names (``Site.schema``) converts its
value; then the value is stored as the type that all versions share.

Only versions that differ like this are treated so: everything else is read in one way, as in a
batch with one version. Rejected: a frame per version and their union, which would read and fold a
batch once per version. Also rejected: the newest version's type for all of them. It is right for
types that only grow, and silently gives other values for the rest.

Where even the wire's types differ (another ``time.precision.mode``), the field is read as text, and
then the text as the version's type.
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

from lakeingest.decode.json.limits import ANY_LENGTH
from lakeingest.decode.types.logical_type import LogicalType, Site, as_narrower_type, as_type
from lakeingest.decode.types.octets import base64
from lakeingest.widening import widens

Version = tuple[frozenset[bytes], LogicalType]
"""Tags of the schemas with a column's type, and the type; no tags: all other schemas."""


def of_versions(kind: LogicalType, versions: Mapping[bytes, LogicalType]) -> LogicalType:
    """Return ``kind`` so that it also reads records of other versions.

    Args:
        kind: The stored type; it also reads records that ``versions`` does not name.
        versions: Type that reads records with these schemas.
    """
    tags_by_type: dict[LogicalType, set[bytes]] = {}
    for tag, version in versions.items():
        if not _reads(version, kind):
            tags_by_type.setdefault(version, set()).add(tag)
    others = [(frozenset(tags), version) for version, tags in tags_by_type.items()]
    return join_versions([(frozenset(), kind), *others]) if others else kind


def _reads(one: LogicalType, kind: LogicalType) -> bool:
    """Return whether ``kind`` reads values that are written as ``one``."""
    if one.form != kind.form:
        return False
    # Readers widen plain numbers.
    numbers = isinstance(one.wire, NumericType) and isinstance(kind.wire, NumericType)
    return one.wire == kind.wire or (numbers and widens(one.wire, kind.wire))


def join_versions(versions: Sequence[Version]) -> LogicalType:
    """Return one type of several versions; the first version has the stored type."""
    (_, kind), *others = versions
    wire_differs = any(version.wire != kind.wire for _, version in others)

    def read(version: LogicalType, value: Column, site: Site) -> Column:
        wire = _from_text(value, version.wire) if wire_differs else value
        return stored_as(version, kind.spark).convert(wire, site)

    def convert(value: Column, site: Site) -> Column:
        own = read(kind, value, site)
        if site.schema is None:
            return own
        by_version: Column | None = None
        for tags, version in others:
            is_version = site.schema.isin(*sorted(tags))
            stored = read(version, value, site)
            by_version = (
                F.when(is_version, stored)
                if by_version is None
                else by_version.when(is_version, stored)
            )
        return own if by_version is None else by_version.otherwise(own)

    wire = StringType() if wire_differs else kind.wire
    return replace(kind, wire=wire, convert=convert, versions=tuple(versions))


def _from_text(text: Column, wire: DataType) -> Column:
    """Return a field that the reader read as text, in its wire type."""
    if isinstance(wire, StringType):
        return text
    if isinstance(wire, BinaryType):
        return base64(text)
    whole = F.concat(F.lit('{"value":'), text, F.lit("}"))
    read = F.from_json(
        whole, StructType([StructField("value", wire)]), {"mode": "FAILFAST", **ANY_LENGTH}
    )
    return read.getField("value")


def stored_as(kind: LogicalType, spark: DataType) -> LogicalType:
    """Return a type with values stored as ``spark``; a value that changes stops the run."""
    if kind.versions:
        # Each version by itself: the type that they share need not hold what ``spark`` holds.
        return join_versions([(tags, stored_as(one, spark)) for tags, one in kind.versions])
    return (as_type if widens(kind.spark, spark) else as_narrower_type)(kind, spark)
