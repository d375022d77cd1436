"""JsonConverter's records, with and without schemas: the shape of a table that they show."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.decode.cells import are_cells, may_omit, without_cells
from lakeingest.decode.columns import SourceColumn, from_connect, merge_versions
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.foreign import has_foreign_names
from lakeingest.decode.json.envelope import (
    TAGGED,
    decode_envelope,
    decode_transaction_metadata,
    schema_tag,
)
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.replaced_nulls import nullable_defaults
from lakeingest.decode.types.logical import Form
from lakeingest.decode.wire import Samples, TableShape
from lakeingest.engine.known_columns import made_once
from lakeingest.frame_schemas import SOURCE

_SIDES = ("after", "before")


@dataclass(frozen=True)
class CarriedSchema:
    """The content of a schema that records carry.

    Attributes:
        since: When the first known record with it was written (epoch milliseconds).
        columns: Columns of the row.
        cells: Whether the columns come in cells (``cells.py``).
        by_policy: The columns under each policy for decimals that are too large (``logical.Form``);
            ``columns`` are those under the pipeline's policy.
    """

    since: int
    columns: tuple[SourceColumn, ...]
    cells: bool = False
    by_policy: Mapping[str, tuple[SourceColumn, ...]] = field(default_factory=dict)

    def under(self, too_large: str | None) -> tuple[SourceColumn, ...]:
        """Return the columns under a table's own policy, or under the pipeline's (None)."""
        return self.by_policy.get(too_large or "", self.columns)


@dataclass(frozen=True)
class JsonFormat:
    """Reads JSON; each record shows itself whether it carries a schema.

    Attributes:
        schemas: The schemas met so far, by ``schema_tag``. Whoever meets another one adds it. They
            do not change how envelopes are read, so they do not make another format.
    """

    schemas: Mapping[bytes, CarriedSchema] = field(default_factory=dict, compare=False)

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
        return schema_tag(value)

    def key_tag(self, _: Column, /) -> Column:
        """Return NULL: the columns of a key are those of its row, with the row's types."""
        return _no_tag()

    def nullable_defaults(self, tags: Collection[bytes]) -> tuple[str, ...]:
        """See ``WireFormat``."""
        schemas = (self.schemas[tag] for tag in sorted(tags) if tag in self.schemas)
        return nullable_defaults(column for schema in schemas for column in schema.columns)

    def table_shape(self, samples: Samples) -> TableShape:
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
        columns = merge_versions(versions)
        cells = {schema.cells for _, schema in batch_schemas if schema.columns}
        cells |= {in_cells for value in values if (in_cells := self._in_cells(value)) is not None}
        keys = [_key_fields(text) for text in samples.keys]
        key = next(filter(None, keys), ())
        # Octets do not identify a key if they mean different keys in different versions.
        one_type = not any(column.type.versions for column in columns if column.name in key)
        # Nor if a key's columns come in several orders (the source changed its primary key).
        has_bare_keys = one_type and len({*filter(None, keys)}) < 2
        return TableShape(
            columns=columns,
            fields=tuple(fields),
            key=key,
            reader=JsonRows(cells=True in cells, bare_keys=has_bare_keys),
            everywhere=frozenset.intersection(*rows) if rows else frozenset(),
            rows=bool(rows or versions),
            versions=versions,
            mixed=len(cells) > 1,
            keys=frozenset(map(frozenset, keys)),
        )

    def carried_schema(
        self, since: int, text: str, form: Form, policies: Iterable[str] = ()
    ) -> CarriedSchema:
        """Parse a schema that records carry.

        Args:
            since: See ``CarriedSchema``.
            text: The schema: Connect's, as JSON.
            form: The form of values on the wire, with the pipeline's policy for decimals that are
                too large.
            policies: The policies that a table may have instead.
        """
        fields = self.row_schema(json.loads(text))
        by_policy = {
            policy: from_connect(fields, form.with_policy(policy))
            for policy in {form.too_large, *policies}
        }
        columns = by_policy[form.too_large]
        return CarriedSchema(since, columns, without_cells(fields) is not None, by_policy)

    def row_schema(self, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the fields of a row in a Connect schema: those of ``after`` or ``before``."""
        for part in schema.get("fields") or ():
            if part.get("field") in _SIDES:
                return list(part.get("fields") or ())
        return []

    def row_fields(self, value: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of a row's fields, from a value as ``envelopes`` gives it."""
        return tuple(value.get("after") or value.get("before") or ())

    def _in_cells(self, value: Mapping[str, Any]) -> bool | None:
        row = value.get("after") or value.get("before") or {}
        return are_cells(row, self.row_fields(value))


@made_once
def _no_tag() -> Column:
    return F.lit(None).cast("binary")


def _key_fields(text: bytes) -> tuple[str, ...]:
    """Return the names of a record key's fields; none if it is not JSON: the read reports that."""
    try:
        key = json.loads(text)
    except ValueError:
        return ()
    return tuple(key) if isinstance(key, dict) else ()
