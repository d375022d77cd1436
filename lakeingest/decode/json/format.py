"""JsonConverter's records, with and without schemas: the shape of a table that they show."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.decode.cells import are_cells, may_omit, without_cells
from lakeingest.decode.columns import Encodings, SourceColumn, from_connect, merged
from lakeingest.decode.flattened.added_fields import ADDED
from lakeingest.decode.foreign import has_foreign_names
from lakeingest.decode.json.envelope import (
    TAGGED,
    decode_envelope,
    decode_transaction_metadata,
    named_schema,
)
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.types.logical import JSON, Form
from lakeingest.decode.wire import Samples, Shown
from lakeingest.frame_schemas import SOURCE

_SIDES = ("after", "before")


@dataclass(frozen=True)
class CarriedSchema:
    """The content of a schema that records carry.

    Attributes:
        since: When the first known record with it was written (epoch milliseconds).
        columns: Columns of the row.
        defaulted: Columns whose NULLs a converter may have replaced (``replaced_nulls.py``).
        cells: Whether the columns come in cells (``cells.py``).
        by_policy: The columns under each policy for decimals that are too large (``logical.Form``);
            ``columns`` are those under the pipeline's policy.
    """

    since: int
    columns: tuple[SourceColumn, ...]
    defaulted: tuple[str, ...] = ()
    cells: bool = False
    by_policy: Mapping[str, tuple[SourceColumn, ...]] = field(default_factory=dict)

    def under(self, too_large: str | None) -> tuple[SourceColumn, ...]:
        """Return the columns under a table's own policy, or under the pipeline's (None)."""
        return self.by_policy.get(too_large or "", self.columns)


@dataclass(frozen=True)
class JsonFormat:
    """Reads JSON; each record shows itself whether it carries a schema.

    Attributes:
        schemas: The schemas met so far, by ``schema_tag``. Whoever meets another one adds it.
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

    def is_foreign(self, value: Column, /) -> Column:
        """See ``WireFormat``."""
        names = F.json_object_keys(value.cast("string"))
        return has_foreign_names(F.array_remove(names, TAGGED))

    def marks(self, encodings: Encodings) -> tuple[bytes, ...]:
        """See ``WireFormat``."""
        return tuple(mark.encode() for mark in encodings.json_marks())

    def ordering(self, value: Column, names: Sequence[str]) -> Column:
        """See ``WireFormat``."""
        text = value.cast("string")

        def of(name: str) -> Column:
            quoted = name.replace("'", "\\'")
            sides = (F.get_json_object(text, f"$.{side}['{quoted}']") for side in _SIDES)
            return F.coalesce(*sides)

        return F.array(*map(of, names))

    def may_omit(self, value: Column, /) -> Column:
        """See ``WireFormat``."""
        return may_omit(value.cast("string"))

    def key_body(self, key: Column) -> Column:
        """See ``WireFormat``."""
        return key

    def schema_tag(self, value: Column, /) -> Column:
        """See ``WireFormat``."""
        return named_schema(value)

    def key_tag(self, _: Column, /) -> Column:
        """Return NULL: the columns of a key are those of its row, with the row's types."""
        return F.lit(None).cast("binary")

    def defaulted(self, tags: Collection[bytes]) -> tuple[str, ...]:
        """See ``WireFormat``."""
        schemas = (self.schemas[tag] for tag in sorted(tags) if tag in self.schemas)
        return tuple({name: None for schema in schemas for name in schema.defaulted})

    def shown(self, samples: Samples) -> Shown:
        """See ``WireFormat``; schemas in the order of their first records."""
        values = [json.loads(value) for value in samples.values]
        fields = {name: None for value in values for name in self.row_fields(value)}
        rows = [frozenset(value["after"]) for value in values if value.get("after")]
        batch_schemas = [
            (tag, self.schemas[tag]) for tag in samples.value_tags if tag in self.schemas
        ]
        # Of two schemas that begin in one millisecond, the one with more columns is probably later.
        by_age = sorted(batch_schemas, key=lambda one: (one[1].since, len(one[1].columns), one[0]))
        versions = {
            tag: schema.under(samples.too_large) for tag, schema in by_age if schema.columns
        }
        columns = merged(versions)
        cells = {schema.cells for _, schema in batch_schemas if schema.columns}
        cells |= {in_cells for value in values if (in_cells := self._in_cells(value)) is not None}
        keys = [_key_fields(text) for text in samples.keys]
        key = next(filter(None, keys), ())
        # Octets do not identify a key if they mean different keys in different versions.
        has_bare_keys = not any(column.type.versions for column in columns if column.name in key)
        return Shown(
            columns,
            tuple(fields),
            key,
            JsonRows(cells=True in cells, bare_keys=has_bare_keys),
            everywhere=frozenset.intersection(*rows) if rows else frozenset(),
            rows=bool(rows or versions),
            versions=versions,
            mixed=len(cells) > 1,
            keys=frozenset(map(frozenset, keys)),
        )

    def row_fields(self, value: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of a row's fields, from a value as ``envelopes`` gives it."""
        return tuple(value.get("after") or value.get("before") or ())

    def _in_cells(self, value: Mapping[str, Any]) -> bool | None:
        row = value.get("after") or value.get("before") or {}
        return are_cells(row, self.row_fields(value))


def envelope_columns(schema_text: str, form: Form = JSON) -> tuple[SourceColumn, ...]:
    """Return the columns of ``after`` (or ``before``) in a Connect envelope schema (JSON)."""
    return from_connect(_envelope_fields(schema_text), form)


def flattened_columns(schema_text: str, form: Form = JSON) -> tuple[SourceColumn, ...]:
    """Return the columns, without added fields, in the Connect schema (JSON) of a bare row."""
    return from_connect(_flattened_fields(schema_text), form)


def come_in_cells(schema_text: str) -> bool:
    """Return whether the columns of a Connect schema (JSON), of either kind, are cells."""
    fields = _envelope_fields(schema_text) or _flattened_fields(schema_text)
    return without_cells(fields) is not None


def _envelope_fields(schema_text: str) -> list[Mapping[str, Any]]:
    for part in json.loads(schema_text).get("fields") or ():
        if part.get("field") in ("after", "before"):
            return list(part.get("fields") or ())
    return []


def _flattened_fields(schema_text: str) -> list[Mapping[str, Any]]:
    fields = json.loads(schema_text).get("fields") or ()
    return [item for item in fields if not item["field"].startswith(ADDED)]


def _key_fields(text: bytes) -> tuple[str, ...]:
    """Return the names of a record key's fields; none if it is not JSON: the read reports that."""
    try:
        key = json.loads(text)
    except ValueError:
        return ()
    return tuple(key) if isinstance(key, dict) else ()
