"""Records of Confluent's Avro converter: envelopes, transaction metadata, shape of a table.

Only reading the records of a window shows which schemas they have, and only the driver asks the
registry. So the format holds the schemas known so far. Records of any other schema come out
``malformed``; the caller that meets one gets the schema and reads the window again
(``apply/table/record_schemas.py``). In the long run nothing is read twice. Rejected: to look up all
ids before each window, which reads every record once more. Also rejected: to look up schemas by
subject, which guesses the naming strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakeingest.decode.avro.columns import record_columns, side_columns, side_in_cells
from lakeingest.decode.avro.rows import AvroRows, body_of, is_read, read_avro, tag_of
from lakeingest.decode.avro.schema import AvroSchema
from lakeingest.decode.columns import SourceColumn, merge_versions
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.envelope_fields import TRANSACTION_METADATA, envelope_fields
from lakeingest.decode.foreign import has_foreign_fields
from lakeingest.decode.replaced_nulls import nullable_defaults
from lakeingest.decode.types.logical import AVRO, JSON, Form
from lakeingest.decode.wire import Samples, TableShape
from lakeingest.frame_schemas import ENVELOPE, SOURCE


@dataclass(frozen=True)
class AvroFormat:
    """Reads records by the schemas known so far.

    Attributes:
        schemas: By ``tag_of``. Whoever asks the registry adds to it; a schema never changes.
        form: The form of values on the wire, and the policy for those that are too large.
        rows: Reads the records of a table.
    """

    rows: ClassVar[type[AvroRows]] = AvroRows

    schemas: Mapping[bytes, AvroSchema]
    form: Form = AVRO

    def envelopes(
        self, records: DataFrame, *, event: bool = False, source: StructType = SOURCE
    ) -> DataFrame:
        """See ``WireFormat``."""
        fields = envelope_fields(event=event, source=source)
        read = records.withColumn("_read", self._fields(F.col("value"), fields))
        more = [name for name in fields.fieldNames() if name not in ENVELOPE.fieldNames()]
        return read.select(
            *records.columns,
            *(F.col(f"_read.{name}") for name in fields.fieldNames()),
            _malformed(),
        ).select(*ENVELOPE.fieldNames(), *more)

    def transaction_metadata(self, records: DataFrame) -> DataFrame:
        """See ``WireFormat``."""
        read = records.withColumn("_read", self._fields(F.col("value"), TRANSACTION_METADATA))
        return read.select(
            "partition",
            "offset",
            "timestamp",
            *(F.col(f"_read.{name}") for name in TRANSACTION_METADATA.fieldNames()),
            _malformed(),
        )

    def is_foreign(self, value: Column, /) -> Column:
        """See ``WireFormat``; the record's schema decides."""
        return self._has_schema(value, lambda one: has_foreign_fields(one.fields(one.tree)))

    def marks(self, encodings: Encodings) -> tuple[bytes, ...]:
        """See ``WireFormat``."""
        return encodings.avro_marks()

    def ordering(self, value: Column, names: Sequence[str]) -> Column:
        """See ``WireFormat``."""
        values = F.array(*(F.lit(None).cast("string") for _ in names))
        for tag, schema in sorted(self.schemas.items()):
            columns = {column.name: column for column in self.row_columns(schema, self.form)}
            if not columns.keys() >= set(names):
                continue
            row = StructType([StructField(name, columns[name].type.wire) for name in names])
            sides = self.sides(value, {tag: schema}, row)
            texts = [
                F.coalesce(*(side.getField(name) for side in sides)).cast("string")
                for name in names
            ]
            values = F.when(tag_of(value) == F.lit(tag), F.array(*texts)).otherwise(values)
        return values

    def may_omit(self, value: Column, /) -> Column:
        """See ``WireFormat``; a missing cell has no octet, so only the schema shows it."""
        return self._has_schema(value, side_in_cells)

    def key_body(self, key: Column) -> Column:
        """Drop the schema's id from a key: a newly filled registry has other ids."""
        return body_of(key)

    def schema_tag(self, value: Column, /) -> Column:
        """See ``WireFormat``."""
        return tag_of(value)

    def key_tag(self, key: Column, /) -> Column:
        """See ``WireFormat``."""
        return tag_of(key)

    def nullable_defaults(self, tags: Collection[bytes]) -> tuple[str, ...]:
        """See ``WireFormat``."""
        schemas = self._schemas_of(tags).values()
        return nullable_defaults(
            column for schema in schemas for column in self.row_columns(schema, self.form)
        )

    def table_shape(self, samples: Samples) -> TableShape:
        """See ``WireFormat``; schemas in the order of their ids, the order of registration."""
        form = self.form.with_policy(samples.too_large or self.form.too_large)
        values, keys = self._schemas_of(samples.value_tags), self._schemas_of(samples.key_tags)
        versions = {tag: self.row_columns(schema, form) for tag, schema in values.items()}
        key_versions = {tag: record_columns(one, one.tree, form) for tag, one in keys.items()}
        columns = merge_versions(versions, key_versions)
        names = {name: None for schema in keys.values() for name in schema.fields(schema.tree)}
        versions = {
            tag: schema_columns for tag, schema_columns in versions.items() if schema_columns
        }
        fields = tuple(column.name for column in columns)
        cells = {side_in_cells(values[tag]) for tag in versions}
        return TableShape(
            columns=columns,
            fields=fields,
            key=tuple(names),
            reader=self.rows(values, keys, JSON.with_policy(form.too_large), cells=True in cells),
            everywhere=frozenset(fields),
            rows=bool(versions),
            versions=versions,
            mixed=len(cells) > 1,
            keys=frozenset(frozenset(one.fields(one.tree)) for one in keys.values()),
        )

    def row_columns(self, schema: AvroSchema, form: Form) -> tuple[SourceColumn, ...]:
        """Return the columns of the rows that a schema describes."""
        return side_columns(schema, form)

    def sides(
        self, value: Column, schemas: Mapping[bytes, AvroSchema], row: StructType
    ) -> tuple[Column, ...]:
        """Read the rows that records have: the one after a change, the one before it."""
        spark_type = StructType([StructField("after", row), StructField("before", row)])
        read = read_avro(value, schemas, spark_type, strict=False)
        return tuple(read.getField(side) for side in spark_type.names)

    def _has_schema(self, value: Column, condition: Callable[[AvroSchema], bool]) -> Column:
        tags = [tag for tag, schema in sorted(self.schemas.items()) if condition(schema)]
        return tag_of(value).isin(*tags) if tags else F.lit(False)

    def _schemas_of(self, tags: Collection[bytes]) -> dict[bytes, AvroSchema]:
        return {tag: self.schemas[tag] for tag in sorted(tags)}

    def _fields(self, value: Column, spark_type: StructType) -> Column:
        return read_avro(value, dict(sorted(self.schemas.items())), spark_type, strict=False)


def _malformed() -> Column:
    is_whole = F.coalesce(is_read(F.col("_read")), F.lit(False))
    return (F.col("value").isNotNull() & ~is_whole).alias("malformed")
