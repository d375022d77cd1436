"""Envelope fields that ``ExtractNewRecordState`` adds to a row, by ``add.fields``.

``source.lsn`` becomes ``__source_lsn``. From such fields this module builds the envelope's own
fields again, the same way for every record format. A column whose name begins so looks like one.

Source: Debezium's ``ExtractNewRecordState`` and ``ExtractNewRecordStateConfigDefinition``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

ADDED = "__"
"""Start of the names of fields that the transform adds to a row."""

ADDED_OP = f"{ADDED}op"

_PLACES = ("sequence", "commit_lsn", "gtid", "file", "commit_scn", "commit_time")
"""Fields of a source block; one of them orders transactions, an LSN alone does not."""


def flat(envelope: StructType) -> StructType:
    """Return the fields that the transform makes of an envelope's fields, and the bare ``op``."""
    fields: list[StructField] = []
    for item in envelope:
        if isinstance(item.dataType, StructType):
            fields += [_added(f"{item.name}_{part.name}", part.dataType) for part in item.dataType]
        else:
            fields.append(_added(item.name, item.dataType))
    return StructType([*fields, envelope["op"]])


def envelopes_of(read: DataFrame, envelope: StructType, value: Column) -> DataFrame:
    """Build envelopes: ``ENVELOPE``, and the other fields of ``envelope``.

    Args:
        read: Records with the fields of ``flat`` and ``malformed``: they could not be read.
        envelope: The fields to read of an envelope.
        value: The record's octets for the later stages.
    """
    # The transform does not change logical messages, which are no envelopes of rows.
    is_message = F.col(ADDED_OP).isNull() & (F.col("op") == "m")
    has_row = F.col("value").isNotNull() & ~F.coalesce(is_message, F.lit(False))
    is_malformed = F.col("malformed") | (has_row & _says_too_little(envelope))
    return read.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        "headers",
        "key",
        F.when(F.col("value").isNotNull(), value).alias("value"),
        F.when(is_message, F.col("op")).otherwise(F.col(ADDED_OP)).alias("op"),
        *(_field(item).alias(item.name) for item in envelope if item.name != "op"),
        F.coalesce(is_malformed, F.lit(False)).alias("malformed"),
    )


def _says_too_little(envelope: StructType) -> Column:
    """Return whether a row lacks its operation or its place: then it is broken, not foreign.

    An envelope without any field that could be the place, does not ask for one.
    """
    source = envelope["source"].dataType
    names = source.fieldNames() if isinstance(source, StructType) else []
    places = [F.col(f"{ADDED}source_{name}").cast("string") for name in _PLACES if name in names]
    lacks_op = F.col(ADDED_OP).isNull()
    if not places:
        return lacks_op
    has_transaction = F.col(f"{ADDED}transaction_id").isNotNull()
    return lacks_op | (has_transaction & F.coalesce(*places).isNull())


def _added(name: str, kind: DataType) -> StructField:
    return StructField(f"{ADDED}{name}", kind)


def _field(item: StructField) -> Column:
    if not isinstance(item.dataType, StructType):
        return F.col(f"{ADDED}{item.name}")
    parts = [F.col(f"{ADDED}{item.name}_{part.name}").alias(part.name) for part in item.dataType]
    block = F.struct(*parts)
    if item.name != "transaction":
        return block
    # Snapshot rows have no transaction.
    return F.when(F.col(f"{ADDED}transaction_id").isNotNull(), block)
