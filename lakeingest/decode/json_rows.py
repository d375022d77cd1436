"""Rows and keys of JSON records, typed as the table's columns.

``from_json`` runs in FAILFAST mode: a value that does not fit its declared type fails the job
instead of becoming NULL. Its message holds the record, so the caller must replace it.
An absent field is NULL: a schemaless JSON row before an ``ADD COLUMN`` says no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.json_envelope import is_wrapped

_FAILFAST = {"mode": "FAILFAST"}


def wire(columns: Sequence[SourceColumn]) -> StructType:
    """Return the struct that a row or key of these columns is on the wire."""
    return StructType([StructField(column.name, column.type.wire) for column in columns])


@dataclass(frozen=True)
class JsonRows:
    """Reads JsonConverter's records.

    Attributes:
        wrapped: Whether some carry their schema (``schemas.enable=true``).
    """

    wrapped: bool = False

    @property
    def bare_keys(self) -> bool:
        """Keys that carry a schema may differ in it and be equal."""
        return not self.wrapped

    def sides(self, value: Column, columns: Sequence[SourceColumn], names: Sequence[str]) -> Column:
        """See ``RowReader``."""
        return self._read(value, StructType([StructField(name, wire(columns)) for name in names]))

    def key(self, key: Column, columns: Sequence[SourceColumn]) -> Column:
        """See ``RowReader``."""
        return self._read(key, wire(columns))

    def header_columns(self, columns: Sequence[SourceColumn]) -> tuple[SourceColumn, ...]:
        """Return the same: a header shows them as a record does."""
        return tuple(columns)

    def _read(self, octets: Column, schema: StructType) -> Column:
        text = octets.cast("string")
        bare = F.from_json(text, schema, _FAILFAST)
        if not self.wrapped:
            return bare
        inside = StructType([StructField("payload", schema)])
        unwrapped = F.from_json(text, inside, _FAILFAST)["payload"]
        return F.when(is_wrapped(text), unwrapped).otherwise(bare)
