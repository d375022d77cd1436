"""JsonConverter's records, with and without schemas: what they show of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.decode.columns import Encodings, SourceColumn, from_connect, merged
from lakeingest.decode.json_envelope import (
    decode_envelope,
    decode_transaction_metadata,
    named_schema,
)
from lakeingest.decode.json_rows import JsonRows
from lakeingest.decode.logical import JSON
from lakeingest.decode.wire import Samples, Shown
from lakeingest.shape import SOURCE


@dataclass(frozen=True)
class CarriedSchema:
    """What a schema that records carry says.

    Attributes:
        since: When a record with it was first written (epoch milliseconds), as far as is known.
        columns: Columns of the row.
    """

    since: int
    columns: tuple[SourceColumn, ...]


@dataclass(frozen=True)
class JsonFormat:
    """Reads JSON; each record says itself whether it carries a schema.

    Attributes:
        schemas: The schemas met so far, by ``schema_tag``. Whoever meets another one adds to it.
    """

    schemas: Mapping[bytes, CarriedSchema] = field(default_factory=dict)

    def envelopes(
        self, records: DataFrame, *, event: bool = False, source: StructType = SOURCE
    ) -> DataFrame:
        """See ``WireFormat``."""
        return decode_envelope(records, event=event, source=source)

    def transaction_metadata(self, records: DataFrame) -> DataFrame:
        """See ``WireFormat``."""
        return decode_transaction_metadata(records)

    def marks(self, encodings: Encodings) -> tuple[bytes, ...]:
        """See ``WireFormat``."""
        return tuple(mark.encode() for mark in encodings.json_marks())

    def key_body(self, key: Column) -> Column:
        """See ``WireFormat``."""
        return key

    def schema_tag(self, value: Column, /) -> Column:
        """See ``WireFormat``."""
        return named_schema(value)

    def key_tag(self, _: Column, /) -> Column:
        """Return null: the columns of a key are those of its row, and say of what type they are."""
        return F.lit(None).cast("binary")

    def shown(self, samples: Samples) -> Shown:
        """See ``WireFormat``; schemas in the order in which they were written."""
        values = [json.loads(value) for value in samples.values]
        fields = {name: None for value in values for name in _row(value)}
        known = [self.schemas[tag] for tag in samples.value_tags if tag in self.schemas]
        columns = merged(one.columns for one in sorted(known, key=lambda one: one.since))
        return Shown(columns, tuple(fields), _key_fields(samples), JsonRows())


def envelope_columns(schema_text: str) -> tuple[SourceColumn, ...]:
    """Columns of the ``after`` (or ``before``) struct in a Connect envelope schema (JSON)."""
    for part in json.loads(schema_text).get("fields") or ():
        if part.get("field") in ("after", "before"):
            return from_connect(part["fields"], JSON)
    return ()


def _row(value: Mapping[str, Any]) -> Mapping[str, Any]:
    row: Mapping[str, Any] = value.get("after") or value.get("before") or {}
    return row


def _key_fields(samples: Samples) -> tuple[str, ...]:
    """Names of the record key's fields; all keys of a table have the same."""
    for text in samples.keys:
        key = json.loads(text)
        return tuple(key) if isinstance(key, dict) else ()
    return ()
