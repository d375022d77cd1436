"""Types composed of others: arrays, maps, structs; vectors and geometries are composed, too.

Connect's converters write a map as an object only if its keys are text that is never NULL. Any
other map (a sparse vector's, by dimension) is an array of entries: pairs in JSON, records in Avro.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

from lakeingest.cast import cast_to
from lakeingest.decode.types.logical_type import LogicalType, Site, checked, same


def array(element: LogicalType) -> LogicalType:
    """Return an array of ``element``."""

    def convert(value: Column, site: Site) -> Column:
        return F.transform(value, lambda item: element.convert(item, site))

    return LogicalType(
        ArrayType(element.wire),
        ArrayType(element.spark),
        same if element.convert is same else convert,
        f"array<{element.name}>",
        element.form,
    )


def mapping(value: LogicalType) -> LogicalType:
    """Return a map from string to ``value``."""

    def convert(wire: Column, site: Site) -> Column:
        return F.transform_values(wire, lambda _, item: value.convert(item, site))

    return LogicalType(
        MapType(StringType(), value.wire),
        MapType(StringType(), value.spark),
        same if value.convert is same else convert,
        f"map<{value.name}>",
        value.form,
    )


def pairs(key: LogicalType, value: LogicalType) -> LogicalType:
    """Return a map that JSON shows as ``[[key, value], …]``."""

    def item(text: Column, kind: LogicalType, site: Site) -> Column:
        # One array has both key and value, so they are read as text first.
        read = checked(kind.name, lambda value: cast_to(value, kind.wire))
        return kind.convert(read(text, site), site)

    def convert(wire: Column, site: Site) -> Column:
        def entry(pair: Column) -> Column:
            return F.struct(
                item(F.get(pair, F.lit(0)), key, site).alias("key"),
                item(F.get(pair, F.lit(1)), value, site).alias("value"),
            )

        return F.map_from_entries(F.transform(wire, entry))

    return LogicalType(
        ArrayType(ArrayType(StringType())),
        MapType(key.spark, value.spark),
        convert,
        f"map<{key.name},{value.name}>",
        f"{key.form}:{value.form}",
    )


def entries(key: LogicalType, value: LogicalType) -> LogicalType:
    """Return a map that Avro shows as an array of records with ``key`` and ``value``."""
    of_entry = struct({"key": key, "value": value})

    def convert(wire: Column, site: Site) -> Column:
        return F.map_from_entries(F.transform(wire, lambda item: of_entry.convert(item, site)))

    return LogicalType(
        ArrayType(of_entry.wire),
        MapType(key.spark, value.spark),
        convert,
        f"map<{key.name},{value.name}>",
        f"{key.form}:{value.form}",
    )


def struct(fields: Mapping[str, LogicalType]) -> LogicalType:
    """Return a struct of named logical types."""

    def convert(wire: Column, site: Site) -> Column:
        parts = [kind.convert(wire[name], site).alias(name) for name, kind in fields.items()]
        return F.when(wire.isNotNull(), F.struct(*parts))

    return LogicalType(
        StructType([StructField(name, kind.wire) for name, kind in fields.items()]),
        StructType([StructField(name, kind.spark) for name, kind in fields.items()]),
        convert,
        "struct",
        _form(fields),
    )


def _form(fields: Mapping[str, LogicalType]) -> str:
    forms = [kind.form for kind in fields.values()]
    return ",".join(forms) if any(forms) else ""
