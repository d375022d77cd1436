"""JsonConverter's records, with and without schemas: what they show of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.decode.columns import Encodings, SourceColumn, from_connect, merged
from lakeingest.decode.json_envelope import decode_envelope, decode_transaction_metadata
from lakeingest.decode.json_rows import JsonRows
from lakeingest.decode.logical import JSON
from lakeingest.decode.wire import Samples, Shown


@dataclass(frozen=True)
class JsonFormat:
    """Reads JSON; each record says itself whether it carries a schema."""

    def envelopes(self, records: DataFrame) -> DataFrame:
        """See ``WireFormat``."""
        return decode_envelope(records)

    def transaction_metadata(self, records: DataFrame) -> DataFrame:
        """See ``WireFormat``."""
        return decode_transaction_metadata(records)

    def marks(self, encodings: Encodings) -> tuple[bytes, ...]:
        """See ``WireFormat``."""
        return tuple(mark.encode() for mark in encodings.json_marks())

    def key_body(self, key: Column) -> Column:
        """See ``WireFormat``."""
        return key

    def schema_tag(self, _: Column, /) -> Column:
        """Return null: nothing names the schema of a record that brings it along or has none."""
        return F.lit(None).cast("binary")

    def shown(self, samples: Samples) -> Shown:
        """See ``WireFormat``."""
        values = [json.loads(value) for value in samples.values]
        schemas = [value["schema"] for value in values if "schema" in value and "payload" in value]
        fields = {name: None for value in values for name in _row(value)}
        wrapped = bool(schemas) or any(_is_wrapped(key) for key in samples.keys)
        return Shown(
            merged(envelope_columns(json.dumps(schema)) for schema in schemas),
            tuple(fields),
            _key_fields(samples),
            JsonRows(wrapped),
        )


@lru_cache(maxsize=1_000)
def envelope_columns(schema_text: str) -> tuple[SourceColumn, ...]:
    """Columns of the ``after`` (or ``before``) struct in a Connect envelope schema (JSON)."""
    for part in json.loads(schema_text).get("fields") or ():
        if part.get("field") in ("after", "before"):
            return from_connect(part["fields"], JSON)
    return ()


def _row(value: Mapping[str, Any]) -> Mapping[str, Any]:
    body = value.get("payload", value) if "schema" in value else value
    row: Mapping[str, Any] = body.get("after") or body.get("before") or {}
    return row


def _is_wrapped(key: bytes) -> bool:
    return key.startswith(b'{"schema":')


def _key_fields(samples: Samples) -> tuple[str, ...]:
    """Names of the record key's fields; all keys of a table have the same."""
    for text in samples.keys:
        key = json.loads(text)
        body = key.get("payload", {}) if _is_wrapped(text) else key
        return tuple(body) if isinstance(body, dict) else ()
    return ()
