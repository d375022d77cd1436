"""Avro records for tests, written by fastavro: another implementation than the one that reads."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import fastavro
from pyspark.sql import Row, SparkSession

from lakeingest.decode.avro.format import AvroFormat
from lakeingest.decode.avro.schema import AvroSchema
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.row import RowSpec, with_row
from lakeingest.decode.wire import Samples


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    """Return a field of a record."""
    return {"name": name, "type": kind, **more}


def optional(name: str, kind: Any) -> dict[str, Any]:
    return field(name, ["null", kind], default=None)


def record_schema(name: str, *fields: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, **more, "fields": list(fields)}


SOURCE = record_schema(
    "Source",
    field("ts_ms", "long", default=0),
    optional("snapshot", "string"),
    field("schema", "string"),
    field("table", "string"),
    optional("sequence", "string"),
    optional("lsn", "long"),
    namespace="io.debezium.connector.postgresql",
)
BLOCK = record_schema(
    "block", field("id", "string"), field("total_order", "long"), namespace="event"
)

_COUNT = record_schema(
    "collection",
    field("data_collection", "string"),
    field("event_count", "long"),
    namespace="event",
)
METADATA = record_schema(
    "TransactionMetadataValue",
    field("status", "string"),
    field("id", "string"),
    optional("event_count", "long"),
    optional("data_collections", {"type": "array", "items": _COUNT}),
    field("ts_ms", "long"),
)
"""What is written to the transaction topic."""


def tag(schema_id: int) -> bytes:
    """Return what a record of this schema begins with (Confluent wire format)."""
    return b"\0" + schema_id.to_bytes(4, "big")


def record(schema_id: int, schema: Any, value: Any) -> bytes:
    """Return a value in Confluent's wire format."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return tag(schema_id) + out.getvalue()


def envelope_schema(*fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an envelope as Debezium's: ``after`` refers to what ``before`` defines.

    Args:
        *fields: The fields of a row.
    """
    return record_schema(
        "Envelope",
        optional("before", record_schema("Value", *fields, **{"connect.name": "t.Value"})),
        optional("after", "Value"),
        field("source", SOURCE),
        optional("transaction", BLOCK),
        field("op", "string"),
        namespace="shop.public.orders",
    )


_AVRO_TYPES = {"int8": "int", "int32": "int", "int64": "long"}


def in_avro(spec: Mapping[str, Any]) -> Any:
    """Return the type that stands for one of Connect's."""
    kind, name = spec["type"], spec.get("name")
    more = {"connect.name": name, "connect.version": 1} if name else {}
    if kind == "array":
        return {"type": "array", "items": in_avro(spec["items"])}
    if kind == "struct":
        fields = (field(part["field"], in_avro(part)) for part in spec["fields"])
        return record_schema(spec["name"], *fields, **more)
    if "parameters" in spec:
        more["connect.parameters"] = spec["parameters"]
    return {"type": _AVRO_TYPES.get(kind, kind), **more}


def parsed(schemas: Mapping[int, Any]) -> dict[bytes, AvroSchema]:
    """Return schemas by what their records begin with."""
    return {tag(number): AvroSchema.parse(json.dumps(one)) for number, one in schemas.items()}


def event(after: Any, *, op: str = "c", before: Any = None, lsn: int = 7) -> dict[str, Any]:
    """Return a change event for ``envelope_schema``."""
    source = {
        "ts_ms": 1,
        "snapshot": "false",
        "schema": "public",
        "table": "orders",
        "sequence": json.dumps(["5", str(lsn)], separators=(",", ":")),
        "lsn": lsn,
    }
    block = {"id": f"3:{lsn}", "total_order": 1}
    return {"before": before, "after": after, "source": source, "transaction": block, "op": op}


def rows_of(
    spark: SparkSession, schemas: Mapping[int, Any], records: Sequence[bytes]
) -> list[Row | None]:
    """Decode records of one table to their rows, in their order."""
    tags = frozenset(octets[:5] for octets in records)
    shown = AvroFormat(parsed(schemas)).table_shape(Samples(value_tags=tags))
    frame = spark.createDataFrame(list(enumerate(records)), "at int, value binary").coalesce(1)
    decoded = with_row(frame, RowSpec(shown.columns, Encodings(), shown.reader), masked=True)
    return [row["row"] for row in decoded.orderBy("at").collect()]
