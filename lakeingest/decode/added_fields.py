"""What ``ExtractNewRecordState`` leaves of an envelope: fields beside the row's, by ``add.fields``.

``source.lsn`` becomes ``__source_lsn``; from such fields the envelope's own are put together
again, the same way for every record format. A column whose name begins so cannot be told from them.

Source: Debezium's ``ExtractNewRecordState`` and ``ExtractNewRecordStateConfigDefinition``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

ADDED = "__"
"""Start of the names that the transform gives to fields it adds to a row."""

ADDED_OP = f"{ADDED}op"

_PLACES = ("sequence", "commit_lsn", "gtid", "file", "commit_scn", "commit_time")
"""Fields of a source block one of which orders transactions; an LSN alone does not."""


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
    """Put envelopes together: ``ENVELOPE``, and what else the envelope has.

    Args:
        read: Records with the fields of ``flat`` and ``malformed``: they could not be read.
        envelope: What is read of an envelope.
        value: What goes on as the record's octets.
    """
    # The transform leaves what is no envelope of a row as it is: logical messages.
    untouched = F.col(ADDED_OP).isNull() & (F.col("op") == "m")
    row_is_there = F.col("value").isNotNull() & ~F.coalesce(untouched, F.lit(False))
    broken = F.col("malformed") | (row_is_there & _says_too_little(envelope))
    return read.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        "headers",
        "key",
        F.when(F.col("value").isNotNull(), value).alias("value"),
        F.when(untouched, F.col("op")).otherwise(F.col(ADDED_OP)).alias("op"),
        *(_field(item).alias(item.name) for item in envelope if item.name != "op"),
        F.coalesce(broken, F.lit(False)).alias("malformed"),
    )


def _says_too_little(envelope: StructType) -> Column:
    """Condition: a row that could be any change, or could stand anywhere: broken, not foreign."""
    source = envelope["source"].dataType
    names = source.fieldNames() if isinstance(source, StructType) else []
    places = [F.col(f"{ADDED}source_{name}").cast("string") for name in _PLACES if name in names]
    streamed = F.col(f"{ADDED}transaction_id").isNotNull()
    return F.col(ADDED_OP).isNull() | (streamed & F.coalesce(*places).isNull())


def _added(name: str, kind: DataType) -> StructField:
    return StructField(f"{ADDED}{name}", kind)


def _field(item: StructField) -> Column:
    if not isinstance(item.dataType, StructType):
        return F.col(f"{ADDED}{item.name}")
    parts = [F.col(f"{ADDED}{item.name}_{part.name}").alias(part.name) for part in item.dataType]
    block = F.struct(*parts)
    if item.name != "transaction":
        return block
    # Rows of a snapshot are in none.
    return F.when(F.col(f"{ADDED}transaction_id").isNotNull(), block)
