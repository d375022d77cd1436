"""Recognise messages of Debezium that are no change of a row, by the names of their fields.

They have topics of their own, but a prefix or a pattern may select those, too. A record with other
fields and without an operation is not skipped: it may be a row without its envelope.

Source: Debezium's ``HeartbeatImpl``, ``TransactionStructMaker``, ``SchemaFactory`` (schema change,
notification).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F

_EXACTLY = (
    frozenset({"ts_ms"}),
    frozenset({"status", "id", "event_count", "data_collections", "ts_ms"}),
)
"""A heartbeat; BEGIN and END."""

_AT_LEAST = (
    frozenset({"databaseName", "ddl", "source", "ts_ms"}),
    frozenset({"id", "aggregate_type", "type", "additional_data"}),
)
"""A schema change; a notification."""


def has_foreign_fields(names: Collection[str]) -> bool:
    """Return whether a record with these fields is another message of Debezium's."""
    return set(names) in _EXACTLY or any(names_of <= set(names) for names_of in _AT_LEAST)


def has_foreign_names(names: Column) -> Column:
    """Return the same over an array of names."""
    exactly = (_has(names, fields) & (F.size(names) == len(fields)) for fields in _EXACTLY)
    at_least = (_has(names, fields) for fields in _AT_LEAST)
    return F.coalesce(reduce(or_, (*exactly, *at_least)), F.lit(False))


def _has(names: Column, fields: Collection[str]) -> Column:
    expected = F.array(*map(F.lit, sorted(fields)))
    return F.size(F.array_intersect(names, expected)) == len(fields)
