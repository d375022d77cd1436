"""JSON bytes to the envelope's own fields, for JsonConverter with and without schemas.

One ``from_json`` reads only what routing, ordering and transactions need; ``before`` and ``after``
are skipped by the parser and their text is carried on, so that the row decoder meets the original
digits (a ``from_json`` field of type string re-prints numbers through a double and would round a
``decimal.format=NUMERIC`` value). The rejected ways are ``get_json_object`` per field (each call
parses the whole text again: 2.2 times slower, measured) and decoding the whole row of every event
here (most events of a hot key never reach the lake).

A schema that a record carries is taken off first and told by its hash from then on (``unwrapped``);
what it says is read once per schema, on the driver (``json_format.py``).

Spark's parser stops where a value ends and takes octets that are no UTF-8 for U+FFFD. So a value is
read as the one element of a list with a mark behind it, which whatever follows the value destroys,
and the octets of rows are compared with what they mean as text. Of the processor time of decoding
100,000 records (750 octets each, measured) the mark takes a tenth, the comparison another; the
rejected ways are a second parse of the whole text and a comparison of all of it.

Sources: Kafka's ``JsonConverter`` (``{"schema":…,"payload":…}`` with ``schemas.enable=true``),
Debezium's ``Envelope`` and ``SourceInfo``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    StringType,
    StructField,
    StructType,
)

from lakeingest.decode.envelope_fields import TRANSACTION_METADATA, envelope_fields
from lakeingest.decode.json_limits import ANY_LENGTH
from lakeingest.frame_schemas import SOURCE

_CORRUPT = "_malformed"
_VALUE, _END = "value", "end"
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, **ANY_LENGTH}
_DESCRIBED_START = '{"schema":{'
_NULL_START = '{"schema":null,"payload":'
"""A key column may be named ``schema``, but then its value is neither."""

_SCHEMA = '{"schema":'
_PAYLOAD = ',"payload":'
TAGGED = "schema"
"""Field in which a value of ``ENVELOPE`` names its schema."""

TAG_OCTETS = 16
"""Length of what names a schema: hexadecimal digits of its hash."""

_ROWS_START = '{"before":'
_ROWS_END = ',"source":{"version":'
"""What Debezium writes after both rows; no text in a row can hold it, quotes are escaped there."""


def unwrapped(octets: Column) -> tuple[Column, Column]:
    """Take JsonConverter's schema off a text, without parsing it.

    The schema stands first, and no text in it can hold the bare ``,"payload":`` behind it, because
    quotes are escaped there. It is told by its hash from then on: a schema of some kilobytes, the
    same in every record, is neither parsed again nor carried along.

    Returns:
        The payload (binary; all of it where there is no schema) and the schema's text (null where
        there is none, or it is JSON's null).
    """
    text = octets.cast("string")
    described = F.startswith(text, F.lit(_DESCRIBED_START))
    front = F.substring_index(text, _PAYLOAD, 1)
    # A text that breaks off before its payload is left whole, to be found broken.
    reached = F.octet_length(front) < F.octet_length(text)
    off = F.when((described | F.startswith(text, F.lit(_NULL_START))) & reached, front)
    taken = F.octet_length(off) + len(_PAYLOAD)
    # What closes the text; anything else is left, to be found broken.
    closing = F.when(F.endswith(text, F.lit("}")), 1).otherwise(0)
    payload = F.substr(octets, taken + 1, F.octet_length(octets) - taken - closing)
    # JsonConverter's word for no value at all.
    present = F.when(payload != F.lit(b"null"), payload)
    schema = F.when(described, F.substr(off, F.lit(len(_SCHEMA) + 1)))
    return F.when(off.isNotNull(), present).otherwise(octets), schema


def undescribed(records: DataFrame) -> DataFrame:
    """Take the schemas off keys and values; the text of the values' is in column ``_schema``."""
    payload, schema = unwrapped(F.col("value"))
    key, _ = unwrapped(F.col("key"))
    return records.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        "headers",
        key.alias("key"),
        payload.alias("value"),
        schema.alias("_schema"),
    )


def tag_of_schema(schema: Column) -> Column:
    """Return the name of a schema by its text: 16 hexadecimal digits, binary."""
    return F.lpad(F.hex(F.xxhash64(schema)), TAG_OCTETS, "0").cast("binary")


def enclosed(text: Column) -> Column:
    """Put a JSON text between marks that something behind it would destroy (``read_enclosed``)."""
    return F.concat(F.lit(f'{{"{_VALUE}":['), text, F.lit(f'],"{_END}":true}}'))


def enclosing(kind: DataType) -> StructType:
    """Return the type of an ``enclosed`` text of a value of this type."""
    fields = [StructField(_VALUE, ArrayType(kind)), StructField(_END, BooleanType())]
    return StructType(fields)


def is_enclosed(read: Column) -> Column:
    """Condition over an ``enclosed`` text that was read: it is one value and nothing else."""
    ended = F.coalesce(read[_END], F.lit(False))
    one = F.coalesce(F.size(read[_VALUE]) == 1, F.lit(False))
    return ended & one & read[_VALUE][0].isNotNull()


def opened_value(read: Column) -> Column:
    """Return the value of an ``enclosed`` text that was read."""
    return read[_VALUE][0]


def is_utf8(octets: Column) -> Column:
    """Condition: octets are text; Spark takes those that are none for U+FFFD."""
    return F.decode(octets, "UTF-8").cast("binary") == octets.cast("binary")


def is_no_text(value: Column) -> Column:
    """Condition: there is a value, and its octets are no UTF-8."""
    return ~F.coalesce(is_utf8(value), F.lit(True))


def is_one_text(key: Column) -> Column:
    """Condition: octets are UTF-8 and one JSON text; Spark's parser stops where a value ends.

    Nearly every key has one brace that closes it, and is not parsed for this.
    """
    text = key.cast("string")
    object_ = F.startswith(text, F.lit("{")) & (F.instr(text, "}") == F.length(text))
    alone = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    return is_utf8(key) & (object_ | F.coalesce(alone, F.lit(False)))


def has_broken_key(key: Column) -> Column:
    """Condition: there is a record key, and nobody can tell which row it means."""
    return key.isNotNull() & ~F.coalesce(is_one_text(key), F.lit(False))


def parsed(records: DataFrame, schema: StructType) -> DataFrame:
    """Add the fields of ``schema``, read from ``value``, and ``malformed``: it is no JSON."""
    whole = StructType([*enclosing(schema), StructField(_CORRUPT, StringType())])
    text = enclosed(F.col("value").cast("string"))
    read = records.withColumn("_read", F.from_json(text, whole, _OPTIONS))
    sound = F.col(f"_read.{_CORRUPT}").isNull() & is_enclosed(F.col("_read"))
    return read.select(
        *records.columns,
        *(opened_value(F.col("_read"))[name].alias(name) for name in schema.fieldNames()),
        (F.col("value").isNotNull() & ~sound).alias("malformed"),
    )


def _rows(text: Column) -> Column:
    """Keep ``before`` and ``after`` of an envelope laid out as Debezium does, else all of it.

    A third of a narrow table's record is rows; what is not carried on need not be held, copied and
    searched for placeholders. Left alone unless the end of the rows is found exactly once.
    """
    before = F.substring_index(text, _ROWS_END, 1)
    behind = F.substring_index(text, _ROWS_END, -1)
    parts = F.octet_length(before) + F.octet_length(behind) + F.lit(len(_ROWS_END))
    once = parts == F.octet_length(text)
    ours = F.startswith(text, F.lit(_ROWS_START)) & once
    return F.when(ours, F.concat(before, F.lit("}"))).otherwise(text)


def tagged(text: Column, schema: Column) -> Column:
    """Let an envelope name its schema in a field that no envelope of Debezium's has."""
    tag = tag_of_schema(schema).cast("string")
    named = F.concat(F.lit(f'{_SCHEMA}"'), tag, F.lit('",'), F.substr(text, F.lit(2)))
    return F.when(schema.isNotNull() & F.startswith(text, F.lit("{")), named).otherwise(text)


def named_schema(value: Column) -> Column:
    """Return what names the schema of a value of ``ENVELOPE``; null where nothing does."""
    start = f'{_SCHEMA}"'
    named = F.startswith(value.cast("string"), F.lit(start))
    return F.when(named, F.substring(value, len(start) + 1, TAG_OCTETS))


def decode_envelope(
    records: DataFrame, *, event: bool = False, source: StructType = SOURCE
) -> DataFrame:
    """Decode data records (``RECORD``) to ``ENVELOPE``.

    Args:
        records: As they lie in the log.
        event: Whether RFC-39's columns are wanted.
        source: What is read of the source block.
    """
    read = parsed(undescribed(records), envelope_fields(event=event, source=source))
    rows = _rows(F.col("value").cast("string"))
    whole = tagged(rows, F.col("_schema")).cast("binary")
    return (
        read.withColumn("value", whole)
        .withColumn("malformed", F.col("malformed") | is_no_text(F.col("value")))
        .withColumn("malformed", F.col("malformed") | has_broken_key(F.col("key")))
        .drop("_schema")
    )


def decode_transaction_metadata(records: DataFrame) -> DataFrame:
    """Decode records of the transaction topic; columns as ``WireFormat.transaction_metadata``."""
    payload, _ = unwrapped(F.col("value"))
    bare = records.select("partition", "offset", "timestamp", payload.alias("value"))
    read = parsed(bare, TRANSACTION_METADATA)
    broken = F.col("malformed") | is_no_text(F.col("value"))
    return read.withColumn("malformed", broken).drop("value")


def carried_schemas(records: DataFrame) -> DataFrame:
    """Find the schemas that values carry.

    Returns:
        ``tag`` (binary, as ``named_schema``), ``schema`` (Connect's, as JSON) and ``since``
        (bigint: timestamp of the first record with it, epoch milliseconds).
    """
    _, schema = unwrapped(F.col("value"))
    since = F.coalesce(F.unix_millis(F.min("timestamp")), F.lit(0))
    return (
        records.select("timestamp", schema.alias("schema"))
        .where(F.col("schema").isNotNull())
        .groupBy(tag_of_schema(F.col("schema")).alias("tag"))
        .agg(F.first("schema").alias("schema"), since.alias("since"))
    )
