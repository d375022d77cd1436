"""Decode JSON bytes to the envelope's own fields, for JsonConverter with and without schemas.

One ``from_json`` reads only the fields for routing, ordering and transactions. The parser skips
``before`` and ``after``, and their text stays as it is, so that the row decoder gets the original
digits. (A ``from_json`` field of type string re-prints numbers through a double, and would round a
``decimal.format=NUMERIC`` value.) Rejected: ``get_json_object`` per field; each call parses the
whole text again (2.2 times slower, measured). Also rejected: to decode the whole row of every event
here; most events of a hot key never reach the lake.

``unwrapped`` first removes a schema that a record carries; from then on the schema's hash
identifies it. The driver reads the schema itself, once (``format.py``).

Spark's parser stops where a value ends, and replaces octets that are not UTF-8 by U+FFFD. So a
value is read as the one element of a list with a mark behind it: any octets behind the value
destroy the mark. And the octets of rows are compared with their text. Of the processor time of
decoding 100,000 records (750 octets each, measured) the mark takes a tenth, the comparison another.
Rejected: a second parse of the whole text, and a comparison of all of it.

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
from lakeingest.decode.json.limits import ANY_LENGTH
from lakeingest.engine.known_columns import Addition, Selection, Steps, made_once
from lakeingest.frame_schemas import SOURCE

_CORRUPT = "_malformed"
_VALUE, _END = "value", "end"
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, **ANY_LENGTH}
_DESCRIBED_START = '{"schema":{'
_NULL_START = '{"schema":null,"payload":'
"""A key column may be named ``schema``, but then its value is neither of the two."""

_SCHEMA = '{"schema":'
_PAYLOAD = ',"payload":'
TAGGED = "schema"
"""Field in which a value of ``ENVELOPE`` names its schema."""

TAG_OCTETS = 16
"""Length of a schema's tag: the hexadecimal digits of its hash."""

_ROWS_START = '{"before":'
_ROWS_END = ',"source":{"version":'
"""Debezium writes this after both rows; no text in a row can contain it: quotes are escaped."""


def split_schema(octets: Column) -> tuple[Column, Column]:
    """Remove JsonConverter's schema from a text, without parsing it.

    The schema comes first. No text in it can contain the bare ``,"payload":`` behind it, because
    quotes are escaped there. From then on the schema's hash identifies it: a schema of some
    kilobytes, the same in every record, is neither parsed again nor carried along.

    Returns:
        The payload (binary; the whole text where there is no schema) and the schema's text (NULL
        where there is none, or it is JSON's null).
    """
    text = octets.cast("string")
    has_schema = F.startswith(text, F.lit(_DESCRIBED_START))
    front = F.substring_index(text, _PAYLOAD, 1)
    # Keep a text that breaks off before its payload whole: the parser then refuses it.
    has_payload = F.octet_length(front) < F.octet_length(text)
    prefix = F.when((has_schema | F.startswith(text, F.lit(_NULL_START))) & has_payload, front)
    prefix_octets = F.octet_length(prefix) + len(_PAYLOAD)
    # Remove the closing brace; keep anything else: the parser then refuses it.
    closing = F.when(F.endswith(text, F.lit("}")), 1).otherwise(0)
    payload = F.substr(octets, prefix_octets + 1, F.octet_length(octets) - prefix_octets - closing)
    # JsonConverter writes this for no value at all.
    present = F.when(payload != F.lit(b"null"), payload)
    schema = F.when(has_schema, F.substr(prefix, F.lit(len(_SCHEMA) + 1)))
    return F.when(prefix.isNotNull(), present).otherwise(octets), schema


_RECORD = ("topic", "partition", "offset", "timestamp", "headers")


def without_schemas(records: DataFrame) -> DataFrame:
    """Remove the schemas of keys and values; column ``_schema`` has the text of a value's."""
    return _without_schemas().of(records)


@made_once
def _without_schemas() -> Selection:
    payload, schema = split_schema(F.col("value"))
    key, _ = split_schema(F.col("key"))
    split = key.alias("key"), payload.alias("value"), schema.alias("_schema")
    return Selection(*_RECORD, *split)


def tag_of_schema(schema: Column) -> Column:
    """Return a schema's tag from its text: 16 hexadecimal digits, binary."""
    return F.lpad(F.hex(F.xxhash64(schema)), TAG_OCTETS, "0").cast("binary")


def enclose(text: Column) -> Column:
    """Put a JSON text between marks that octets behind it would destroy (``is_enclosed``)."""
    return F.concat(F.lit(f'{{"{_VALUE}":['), text, F.lit(f'],"{_END}":true}}'))


def enclosing_type(kind: DataType) -> StructType:
    """Return the type of an ``enclosed`` text of a value of this type."""
    fields = [StructField(_VALUE, ArrayType(kind)), StructField(_END, BooleanType())]
    return StructType(fields)


def is_enclosed(read: Column) -> Column:
    """Return, over a parsed ``enclosed`` text, whether it is one value and nothing else."""
    has_end = F.coalesce(read[_END], F.lit(False))
    is_single = F.coalesce(F.size(read[_VALUE]) == 1, F.lit(False))
    return has_end & is_single & read[_VALUE][0].isNotNull()


def enclosed_value(read: Column) -> Column:
    """Return the value of a parsed ``enclosed`` text."""
    return read[_VALUE][0]


def is_utf8(octets: Column) -> Column:
    """Return whether octets are UTF-8; Spark replaces other octets by U+FFFD."""
    return F.decode(octets, "UTF-8").cast("binary") == octets.cast("binary")


def is_no_text(value: Column) -> Column:
    """Return whether there is a value, and its octets are not UTF-8."""
    return ~F.coalesce(is_utf8(value), F.lit(True))


def is_one_text(key: Column) -> Column:
    """Return whether octets are UTF-8 and one JSON text; Spark's parser stops where a value ends.

    Nearly every key has one brace that closes it, and needs no parsing here.
    """
    text = key.cast("string")
    object_ = F.startswith(text, F.lit("{")) & (F.instr(text, "}") == F.length(text))
    is_single = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    return is_utf8(key) & (object_ | F.coalesce(is_single, F.lit(False)))


def has_broken_key(key: Column) -> Column:
    """Return whether there is a record key that does not identify a row."""
    return key.isNotNull() & ~F.coalesce(is_one_text(key), F.lit(False))


def parse_fields(records: DataFrame, schema: StructType) -> DataFrame:
    """Add the fields of ``schema``, read from ``value``, and ``malformed``: it is not JSON."""
    return _parse_fields(schema, tuple(records.columns)).of(records)


@made_once
def _parse_fields(schema: StructType, others: tuple[str | Column, ...]) -> Steps:
    """Read the fields of ``schema`` from ``value``, and give them with ``others``."""
    whole = StructType([*enclosing_type(schema), StructField(_CORRUPT, StringType())])
    text = enclose(F.col("value").cast("string"))
    value, is_sound = enclosed_value(F.col("_read")), is_enclosed(F.col("_read"))
    is_sound = F.col(f"_read.{_CORRUPT}").isNull() & is_sound
    fields = (value[name].alias(name) for name in schema.fieldNames())
    is_malformed = (F.col("value").isNotNull() & ~is_sound).alias("malformed")
    return Steps(
        Addition({"_read": F.from_json(text, whole, _OPTIONS)}),
        Selection(*others, *fields, is_malformed),
    )


def _rows(text: Column) -> Column:
    """Keep only ``before`` and ``after`` of an envelope in Debezium's layout; else keep all of it.

    A third of a narrow table's record is rows; the rest then need not be stored, copied and
    searched for placeholders. The text stays whole unless the end of the rows occurs exactly once.
    """
    before = F.substring_index(text, _ROWS_END, 1)
    # Not `substring_index` from the end, which compares at each octet of what lies behind.
    behind = F.substr(text.cast("binary"), F.octet_length(before) + 1 + len(_ROWS_END))
    is_unique = ~F.contains(behind.cast("string"), F.lit(_ROWS_END))
    has_end = F.octet_length(before) < F.octet_length(text)
    has_layout = F.startswith(text, F.lit(_ROWS_START)) & has_end & is_unique
    return F.when(has_layout, F.concat(before, F.lit("}"))).otherwise(text)


def add_tag(text: Column, schema: Column) -> Column:
    """Add a schema's tag to an envelope, in a field that no envelope of Debezium's has."""
    tag = tag_of_schema(schema).cast("string")
    with_tag = F.concat(F.lit(f'{_SCHEMA}"'), tag, F.lit('",'), F.substr(text, F.lit(2)))
    return F.when(schema.isNotNull() & F.startswith(text, F.lit("{")), with_tag).otherwise(text)


@made_once
def schema_tag(value: Column) -> Column:
    """Return the schema tag in a value of ``ENVELOPE``; NULL where there is none."""
    start = f'{_SCHEMA}"'
    has_tag = F.startswith(value.cast("string"), F.lit(start))
    return F.when(has_tag, F.substring(value, len(start) + 1, TAG_OCTETS))


def decode_envelope(
    records: DataFrame, *, event: bool = False, source: StructType = SOURCE
) -> DataFrame:
    """Decode data records (``RECORD``) to ``ENVELOPE``.

    Args:
        records: Records as they are in the log.
        event: Whether to read RFC-39's columns.
        source: The fields of the source block to read.
    """
    return _decode_envelope(envelope_fields(event=event, source=source)).of(records)


@made_once
def _decode_envelope(fields: StructType) -> Steps:
    rows = _rows(F.col("value").cast("string"))
    whole = add_tag(rows, F.col("_schema")).cast("binary")
    is_broken = F.col("malformed") | is_no_text(F.col("value")) | has_broken_key(F.col("key"))
    # The rows that are left are what must be a text.
    others = (*_RECORD, "key", whole.alias("value"))
    return Steps(
        _without_schemas(),
        _parse_fields(fields, others),
        Selection(*_RECORD, "key", "value", *fields.fieldNames(), is_broken.alias("malformed")),
    )


def decode_transaction_metadata(records: DataFrame) -> DataFrame:
    """Decode records of the transaction topic; columns as ``WireFormat.transaction_metadata``."""
    return _decode_metadata().of(records)


@made_once
def _decode_metadata() -> Steps:
    payload, _ = split_schema(F.col("value"))
    place = ("partition", "offset", "timestamp")
    is_broken = F.col("malformed") | is_no_text(F.col("value"))
    return Steps(
        Selection(*place, payload.alias("value")),
        _parse_fields(TRANSACTION_METADATA, (*place, "value")),
        Selection(*place, *TRANSACTION_METADATA.fieldNames(), is_broken.alias("malformed")),
    )


def carried_schemas(records: DataFrame) -> DataFrame:
    """Find the schemas that values carry.

    Returns:
        ``tag`` (binary, as ``named_schema``), ``schema`` (Connect's, as JSON) and ``since``
        (bigint: timestamp of the first record with the schema, epoch milliseconds).
    """
    _, schema = split_schema(F.col("value"))
    since = F.coalesce(F.unix_millis(F.min("timestamp")), F.lit(0))
    return (
        records.select("timestamp", schema.alias("schema"))
        .where(F.col("schema").isNotNull())
        .groupBy(tag_of_schema(F.col("schema")).alias("tag"))
        .agg(F.first("schema").alias("schema"), since.alias("since"))
    )
