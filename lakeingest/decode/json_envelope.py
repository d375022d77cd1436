"""JSON bytes to the envelope's header fields, for JsonConverter with and without schemas.

One ``from_json`` reads only what routing, ordering and transactions need; ``before`` and ``after``
are skipped by the parser and their text is carried on, so that the row decoder meets the original
digits (a ``from_json`` field of type string re-prints numbers through a double and would round a
``decimal.format=NUMERIC`` value). The rejected ways are ``get_json_object`` per field (each call
parses the whole text again: 2.2 times slower, measured) and decoding the whole row of every event
here (most events of a hot key never reach the lake).

Sources: Kafka's ``JsonConverter`` (``{"schema":…,"payload":…}`` with ``schemas.enable=true``),
Debezium's ``Envelope`` and ``SourceInfo``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakeingest.decode.header import HEADER, TRANSACTION_METADATA

_CORRUPT = "_malformed"
_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
_WRAPPED_START = ('{"schema":{', '{"schema":null,"payload":')
"""A key column may be named ``schema``, but then its value is no object."""

_ROWS_START = '{"before":'
_ROWS_END = ',"source":{"version":'
"""What Debezium writes after both rows; no text in a row can hold it, quotes are escaped there."""


def is_wrapped(text: Column) -> Column:
    """Tell whether a JSON text is JsonConverter's ``{"schema":…,"payload":…}``."""
    described, null = (F.startswith(text, F.lit(start)) for start in _WRAPPED_START)
    return described | null


def parse(text: Column, schema: StructType) -> tuple[Column, Column]:
    """Parse ``text`` as ``schema`` whether it is wrapped or bare.

    Returns:
        Two struct columns, one of which is null: the bare and the wrapped reading. Each has the
        fields of ``schema`` (under ``payload`` when wrapped) and ``_malformed``, the text where
        it is not JSON of that shape.
    """
    corrupt = StructField(_CORRUPT, StringType())
    bare = StructType([*schema, corrupt])
    wrapped = StructType([StructField("payload", schema), corrupt])
    return (
        F.when(~is_wrapped(text), F.from_json(text, bare, _OPTIONS)),
        F.when(is_wrapped(text), F.from_json(text, wrapped, _OPTIONS)),
    )


def _parsed(records: DataFrame, schema: StructType) -> DataFrame:
    bare, wrapped = parse(F.col("value"), schema)
    read = records.withColumn("_bare", bare).withColumn("_wrapped", wrapped)
    fields = {
        name: F.coalesce(F.col(f"_bare.{name}"), F.col(f"_wrapped.payload.{name}"))
        for name in schema.fieldNames()
    }
    malformed = F.coalesce(F.col(f"_bare.{_CORRUPT}"), F.col(f"_wrapped.{_CORRUPT}")).isNotNull()
    return read.select(
        *records.columns,
        *(column.alias(name) for name, column in fields.items()),
        malformed.alias("malformed"),
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


def decode_envelope(records: DataFrame) -> DataFrame:
    """Decode data records (``shape.RECORD``) to ``shape.ENVELOPE``."""
    text = records.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        "headers",
        "key",
        F.col("value").cast("string").alias("value"),
    )
    return _parsed(text, HEADER).withColumn("value", _rows(F.col("value")).cast("binary"))


def decode_transaction_metadata(records: DataFrame) -> DataFrame:
    """Decode records of the transaction topic; columns as ``WireFormat.transaction_metadata``."""
    text = records.select(
        "partition", "offset", "timestamp", F.col("value").cast("string").alias("value")
    )
    return _parsed(text, TRANSACTION_METADATA).drop("value")
