"""The one place where a source's frame takes on the exact shape that ``decode/`` is promised.

Spark's readers declare every column nullable. Rejected: to rebuild the frame with the wanted
schema, which goes through an RDD and so not through Spark Connect; and to leave it nullable, so
that the stages' input and output types could no longer be compared. ``coalesce`` with a value that
never occurs tells the analyser that a column is never null, and costs nothing that can be measured.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest import frame_schemas


def as_record(frame: DataFrame) -> DataFrame:
    """Return ``frame`` with the columns, order, types and nullability of ``RECORD``."""
    return frame.select(
        F.coalesce("topic", F.lit("")).alias("topic"),
        F.coalesce("partition", F.lit(-1)).alias("partition"),
        F.coalesce("offset", F.lit(-1).cast("long")).alias("offset"),
        "timestamp",
        "key",
        "value",
        F.col("headers").cast(frame_schemas.RECORD["headers"].dataType).alias("headers"),
    )
