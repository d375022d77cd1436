"""Read rows and keys of Avro records, each with its writer's schema.

A batch may hold records of several schema versions, old and new interleaved (after a restart of the
connector, or with partitions read at different speed). There is one ``from_avro`` per schema, and
the record's first five octets choose it; Spark evaluates only that branch. All branches have one
type (``avro_schema``). Rejected: a frame per schema and their union; the window would be read once
per schema.

Source: Confluent wire format (octet 0, then the schema's id as four octets, then the record).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    BooleanType,
    DataType,
    StructField,
    StructType,
)

from lakeingest.cast import cast_to
from lakeingest.decode.avro.columns import record_columns
from lakeingest.decode.avro.schema import END, END_MARK, READ, AvroSchema, as_written, reader_schema
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.row_layout import RowLayout
from lakeingest.decode.types.logical import JSON, Form
from lakeingest.decode.types.logical_type import CONVERSION_FAILED
from lakeingest.engine.known_columns import made_once

TAG_OCTETS = 5
"""Octet 0 and the schema's id."""

_ALL = 2**31 - 1
_MARKS = (StructField(READ, BooleanType()), StructField(END, BinaryType()))


@made_once
def tag_of(octets: Column) -> Column:
    """Return the octets that name a record's schema."""
    return F.substring(octets, 1, TAG_OCTETS)


def body_of(octets: Column) -> Column:
    """Return a record without the octets that name its schema."""
    return F.substring(octets, TAG_OCTETS + 1, _ALL)


def read_avro(
    octets: Column, schemas: Mapping[bytes, AvroSchema], spark_type: StructType, *, strict: bool
) -> Column:
    """Read the fields of a type from records, each by its own schema.

    Args:
        octets: Records in Confluent's wire format.
        schemas: The schemas that may have written them, by ``tag_of``.
        spark_type: Fields to read, each with its type.
        strict: Whether a record that cannot be read, or has none of the schemas, fails the job;
            else it gives NULLs.

    Returns:
        A struct of ``spark_type`` and the marks that ``is_read`` checks; NULL where there is no
        record.
    """
    body = F.concat(body_of(octets), F.lit(END_MARK))
    # The first NULL branch gives the type, and the result while no schema is known yet.
    marked_type = StructType([*spark_type, *_MARKS])
    read = F.when(octets.isNull(), F.lit(None).cast(marked_type))
    for tag, schema in schemas.items():
        own = as_written(schema, spark_type)
        options = {
            "mode": "FAILFAST" if strict else "PERMISSIVE",
            "avroSchema": reader_schema(schema, own),
        }
        of_schema = from_avro(body, schema.text, options)
        if own != spark_type:
            own_marked_type = StructType([*own, *_MARKS])
            of_schema = _as_type(of_schema, own_marked_type, marked_type)
        read = read.when(tag_of(octets) == F.lit(tag), of_schema)
    unknown = F.raise_error(F.lit(f"{CONVERSION_FAILED}: a record of a schema that is not known"))
    # Strict: a NULL would look like a deleted row.
    return read.otherwise(unknown) if strict else read


def is_read(read: Column) -> Column:
    """Return, over ``read_avro``, whether the whole record could be read, and nothing followed it.

    NULL where nothing could be read.
    """
    return read.getField(READ) & F.coalesce(read.getField(END) == F.lit(END_MARK), F.lit(True))


def _as_type(value: Column, own: DataType, spark_type: DataType) -> Column:
    """Return a value in a type that has text in place of other types: their JSON text."""
    if own == spark_type:
        return value
    if isinstance(own, StructType) and isinstance(spark_type, StructType):
        parts = (
            _as_type(value.getField(one.name), one.dataType, other.dataType).alias(one.name)
            for one, other in zip(own, spark_type, strict=True)
        )
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(own, AtomicType) and not isinstance(own, BinaryType):
        return cast_to(value, spark_type)
    return F.get_json_object(F.to_json(F.struct(value.alias("value"))), "$.value")


_KEY = "a record key has octets behind the end of its schema"


@dataclass(frozen=True)
class AvroRows(RowLayout):
    """Reads Avro records of one table.

    Attributes:
        values: Schemas of the batch's values, by ``tag_of``.
        keys: Schemas of the batch's keys, by ``tag_of``.
        header: The form of keys in headers.
    """

    values: Mapping[bytes, AvroSchema]
    keys: Mapping[bytes, AvroSchema]
    header: Form = JSON

    @property
    def bare_keys(self) -> bool:
        """Return whether keys have one schema: then they are equal exactly if their octets are."""
        return len(self.keys) <= 1

    def sides(self, value: Column, columns: Sequence[SourceColumn], names: Sequence[str]) -> Column:
        """See ``RowReader``."""
        row = self.row_type(columns)
        spark_type = StructType([StructField(name, row) for name in names])
        return read_avro(value, self.values, spark_type, strict=True)

    def lacks(self, value: Column, _: str, tags: Collection[bytes], /) -> Column:
        """See ``RowReader``; a record has exactly the fields of its schema."""
        return tag_of(value).isin(*tags) if tags else F.lit(False)

    def schema_of(self, value: Column, /) -> Column:
        """See ``RowReader``."""
        return tag_of(value)

    def key_schema(self, key: Column, _: Column, /) -> Column:
        """See ``RowReader``."""
        return tag_of(key)

    def key(self, key: Column, columns: Sequence[SourceColumn]) -> Column:
        """See ``RowReader``."""
        read = read_avro(key, self.keys, self.row_type(columns), strict=True)
        refused = F.raise_error(F.lit(f"{CONVERSION_FAILED}: column '{columns[0].name}': {_KEY}"))

        def whole(one: Column) -> Column:
            return F.when(one.isNull() | is_read(one), one).otherwise(refused)

        # A lambda's argument is computed once, so the key is read once.
        return F.transform(F.array(read), whole)[0]

    def header_columns(self, columns: Sequence[SourceColumn]) -> tuple[SourceColumn, ...]:
        """Return the key columns in JSON's form."""
        columns_by_name = {
            column.name: column
            for schema in self.keys.values()
            for column in record_columns(schema, schema.tree, self.header)
        }
        return tuple(columns_by_name.get(column.name, column) for column in columns)
