"""Rows and keys of Avro records, each read with the schema it was written with.

A batch may hold records of several schema versions, old and new interleaved (a connector that was
restarted, partitions read at different speed). One ``from_avro`` per schema, chosen by the record's
first five octets; Spark evaluates the branch that holds. All branches have one type
(``avro_schema``). Rejected: a frame per schema and their union; the window would be read once per
schema.

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

from lakeingest.decode.avro_columns import record_columns
from lakeingest.decode.avro_schema import END, END_MARK, READ, AvroSchema, as_written, reader_schema
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.json_rows import wire
from lakeingest.decode.logical import JSON, Form
from lakeingest.decode.logical_type import CONVERSION_FAILED

TAG_OCTETS = 5
"""Octet 0 and the schema's id."""

_ALL = 2**31 - 1
_MARKS = (StructField(READ, BooleanType()), StructField(END, BinaryType()))


def tag_of(octets: Column) -> Column:
    """Return the octets that name a record's schema."""
    return F.substring(octets, 1, TAG_OCTETS)


def body_of(octets: Column) -> Column:
    """Return a record without the octets that name its schema."""
    return F.substring(octets, TAG_OCTETS + 1, _ALL)


def read_avro(
    octets: Column, schemas: Mapping[bytes, AvroSchema], wanted: StructType, *, strict: bool
) -> Column:
    """Read ``wanted`` of records, each by its own schema.

    Args:
        octets: Records in Confluent's wire format.
        schemas: What they may have been written with, by ``tag_of``.
        wanted: Fields with the type that each must be read as.
        strict: Whether a record that cannot be read, or has none of the schemas, fails the job;
            else it gives nulls.

    Returns:
        A struct of ``wanted`` and what ``is_read`` asks; null where there is no record.
    """
    body = F.concat(body_of(octets), F.lit(END_MARK))
    # The nulls to begin with give the type, and the way out when no schema is known yet.
    kind = StructType([*wanted, *_MARKS])
    read = F.when(octets.isNull(), F.lit(None).cast(kind))
    for tag, schema in schemas.items():
        own = as_written(schema, wanted)
        options = {
            "mode": "FAILFAST" if strict else "PERMISSIVE",
            "avroSchema": reader_schema(schema, own),
        }
        of_schema = from_avro(body, schema.text, options)
        if own != wanted:
            read_so = StructType([*own, *_MARKS])
            of_schema = _as_wanted(of_schema, read_so, kind)
        read = read.when(tag_of(octets) == F.lit(tag), of_schema)
    unknown = F.raise_error(F.lit(f"{CONVERSION_FAILED}: a record of a schema that is not known"))
    # Strict: a null would pass for a row that was deleted.
    return read.otherwise(unknown) if strict else read


def is_read(read: Column) -> Column:
    """Condition over what ``read_avro`` gives: all of the record could be read, and nothing more.

    Null where nothing could be read.
    """
    return read.getField(READ) & F.coalesce(read.getField(END) == F.lit(END_MARK), F.lit(True))


def _as_wanted(value: Column, own: DataType, wanted: DataType) -> Column:
    """Return a value as text where it is none: as JSON shows it."""
    if own == wanted:
        return value
    if isinstance(own, StructType) and isinstance(wanted, StructType):
        parts = (
            _as_wanted(value.getField(one.name), one.dataType, other.dataType).alias(one.name)
            for one, other in zip(own, wanted, strict=True)
        )
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(own, AtomicType) and not isinstance(own, BinaryType):
        return value.cast(wanted)
    return F.get_json_object(F.to_json(F.struct(value.alias("value"))), "$.value")


_KEY = "a record key has octets behind the end of its schema"


@dataclass(frozen=True)
class AvroRows:
    """Reads Avro records of one table.

    Attributes:
        values: What the batch's values were written with, by ``tag_of``.
        keys: The same of its keys.
        header: How a header shows a key.
        cells: See ``RowReader``.
    """

    values: Mapping[bytes, AvroSchema]
    keys: Mapping[bytes, AvroSchema]
    header: Form = JSON
    cells: bool = False

    @property
    def bare_keys(self) -> bool:
        """Keys of one schema are equal exactly when their octets are."""
        return len(self.keys) <= 1

    def sides(self, value: Column, columns: Sequence[SourceColumn], names: Sequence[str]) -> Column:
        """See ``RowReader``."""
        row = wire(columns, cells=self.cells)
        wanted = StructType([StructField(name, row) for name in names])
        return read_avro(value, self.values, wanted, strict=True)

    def lacks(self, value: Column, _: str, tags: Collection[bytes], /) -> Column:
        """See ``RowReader``; a record has the fields of its schema, no more and no less."""
        return tag_of(value).isin(*tags) if tags else F.lit(False)

    def schema_of(self, value: Column, /) -> Column:
        """See ``RowReader``."""
        return tag_of(value)

    def key_schema(self, key: Column, _: Column, /) -> Column:
        """See ``RowReader``."""
        return tag_of(key)

    def key(self, key: Column, columns: Sequence[SourceColumn]) -> Column:
        """See ``RowReader``."""
        wanted = wire(columns, cells=self.cells)
        read = read_avro(key, self.keys, wanted, strict=True)
        refused = F.raise_error(F.lit(f"{CONVERSION_FAILED}: column '{columns[0].name}': {_KEY}"))

        def whole(one: Column) -> Column:
            return F.when(one.isNull() | is_read(one), one).otherwise(refused)

        # Named by a lambda, the key is read once.
        return F.transform(F.array(read), whole)[0]

    def header_columns(self, columns: Sequence[SourceColumn]) -> tuple[SourceColumn, ...]:
        """Return the key columns in JSON's form."""
        shown = {
            column.name: column
            for schema in self.keys.values()
            for column in record_columns(schema, schema.tree, self.header)
        }
        return tuple(shown.get(column.name, column) for column in columns)
