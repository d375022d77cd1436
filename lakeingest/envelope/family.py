"""Describe the differences between connectors as data: one ``Family`` per connector family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakeingest.frame_schemas import SOURCE


@dataclass(frozen=True)
class Domains:
    """Describe a connector whose transactions' places cannot all be compared.

    Attributes:
        domain: ``(id) -> Column``: the domain, over ``BOUNDARY``; transactions of different
            domains cannot be compared.
        number: ``(id) -> Column``: a long that grows from transaction to transaction of a domain.
        follow: Whether one domain may follow another, as after a failover to another server; else
            a second domain stops the run.
        row_id: An id of a row that gives its domain and number, as ``id`` gives those of an END.
        is_in: ``(id, domain) -> Column``: whether the transaction is of this domain; a cheap check,
            run for every row.
    """

    domain: Callable[[Column], Column]
    number: Callable[[Column], Column]
    follow: bool = False
    row_id: Callable[[], Column] = lambda: F.col("transaction.id")
    is_in: Callable[[Column, str], Column] = lambda _, __: F.lit(True)


def table_name(*parts: str) -> Column:
    """Return a table's name, its parts joined by dots; empty where one of them is missing.

    ``concat_ws`` alone would leave a missing part out and name another table.

    Args:
        *parts: Fields of the source block.
    """
    columns = [F.col(f"source.{part}") for part in parts]
    is_whole = reduce(and_, (column.isNotNull() for column in columns))
    return F.when(is_whole, F.concat_ws(".", *columns)).otherwise("")


@dataclass(frozen=True)
class Family:
    """How one family of connectors names and orders its events.

    Attributes:
        position: ``(epoch) -> Column``: the position (``position.encoding``) of an envelope row;
            NULL where the source block has no usable coordinates.
        collection: Name of the row's table: its topic without the prefix.
        transaction_key: ``(id) -> Column``: the part of the id that BEGIN, rows and END of one
            transaction share.
        end_position: ``(epoch, id) -> Column``: a position above every row of the transaction with
            this END id and of all before it, and not above any row of a later one; None: the id
            gives no position, the rows do.
        implied_end: A BEGIN without rows but TRUNCATEs is over without an END when a later
            transaction's BEGIN follows.
        domains: The domains of incomparable transactions; None: all transactions can be compared.
        end_collection: ``(name) -> Column``: from a name in END to the name in ``collection``;
            None: they are the same.
        source: The fields of the source block to read.
        event: A value per column of RFC-39 (``event_columns``), in their order; None: Hudi's
            streamer has no tables of this connector.
        inside: ``INSIDE`` of a row, where a transaction's rows may share a place; None: they never
            do.
        in_file: ``(epoch) -> Column``: the position for epochs in which positions are places in a
            file of the log (``Epoch.in_file_order``); None: there are no such epochs.
        row_transaction: A streamed row's transaction by its source block alone: rows of one
            transaction share it, and the leading component of their positions, which no other
            transaction has; NULL: the row does not show it. None: no row of the connector does.
        transaction_fields: The fields of the source block that only ``row_transaction`` reads.
        unplaced_first: Whether the rows of the first transaction of a connector that has no offsets
            do not say which commit is before them: the leading component of their positions is 0,
            and of no others.
    """

    position: Callable[[Column], Column]
    collection: Callable[[], Column]
    transaction_key: Callable[[Column], Column] = lambda id_: id_
    end_position: Callable[[Column, Column], Column] | None = None
    implied_end: bool = False
    domains: Domains | None = None
    end_collection: Callable[[Column], Column] | None = None
    source: StructType = SOURCE
    event: Callable[[], tuple[Column, ...]] | None = None
    inside: Callable[[], Column] | None = None
    in_file: Callable[[Column], Column] | None = None
    row_transaction: Callable[[], Column] | None = None
    transaction_fields: tuple[StructField, ...] = ()
    unplaced_first: bool = False


SNAPSHOT_END_MARKS = frozenset(("last_in_data_collection", "last"))
"""Marks of the last row of a table, and of the last row of an initial snapshot."""

_INITIAL = ("true", "first", "first_in_data_collection", *SNAPSHOT_END_MARKS)
"""Marks of an initial snapshot's rows; Debezium's ``SnapshotRecord`` has only two others."""


def is_streamed() -> Column:
    """Return whether a row is not of an initial snapshot (NULL: the converter omits defaults)."""
    return ~F.coalesce(F.col("source.snapshot"), F.lit("false")).isin(*_INITIAL)
