"""Read rows that ``ExtractNewRecordState`` took out of their envelopes, in Avro.

The record's schema is that of the row, with the added fields in it. So the envelope's fields are
read from the record itself, and the row is the same record without them: nothing is written again,
as JSON needs it. Its ``__op`` says whether the row is one after a change or one before a delete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakeingest.decode.avro.columns import record_columns
from lakeingest.decode.avro.format import AvroFormat
from lakeingest.decode.avro.rows import AvroRows, is_read, read_avro
from lakeingest.decode.avro.schema import AvroSchema
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.envelope_fields import envelope_fields
from lakeingest.decode.flattened.added_fields import ADDED, ADDED_OP, envelopes_of, flat
from lakeingest.decode.types.logical import Form
from lakeingest.frame_schemas import SOURCE


class FlattenedAvroRows(AvroRows):
    """Reads Avro records that are rows."""

    def sides(self, value: Column, columns: Sequence[SourceColumn], names: Sequence[str]) -> Column:
        """See ``RowReader``."""
        spark_type = StructType([*self.row_type(columns), StructField(ADDED_OP, StringType())])
        read = read_avro(value, self.values, spark_type, strict=True)
        row = F.struct(*(read.getField(column.name).alias(column.name) for column in columns))
        is_delete = read.getField(ADDED_OP) == "d"
        of_side = {"after": F.when(~is_delete, row), "before": F.when(is_delete, row)}
        return F.struct(*(of_side[name].alias(name) for name in names))


class FlattenedAvroFormat(AvroFormat):
    """Reads Avro rows with the transform's added fields."""

    rows = FlattenedAvroRows

    def envelopes(
        self, records: DataFrame, *, event: bool = False, source: StructType = SOURCE
    ) -> DataFrame:
        """See ``WireFormat``."""
        fields = envelope_fields(event=event, source=source)
        flat_type = flat(fields)
        # A row's own column ``op`` may be of any type: read ``op`` only of records without a row.
        own = StructType([flat_type["op"]])
        added = StructType([item for item in flat_type if item.name != "op"])
        rows = {tag: one for tag, one in self._sorted() if ADDED_OP in one.fields(one.tree)}
        others = {tag: one for tag, one in self._sorted() if tag not in rows}
        value = F.col("value")
        read = records.withColumn("_read", read_avro(value, rows, added, strict=False)).withColumn(
            "_other", read_avro(value, others, own, strict=False)
        )
        sides = (is_read(F.col(name)) for name in ("_read", "_other"))
        readable = F.coalesce(*sides, F.lit(False))
        parsed = read.select(
            *records.columns,
            *(F.col(f"_read.{item.name}") for item in added),
            F.col("_other.op"),
            (value.isNotNull() & ~readable).alias("malformed"),
        )
        return envelopes_of(parsed, fields, value)

    def _sorted(self) -> list[tuple[bytes, AvroSchema]]:
        return sorted(self.schemas.items(), key=itemgetter(0))

    def row_columns(self, schema: AvroSchema, form: Form) -> tuple[SourceColumn, ...]:
        """See ``AvroFormat``."""
        columns = record_columns(schema, schema.tree, form)
        return tuple(column for column in columns if not column.name.startswith(ADDED))

    def sides(
        self, value: Column, schemas: Mapping[bytes, AvroSchema], row: StructType
    ) -> tuple[Column, ...]:
        """See ``AvroFormat``."""
        return (read_avro(value, schemas, row, strict=False),)
