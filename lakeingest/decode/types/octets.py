"""Read octets as JSON and Avro write them, and by the connector's ``binary.handling.mode``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType

from lakeingest.decode.types.logical_type import LogicalType, checked


def base64(value: Column) -> Column:
    """Return the octets of base64 text; NULL if the text is not base64."""
    # unbase64 skips characters that are no base64: "12.50" would become the bytes of "1250".
    return F.try_to_binary(value, F.lit("base64"))


@dataclass(frozen=True)
class OctetForm:
    """How a record format writes octets.

    Attributes:
        wire: Type on the wire.
        read: Returns the octets of a wire value; NULL if it has none.
    """

    wire: DataType
    read: Callable[[Column], Column]


BASE64 = OctetForm(StringType(), base64)
"""Octets in JSON."""

OCTETS = OctetForm(BinaryType(), lambda value: value)
"""Octets in Avro."""

RAW = LogicalType(OCTETS.wire, BinaryType(), name="binary")
"""The type of octets in Avro."""

_READERS: Mapping[str, Callable[[Column], Column]] = {
    "bytes": base64,
    "base64": base64,
    "base64-url-safe": lambda value: base64(F.translate(value, "-_", "+/")),
    "hex": F.unhex,
}


def binary(mode: str = "bytes") -> LogicalType:
    """Return ``binary`` for a ``binary.handling.mode``, as text on the wire."""
    name = f"binary/{mode}"
    return LogicalType(StringType(), BinaryType(), checked(name, _READERS[mode]), name, name)
