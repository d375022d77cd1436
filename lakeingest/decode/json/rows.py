"""Rows and keys of JSON records, typed as the table's columns.

``from_json`` runs in FAILFAST mode: a value that does not fit its declared type fails the job
instead of becoming NULL. Its message contains the record, so the caller must replace it. A field
that a record lacks is NULL, too; ``lacks`` separates the two.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import MapType, StringType, StructField, StructType

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.json.envelope import schema_tag
from lakeingest.decode.json.limits import ANY_LENGTH
from lakeingest.decode.row_layout import RowLayout

_ANY_ROW = StructType([StructField("after", MapType(StringType(), StringType()))])
_FAILFAST = {"mode": "FAILFAST", **ANY_LENGTH}


@dataclass(frozen=True)
class JsonRows(RowLayout):
    """Reads JsonConverter's records, after ``envelope.py`` removed their schemas.

    Attributes:
        bare_keys: See ``RowReader``.
    """

    bare_keys: bool = True

    def sides(self, value: Column, columns: Sequence[SourceColumn], names: Sequence[str]) -> Column:
        """See ``RowReader``."""
        row = self.row_type(columns)
        return self._read(value, StructType([StructField(name, row) for name in names]))

    def lacks(self, value: Column, name: str, tags: Collection[bytes], /) -> Column:
        """See ``RowReader``; without schemas it costs another parse of the row."""
        if tags:
            return schema_tag(value).isin(*tags)
        row = F.map_keys(F.from_json(value.cast("string"), _ANY_ROW, ANY_LENGTH)["after"])
        return ~F.array_contains(row, F.lit(name))

    def schema_of(self, value: Column, /) -> Column:
        """See ``RowReader``."""
        return schema_tag(value)

    def key_schema(self, _: Column, value: Column, /) -> Column:
        """See ``RowReader``; one version of the table wrote a key and its row."""
        return schema_tag(value)

    def key(self, key: Column, columns: Sequence[SourceColumn]) -> Column:
        """See ``RowReader``."""
        return self._read(key, self.row_type(columns))

    def header_columns(self, columns: Sequence[SourceColumn]) -> tuple[SourceColumn, ...]:
        """Return the same columns: a header shows them as a record does."""
        return tuple(columns)

    def _read(self, octets: Column, schema: StructType) -> Column:
        return F.from_json(octets.cast("string"), schema, _FAILFAST)
