"""Positions by columns that a user names, for topics whose source block orders nothing.

The values come as text, as they are in the record. Whole numbers and timestamps become numbers. Any
other text is not supported: it would need a fixed width, which nobody knows. If the columns are
equal, the Kafka offset decides; within one partition that is the order of a row's changes. So a
record that is sent again has another position than before, and looks newer until the records after
it are sent again, too. This is the price of an order that is not the source's.

There is no rank: a snapshot row has the columns, too, and they decide.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakeingest.position import component, position

_DIGITS = r"^[0-9]{1,19}$"
_LARGEST = 2**63 - 1
"""The largest long; it has 19 digits, as have nanoseconds since 1970."""


def ordered_position(epoch: Column, texts: Column) -> Column:
    """Encode the position of an envelope row.

    Args:
        epoch: As ``position`` takes it.
        texts: Array with the text of each column, most significant first.

    Returns:
        The position; NULL where a column is NULL, negative, or neither a number nor a timestamp.
    """
    numbers = F.transform(texts, _component)
    whole = F.forall(numbers, lambda number: number.isNotNull())
    parts = F.when(whole, F.array_join(numbers, ""))
    return position(epoch, F.lit(True), parts, component(F.col("offset")))


def _component(text: Column) -> Column:
    micros = F.unix_micros(F.try_to_timestamp(text))
    digits = F.when(F.rlike(text, F.lit(_DIGITS)), text).cast("decimal(19,0)")
    whole = F.when(digits <= F.lit(_LARGEST), digits.cast("bigint"))
    number = F.when(digits.isNotNull(), whole).otherwise(micros)
    return F.when(number >= 0, component(number))
