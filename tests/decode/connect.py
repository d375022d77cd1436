"""Types as the schemas of records describe them in Connect's words."""

from __future__ import annotations

from typing import Any

DECIMAL = "org.apache.kafka.connect.data.Decimal"


def decimal(precision: int, scale: int, **more: Any) -> dict[str, Any]:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {"type": "bytes", "name": DECIMAL, "parameters": parameters, **more}


def semantic(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """Return a type of Debezium's, such as ``time.Date``."""
    return {"type": kind, "name": f"io.debezium.{name}", **more}


def array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def struct(name: str, **kinds: str) -> dict[str, Any]:
    """Return a type of Debezium's whose parts have these types."""
    parts = [{"field": field, "type": kind} for field, kind in kinds.items()]
    return semantic("struct", name, fields=parts)


DATE = semantic("int32", "time.Date")
MILLIS = semantic("int64", "time.Timestamp")
MICROS = semantic("int64", "time.MicroTimestamp")
MICRO_TIME = semantic("int64", "time.MicroTime")
ZONED = semantic("string", "time.ZonedTimestamp")
VARIABLE = struct("data.VariableScaleDecimal", scale="int32", value="bytes")
