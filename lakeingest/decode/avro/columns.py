"""The columns of an Avro record, through the Connect schema that it was made from.

Avro has no notation for some properties of Connect's types. Confluent's ``AvroData`` writes them
into ``connect.name``, ``connect.type`` and ``connect.parameters``. With these, an Avro schema
becomes a Connect schema again, and one table of logical types is enough for both formats. Other
writers set only Avro's own ``logicalType``; it maps to the Connect name of the same meaning.

Rejected: Spark's own reading of ``logicalType``. It lacks Debezium's types, and reads a timestamp
without zone as one in the session's zone.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from lakeingest.decode.avro.schema import AvroSchema
from lakeingest.decode.cells import without_cells
from lakeingest.decode.columns import SourceColumn, from_connect
from lakeingest.decode.types.logical import Form

_CONNECT_TYPES = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "bytes": "bytes",
    "fixed": "bytes",
    "string": "string",
    "enum": "string",
    "null": "string",
}
_LOGICAL_NAMES = {
    "decimal": "org.apache.kafka.connect.data.Decimal",
    "date": "org.apache.kafka.connect.data.Date",
    "time-millis": "org.apache.kafka.connect.data.Time",
    "time-micros": "io.debezium.time.MicroTime",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
    "local-timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "local-timestamp-micros": "io.debezium.time.MicroTimestamp",
    "uuid": "io.debezium.data.Uuid",
}


def record_columns(schema: AvroSchema, kind: Any, form: Form) -> tuple[SourceColumn, ...]:
    """Return the columns of a record type of ``schema``; of any other type none.

    Args:
        schema: The schema that contains the type.
        kind: The type, or a nullable one, or its name.
        form: ``logical.AVRO`` for the record itself, ``logical.JSON`` for its text in a header.
    """
    return from_connect(_connect_fields(schema, kind), form)


def side_columns(schema: AvroSchema, form: Form) -> tuple[SourceColumn, ...]:
    """Return the columns of the rows of an envelope."""
    return from_connect(_side_fields(schema), form)


def side_in_cells(schema: AvroSchema) -> bool:
    """Return whether the columns of an envelope's rows are cells (``cells.py``)."""
    return without_cells(_side_fields(schema)) is not None


def _side_fields(schema: AvroSchema) -> list[dict[str, Any]]:
    sides = schema.fields(schema.tree)
    side = sides.get("after") or sides.get("before")
    return _connect_fields(schema, side["type"]) if side else []


def _connect_fields(schema: AvroSchema, kind: Any) -> list[dict[str, Any]]:
    return [
        {"field": name, **_connect(schema, item["type"]), **_nullability_and_default(schema, item)}
        for name, item in schema.fields(kind).items()
    ]


def _nullability_and_default(schema: AvroSchema, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a field says about its column apart from the type."""
    kind = schema.definition(item["type"])
    optional = kind == "null" or (isinstance(kind, list) and "null" in kind)
    default = _as_json(schema, item["type"], item.get("default"))
    return {"optional": optional, "default": default}


def _as_json(schema: AvroSchema, kind: Any, default: Any) -> Any:
    """Return a default as JSON has it: Avro writes octets as characters of ISO-8859-1."""
    kind = schema.present(kind)
    type_name = kind["type"] if isinstance(kind, dict) else kind
    if type_name in ("bytes", "fixed") and isinstance(default, str):
        return base64.b64encode(default.encode("latin-1")).decode()
    if type_name == "array" and isinstance(default, list):
        return [_as_json(schema, kind["items"], item) for item in default]
    return default


def _connect(schema: AvroSchema, kind: Any) -> dict[str, Any]:
    """Return the Connect schema of an Avro type, as JsonConverter writes it."""
    kind = schema.present(kind)
    if isinstance(kind, str):
        return {"type": _CONNECT_TYPES[kind]}
    if isinstance(kind, list):
        # A union of several types, which no Debezium connector writes: text keeps its content.
        return {"type": "string"}
    name, parameters = _name_and_parameters(kind)
    connect_schema: dict[str, Any] = {"name": name, "parameters": parameters}
    if kind["type"] == "record":
        return {**connect_schema, "type": "struct", "fields": _connect_fields(schema, kind)}
    entry = _entry(schema, kind)
    if entry is not None:
        # A map whose keys are not text. Optional, so that a text key takes the same path.
        keys, values = (_connect(schema, entry[name]["type"]) for name in ("key", "value"))
        return {
            **connect_schema,
            "type": "map",
            "keys": {**keys, "optional": True},
            "values": values,
        }
    if kind["type"] == "array":
        return {**connect_schema, "type": "array", "items": _connect(schema, kind["items"])}
    if kind["type"] == "map":
        return {**connect_schema, "type": "map", "values": _connect(schema, kind["values"])}
    return {**connect_schema, "type": kind.get("connect.type") or _CONNECT_TYPES[kind["type"]]}


def _entry(schema: AvroSchema, kind: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the fields of an entry, if the array is a map in ``AvroData``'s notation."""
    if kind["type"] != "array":
        return None
    fields = schema.fields(kind["items"])
    name = schema.present(kind["items"])["name"] if fields else ""
    is_entry = name.rpartition(".")[2] == "MapEntry" and set(fields) == {"key", "value"}
    return fields if is_entry else None


def _name_and_parameters(kind: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
    parameters = dict(kind.get("connect.parameters") or {})
    logical = kind.get("logicalType")
    if logical == "decimal":
        parameters.setdefault("scale", str(kind.get("scale", 0)))
        parameters.setdefault("connect.decimal.precision", str(kind.get("precision", 38)))
    return kind.get("connect.name") or _LOGICAL_NAMES.get(str(logical)), parameters
