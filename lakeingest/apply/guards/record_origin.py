"""What a record says of who wrote it: the connector's name, and the format by its first byte."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakeingest.apply.table.record_schemas import Schemas

JSON_BEGINS, AVRO_BEGINS = "7B", "00"
"""First byte of a JSON object, and of a record in a registry's Avro, in hexadecimal digits."""

_SOURCE = StructType(
    [StructField(name, StringType()) for name in ("connector", "db", "schema", "table")]
)


def first_byte() -> Column:
    """Return the first byte of ``value`` as ``byte``: two hexadecimal digits."""
    return F.hex(F.substring("value", 1, 1)).alias("byte")


def with_connector(records: DataFrame, schemas: Schemas) -> DataFrame:
    """Return the envelopes of records with ``connector`` (string; NULL: they do not name it).

    Args:
        records: Columns of ``RECORD``.
        schemas: Learns the schemas without which the records cannot be read.

    Raises:
        LakeingestError: The registry has no schema of an id, or cannot be reached.
    """
    if schemas.needed:
        schemas.learn(records)
    read = schemas.format.envelopes(records, source=_SOURCE)
    return read.withColumn("connector", F.col("source.connector"))
