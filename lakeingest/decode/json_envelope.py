"""JSON bytes to the envelope's own fields, for JsonConverter with and without schemas.

One ``from_json`` reads only what routing, ordering and transactions need; ``before`` and ``after``
are skipped by the parser and their text is carried on, so that the row decoder meets the original
digits (a ``from_json`` field of type string re-prints numbers through a double and would round a
``decimal.format=NUMERIC`` value). The rejected ways are ``get_json_object`` per field (each call
parses the whole text again: 2.2 times slower, measured) and decoding the whole row of every event
here (most events of a hot key never reach the lake).

A schema that a record carries is taken off first and told by its hash from then on (``unwrapped``);
what it says is read once per schema, on the driver (``json_format.py``).

Sources: Kafka's ``JsonConverter`` (``{"schema":…,"payload":…}`` with ``schemas.enable=true``),
Debezium's ``Envelope`` and ``SourceInfo``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakeingest.decode.envelope_fields import TRANSACTION_METADATA, envelope_fields
from lakeingest.shape import SOURCE

_CORRUPT = "_malformed"
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
_DESCRIBED_START = '{"schema":{'
_NULL_START = '{"schema":null,"payload":'
"""A key column may be named ``schema``, but then its value is neither."""

_SCHEMA = '{"schema":'
_PAYLOAD = ',"payload":'
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
    payload = F.substr(octets, taken + 1, F.octet_length(octets) - taken - 1)
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


def parsed(records: DataFrame, schema: StructType) -> DataFrame:
    """Add the fields of ``schema``, read from ``value``, and ``malformed``: it is no JSON."""
    whole = StructType([*schema, StructField(_CORRUPT, StringType())])
    text = F.col("value").cast("string")
    read = records.withColumn("_read", F.from_json(text, whole, _OPTIONS))
    return read.select(
        *records.columns,
        *(F.col(f"_read.{name}") for name in schema.fieldNames()),
        F.col(f"_read.{_CORRUPT}").isNotNull().alias("malformed"),
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
    """Return what names the schema of a value of ``shape.ENVELOPE``; null where nothing does."""
    start = f'{_SCHEMA}"'
    named = F.startswith(value.cast("string"), F.lit(start))
    return F.when(named, F.substring(value, len(start) + 1, TAG_OCTETS))


def decode_envelope(
    records: DataFrame, *, event: bool = False, source: StructType = SOURCE
) -> DataFrame:
    """Decode data records (``shape.RECORD``) to ``shape.ENVELOPE``.

    Args:
        records: As they lie in the log.
        event: Whether RFC-39's columns are wanted.
        source: What is read of the source block.
    """
    text = _rows(F.col("value").cast("string"))
    whole = tagged(text, F.col("_schema")).cast("binary")
    read = parsed(undescribed(records), envelope_fields(event=event, source=source))
    return read.withColumn("value", whole).drop("_schema")


def decode_transaction_metadata(records: DataFrame) -> DataFrame:
    """Decode records of the transaction topic; columns as ``WireFormat.transaction_metadata``."""
    payload, _ = unwrapped(F.col("value"))
    bare = records.select("partition", "offset", "timestamp", payload.alias("value"))
    return parsed(bare, TRANSACTION_METADATA).drop("value")


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
