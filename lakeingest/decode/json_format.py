"""JsonConverter's records, with and without schemas: what they show of a table."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.decode.added_fields import ADDED
from lakeingest.decode.cell import are_cells, may_leave_out, opened
from lakeingest.decode.columns import Encodings, SourceColumn, from_connect, merged
from lakeingest.decode.foreign import has_foreign_names
from lakeingest.decode.json_envelope import (
    TAGGED,
    decode_envelope,
    decode_transaction_metadata,
    named_schema,
)
from lakeingest.decode.json_rows import JsonRows
from lakeingest.decode.logical import JSON, Form
from lakeingest.decode.wire import Samples, Shown
from lakeingest.frame_schemas import SOURCE

_SIDES = ("after", "before")


@dataclass(frozen=True)
class CarriedSchema:
    """What a schema that records carry says.

    Attributes:
        since: When a record with it was first written (epoch milliseconds), as far as is known.
        columns: Columns of the row.
        defaulted: Those whose NULLs may have been replaced (``replaced_nulls.py``).
        cells: Whether they come in cells (``cell.py``).
        by_policy: The columns under each policy for decimals that are too large
            (``logical.Form``); ``columns`` are those under the pipeline's.
    """

    since: int
    columns: tuple[SourceColumn, ...]
    defaulted: tuple[str, ...] = ()
    cells: bool = False
    by_policy: Mapping[str, tuple[SourceColumn, ...]] = field(default_factory=dict)

    def under(self, too_large: str | None) -> tuple[SourceColumn, ...]:
        """Return the columns under a policy of a table's own, or under the pipeline's."""
        return self.by_policy.get(too_large or "", self.columns)


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

    def foreign(self, value: Column, /) -> Column:
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

    def may_leave_out(self, value: Column, /) -> Column:
        """See ``WireFormat``."""
        return may_leave_out(value.cast("string"))

    def key_body(self, key: Column) -> Column:
        """See ``WireFormat``."""
        return key

    def schema_tag(self, value: Column, /) -> Column:
        """See ``WireFormat``."""
        return named_schema(value)

    def key_tag(self, _: Column, /) -> Column:
        """Return null: the columns of a key are those of its row, and say of what type they are."""
        return F.lit(None).cast("binary")

    def defaulted(self, tags: Collection[bytes]) -> tuple[str, ...]:
        """See ``WireFormat``."""
        known = (self.schemas[tag] for tag in sorted(tags) if tag in self.schemas)
        return tuple({name: None for schema in known for name in schema.defaulted})

    def shown(self, samples: Samples) -> Shown:
        """See ``WireFormat``; schemas in the order in which they were written."""
        values = [json.loads(value) for value in samples.values]
        fields = {name: None for value in values for name in self.row_fields(value)}
        rows = [frozenset(value["after"]) for value in values if value.get("after")]
        known = [(tag, self.schemas[tag]) for tag in samples.value_tags if tag in self.schemas]
        # Of two that began in one millisecond, the one with a column more is most likely the later.
        in_order = sorted(known, key=lambda one: (one[1].since, len(one[1].columns), one[0]))
        versions = {
            tag: schema.under(samples.too_large) for tag, schema in in_order if schema.columns
        }
        columns = merged(versions)
        cells = {schema.cells for _, schema in known if schema.columns}
        cells |= {told for value in values if (told := self._in_cells(value)) is not None}
        keys = [_key_fields(text) for text in samples.keys]
        key = next(filter(None, keys), ())
        # Octets that mean different keys in different versions do not tell keys apart.
        bare = not any(column.type.versions for column in columns if column.name in key)
        return Shown(
            columns,
            tuple(fields),
            key,
            JsonRows(cells=True in cells, bare_keys=bare),
            everywhere=frozenset.intersection(*rows) if rows else frozenset(),
            rows=bool(rows or versions),
            versions=versions,
            mixed=len(cells) > 1,
            keys=frozenset(map(frozenset, keys)),
        )

    def row_fields(self, value: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of a row's fields, of a value as ``envelopes`` gives it."""
        return tuple(value.get("after") or value.get("before") or ())

    def _in_cells(self, value: Mapping[str, Any]) -> bool | None:
        row = value.get("after") or value.get("before") or {}
        return are_cells(row, self.row_fields(value))


def envelope_columns(schema_text: str, form: Form = JSON) -> tuple[SourceColumn, ...]:
    """Columns of the ``after`` (or ``before``) struct in a Connect envelope schema (JSON)."""
    return from_connect(_envelope_fields(schema_text), form)


def flattened_columns(schema_text: str, form: Form = JSON) -> tuple[SourceColumn, ...]:
    """Columns in the Connect schema (JSON) of a row without its envelope, added fields left out."""
    return from_connect(_flattened_fields(schema_text), form)


def come_in_cells(schema_text: str) -> bool:
    """Tell whether the columns of a Connect schema (JSON), of either kind, are cells."""
    fields = _envelope_fields(schema_text) or _flattened_fields(schema_text)
    return opened(fields) is not None


def _envelope_fields(schema_text: str) -> list[Mapping[str, Any]]:
    for part in json.loads(schema_text).get("fields") or ():
        if part.get("field") in ("after", "before"):
            return list(part.get("fields") or ())
    return []


def _flattened_fields(schema_text: str) -> list[Mapping[str, Any]]:
    fields = json.loads(schema_text).get("fields") or ()
    return [item for item in fields if not item["field"].startswith(ADDED)]


def _key_fields(text: bytes) -> tuple[str, ...]:
    """Names of a record key's fields; none where it is no JSON, which reading it tells better."""
    try:
        key = json.loads(text)
    except ValueError:
        return ()
    return tuple(key) if isinstance(key, dict) else ()
