"""Give a source's frame the exact schema that ``decode/`` expects.

Spark's readers declare every column nullable. Rejected: to rebuild the frame with the required
schema; that needs an RDD, which Spark Connect does not have. Also rejected: to leave the columns
nullable; a test could then no longer compare the output type of one stage with the input type of
the next. ``coalesce`` with a value that never occurs makes the analyser treat a column as NOT NULL.
It has no measurable cost.
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
