"""Rows and keys of JSON records, typed as the table's columns.

``from_json`` runs in FAILFAST mode: a value that does not fit its declared type fails the job
instead of becoming NULL. Its message holds the record, so the caller must replace it.
An absent field is NULL: a schemaless JSON row before an ``ADD COLUMN`` says no more.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakeingest.decode.columns import SourceColumn

_FAILFAST = {"mode": "FAILFAST"}


def wire(columns: Sequence[SourceColumn]) -> StructType:
    """Return the struct that a row or key of these columns is on the wire."""
    return StructType([StructField(column.name, column.type.wire) for column in columns])


class JsonRows:
    """Reads JsonConverter's records, once their schemas are taken off (``json_envelope.py``)."""

    bare_keys = True

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
        return F.from_json(octets.cast("string"), schema, _FAILFAST)
