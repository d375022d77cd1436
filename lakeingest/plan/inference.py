"""Infer types of columns that nobody declared, from the JSON of every row of the batch.

Spark reads each column as several types at once. The column gets the narrowest type that reads
every value; text if no type does (text keeps any JSON as it is). Rejected: a sample on the driver.
A column that is null or whole in the sample, and text or a fraction elsewhere, would get a type
that loses values.

Such a type is a guess where the values can also be those of another type: JSON writes dates, times
and timestamps as whole numbers, and decimals and bytes as text in base64. Rejected: to take a whole
number for one if it lies beyond the years around today. A birthday does, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from lakeingest.decode.json.limits import ANY_LENGTH
from lakeingest.decode.row_layout import RowLayout
from lakeingest.decode.seen_modes import DECIMAL_TEXT, HEX_TEXT

_CANDIDATES: dict[str, DataType] = {
    "boolean": BooleanType(),
    "int64": LongType(),
    "float64": DoubleType(),
}
"""Spark types of JSON values by Connect name, the narrowest first."""

_OTHER_TEXTS = (
    r"(?:[A-Za-z0-9+/_-]{4})*(?:[A-Za-z0-9+/_-]{2}==|[A-Za-z0-9+/_-]{3}=)?",  # bytes, a decimal
    HEX_TEXT,
    DECIMAL_TEXT,
    r"[+-]?\d{4,}-\d\d-\d\d.*",  # io.debezium.time.ZonedTimestamp
    r"\d\d:\d\d.*",  # io.debezium.time.ZonedTime
    r"\s*[\[{].*",  # a struct, an array, io.debezium.data.Json
)
_OTHER_TEXT = f"^(?s:{'|'.join(_OTHER_TEXTS)})$"
"""Matches a text that a column of another type than text may have."""


@dataclass(frozen=True)
class InferredType:
    """The type of a column as its values show it.

    Attributes:
        kind: Connect name of the narrowest type that reads every value; text if none does.
        certain: Whether no other type of Debezium writes such values.
        seen: Whether there is a value at all.
    """

    kind: str
    certain: bool
    seen: bool = True


def readable_counts(rows: DataFrame, names: Sequence[str], *, cells: bool = False) -> DataFrame:
    """Count, per column and candidate type, the values that this type reads.

    Args:
        rows: ``value``: envelopes as bare JSON.
        names: Fields of ``after`` to read.
        cells: See ``RowLayout``.

    Returns:
        One row; columns ``<index>_all``, ``<index>_<type>`` and ``<index>_text`` (values that only
        a text can be; bigint), in the order of ``names``.
    """
    layout = RowLayout(cells=cells)

    def as_type(kind: DataType) -> Column:
        after = StructType([StructField(name, layout.field_type(kind)) for name in names])
        envelope = StructType([StructField("after", after)])
        return F.from_json(F.col("value").cast("string"), envelope, ANY_LENGTH)["after"]

    readings = {"all": as_type(StringType())}
    readings.update({label: as_type(kind) for label, kind in _CANDIDATES.items()})
    parsed = rows.select(*(reading.alias(label) for label, reading in readings.items()))

    def value_of(label: str, name: str) -> Column:
        return layout.value(F.col(label).getField(name))

    def reads(label: str, name: str) -> Column:
        value = value_of(label, name)
        if label != "float64":
            return value
        # A double rounds a whole number of 16 digits or more.
        return F.when(~value_of("all", name).rlike(r"^-?\d{16,}$"), value)

    return parsed.agg(
        *(
            F.count(reads(label, name)).alias(f"{index}_{label}")
            for index, name in enumerate(names)
            for label in readings
        ),
        *(
            F.count_if(~value_of("all", name).rlike(_OTHER_TEXT)).alias(f"{index}_text")
            for index, name in enumerate(names)
        ),
    )


def inferred_types(counts: Row | None, names: Sequence[str]) -> dict[str, InferredType]:
    """Return the narrowest type of each column.

    Args:
        counts: The row of ``readable_counts``.
        names: The names that it was asked with.
    """
    by_name = counts.asDict() if counts else {}
    return {name: narrowest(by_name, index) for index, name in enumerate(names)}


def narrowest(counts: Mapping[str, int], index: int) -> InferredType:
    """Return the narrowest type that reads every value of a column.

    Args:
        counts: The row of ``readable_counts``.
        index: Index of the column.
    """
    total = counts[f"{index}_all"]
    candidates = (label for label in _CANDIDATES if total and counts[f"{index}_{label}"] == total)
    kind = next(candidates, "string")
    certain = counts[f"{index}_text"] > 0 if kind == "string" else kind != "int64"
    return InferredType(kind, certain, total > 0)
