"""Read rows that Debezium's ``ExtractNewRecordState`` took out of their envelopes.

The transform leaves the row and the envelope fields that its ``add.fields`` names. A position and a
transaction need ``source.*`` and ``transaction.*``; a row without them is refused, because a
pipeline that guesses an order from arrival would be right until the first restart. The format
writes an envelope around the text of the row again, so that the later stages read one form. The row
still contains the fields of the transform, under names that no column has.

A delete must be a row with ``__deleted`` (``delete.tombstone.handling.mode=rewrite``); the other
modes leave only a null record of it. Debezium has counted the delete: its transaction never becomes
complete, and the run says so. Where each event is on its own, the null record itself is refused
(``apply/window/null_records.py``); ``drop`` leaves nothing there that could be noticed.

Avro's records have the same fields and need no envelope: ``avro_format.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.decode.envelope_fields import envelope_fields
from lakeingest.decode.flattened.added_fields import ADDED, ADDED_OP, envelopes_of, flat
from lakeingest.decode.json.envelope import (
    add_tag,
    has_broken_key,
    is_no_text,
    parse_fields,
    without_schemas,
)
from lakeingest.decode.json.format import JsonFormat
from lakeingest.frame_schemas import SOURCE


class FlattenedFormat(JsonFormat):
    """Reads JSON rows with the transform's added fields."""

    def envelopes(
        self, records: DataFrame, *, event: bool = False, source: StructType = SOURCE
    ) -> DataFrame:
        """See ``WireFormat``."""
        fields = envelope_fields(event=event, source=source)
        read = parse_fields(without_schemas(records), flat(fields))
        is_broken = F.col("malformed") | is_no_text(F.col("value")) | has_broken_key(F.col("key"))
        read = read.withColumn("malformed", is_broken)
        side = F.when(F.col(ADDED_OP) == "d", "before").otherwise("after")
        row = F.concat(F.lit('{"'), side, F.lit('":'), F.col("value").cast("string"), F.lit("}"))
        return envelopes_of(read, fields, add_tag(row, F.col("_schema")).cast("binary"))

    def row_schema(self, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the row's own fields in a Connect schema."""
        fields = schema.get("fields") or ()
        return [item for item in fields if not item["field"].startswith(ADDED)]

    def row_fields(self, value: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the row's own fields."""
        row = super().row_fields(value)
        return tuple(name for name in row if not name.startswith(ADDED))
