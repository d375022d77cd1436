"""A position as one fixed-width string that sorts byte by byte in source-log order.

Rejected: a struct or an array of numbers. Delta MERGE conditions, Hudi ordering fields, ``max_by``
and file statistics all take a string as it is, while arrays have no ``<`` in Spark and structs no
file statistics. Also rejected: the source's own text. The LSN ``"9"`` sorts after ``"10"``, binlog
file ``999999`` after ``1000000``.

Layout: ``eeee r c…c`` without blanks: four hexadecimal digits of epoch, one digit of rank (``0``
snapshot, ``1`` stream), then 16 hexadecimal digits (unsigned 64 bit, upper case) per component.

Two kinds of strings extend a position and still sort correctly against plain positions:

* ``position + position`` (``inherited``): a column value that was written at the second position
  and that a primary-key change at the first position carried over.
* ``position + "!"`` (``missing_below``): a column without a known value above a delete at that
  position. ``!`` sorts below every digit, so a bare ``!`` (nothing is known) is the lowest of all.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

COMPONENT_WIDTH = 16
EPOCH_WIDTH = 4
COMMIT_WIDTH = EPOCH_WIDTH + 1 + COMPONENT_WIDTH
"""Width of a position's epoch, rank and leading component: its commit."""

_MISSING = "!"


def component(value: Column) -> Column:
    """Encode a non-negative integer column as 16 upper-case hexadecimal digits."""
    return F.lpad(F.hex(value.cast("bigint")), COMPONENT_WIDTH, "0")


def begins_at_zero(place: Column) -> Column:
    """Return whether the leading component of a position is 0."""
    return F.substring(place, EPOCH_WIDTH + 2, COMPONENT_WIDTH) == F.lit("0" * COMPONENT_WIDTH)


def position(epoch: Column, streaming: Column, *components: Column) -> Column:
    """Encode a position; NULL where any component is NULL.

    Args:
        epoch: How often the log's positions have started over (int, 0 to 65535).
        streaming: True for streamed changes, false for rows of an initial snapshot.
        *components: Strings of ``component``, most significant first.
    """
    rank = F.when(streaming, F.lit("1")).otherwise(F.lit("0"))
    return F.concat(F.lpad(F.hex(epoch.cast("bigint")), EPOCH_WIDTH, "0"), rank, *components)


def after(epoch: int, *components: int) -> str:
    """Return, for tests and frontiers, the streaming position with these components."""
    digits = "".join(f"{value:0{COMPONENT_WIDTH}X}" for value in components)
    return f"{epoch:0{EPOCH_WIDTH}X}1{digits}"


def inherited(moved_at: Column, written_at: Column) -> Column:
    """Return the position of a value that a key change at ``moved_at`` carried over."""
    return F.concat(moved_at, written_at)


def missing_below(deleted_at: Column | None = None) -> Column:
    """Mark a column without a known value: above a delete, or at all (None)."""
    if deleted_at is None:
        return F.lit(_MISSING)
    return F.concat(deleted_at, F.lit(_MISSING))


def is_missing(column_position: Column) -> Column:
    """Return whether a column position is a mark of ``missing_below``."""
    return F.endswith(column_position, F.lit(_MISSING))


def present_entries(entries: Sequence[Column]) -> Column:
    """Make a map of the structs (key, value) whose value is not NULL; it may be empty."""
    typed = F.array(*entries).cast("array<struct<key:string,value:string>>")
    return F.map_from_entries(F.filter(typed, lambda entry: entry["value"].isNotNull()))
