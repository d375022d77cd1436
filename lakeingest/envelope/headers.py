"""Read headers of a record by name (``ChangeEvent`` in Debezium's ``PK_UPDATE_*`` constants)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

OLD_KEY_HEADER = "__debezium.oldkey"
NEW_KEY_HEADER = "__debezium.newkey"
RUN_HEADER = "__debezium.context.runId"


def header(name: str) -> Column:
    """Return the first header of that name as text; no lambda, which Spark does not compile."""
    place = F.array_position(F.col("headers.key"), name)
    return F.when(place > 0, F.get(F.col("headers"), place.cast("int") - 1)["value"].cast("string"))
