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

SOURCE = {
    "type": "record",
    "name": "Source",
    "namespace": "io.debezium.connector.postgresql",
    "fields": [
        {"name": "ts_ms", "type": "long", "default": 0},
        {"name": "snapshot", "type": ["null", "string"], "default": None},
        {"name": "schema", "type": "string"},
        {"name": "table", "type": "string"},
        {"name": "sequence", "type": ["null", "string"], "default": None},
        {"name": "lsn", "type": ["null", "long"], "default": None},
    ],
}
BLOCK = {
    "type": "record",
    "name": "block",
    "namespace": "event",
    "fields": [{"name": "id", "type": "string"}, {"name": "total_order", "type": "long"}],
}

_COUNTS = {
    "type": "array",
    "items": {
        "type": "record",
        "name": "collection",
        "namespace": "event",
        "fields": [
            {"name": "data_collection", "type": "string"},
            {"name": "event_count", "type": "long"},
        ],
    },
}
METADATA = {
    "type": "record",
    "name": "TransactionMetadataValue",
    "fields": [
        {"name": "status", "type": "string"},
        {"name": "id", "type": "string"},
        {"name": "event_count", "type": ["null", "long"], "default": None},
        {"name": "data_collections", "type": ["null", _COUNTS], "default": None},
        {"name": "ts_ms", "type": "long"},
    ],
}
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
    row = {"type": "record", "name": "Value", "fields": list(fields), "connect.name": "t.Value"}
    return {
        "type": "record",
        "name": "Envelope",
        "namespace": "shop.public.orders",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": SOURCE},
            {"name": "transaction", "type": ["null", BLOCK], "default": None},
            {"name": "op", "type": "string"},
        ],
    }


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
    known = {tag(number): AvroSchema.parse(json.dumps(s)) for number, s in schemas.items()}
    tags = frozenset(octets[:5] for octets in records)
    shown = AvroFormat(known).table_shape(Samples(value_tags=tags))
    frame = spark.createDataFrame(list(enumerate(records)), "at int, value binary").coalesce(1)
    decoded = with_row(frame, RowSpec(shown.columns, Encodings(), shown.reader), masked=True)
    return [row["row"] for row in decoded.orderBy("at").collect()]
