"""What differs between connectors, as data: one ``Family`` per connector family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.frame_schemas import SOURCE


@dataclass(frozen=True)
class Domains:
    """How transactions are told apart whose places cannot be compared.

    Attributes:
        domain: ``(id) -> Column``: transactions of different domains cannot be compared. Over
            ``BOUNDARY``.
        number: ``(id) -> Column``: a long that grows from transaction to transaction of a domain.
        follow: Whether one domain may follow another, as a server that takes over does; else a
            second one stops the run.
        row_id: What tells domain and number of a row as ``id`` does that of an END.
        is_in: ``(id, domain) -> Column``: whether the transaction is of this domain; a cheap check,
            made for every row.
    """

    domain: Callable[[Column], Column]
    number: Callable[[Column], Column]
    follow: bool = False
    row_id: Callable[[], Column] = lambda: F.col("transaction.id")
    is_in: Callable[[Column, str], Column] = lambda _, __: F.lit(True)


@dataclass(frozen=True)
class Family:
    """How one family of connectors names and orders its events.

    Attributes:
        position: ``(epoch) -> Column``: the position (``position.encoding``) of an envelope row;
            null where the source block has no usable coordinates.
        collection: Name of the row's table: its topic without the prefix.
        transaction_key: ``(id) -> Column``: what BEGIN, rows and END of one transaction share.
        end_position: ``(epoch, id) -> Column``: a position above every row of the transaction with
            this END id and of all before it, and not above any row of a later one; null: the id
            does not tell, rows do.
        implied_end: A BEGIN that a later transaction's BEGIN follows is over without an END.
        domains: How incomparable transactions are told apart; null: all can be compared.
        end_collection: ``(name) -> Column``: a name as END spells it to that of ``collection``;
            null: they are the same.
        source: What is read of the source block.
        event: A value per column of RFC-39 (``event_columns``), in their order; null: Hudi's
            streamer has no tables of this connector.
        cells: Whether its rows may come in cells (``decode/cell.py``).
        inside: ``INSIDE`` of a row, where a transaction's rows may share a place; null: they
            never do.
        in_file: ``(epoch) -> Column``: the position where it is a place in a file of the log
            (``Epoch.in_file_order``); null: there are no such epochs.
    """

    position: Callable[[Column], Column]
    collection: Callable[[], Column]
    transaction_key: Callable[[Column], Column]
    end_position: Callable[[Column, Column], Column] | None
    implied_end: bool = False
    domains: Domains | None = None
    end_collection: Callable[[Column], Column] | None = None
    source: StructType = SOURCE
    event: Callable[[], tuple[Column, ...]] | None = None
    cells: bool = False
    inside: Callable[[], Column] | None = None
    in_file: Callable[[Column], Column] | None = None


_INITIAL = ("true", "first", "first_in_data_collection", "last_in_data_collection", "last")
"""Marks of an initial snapshot's rows; Debezium's ``SnapshotRecord`` has two more and no others."""


def is_streamed() -> Column:
    """Condition: not a row of an initial snapshot (null: the converter left the default out)."""
    return ~F.coalesce(F.col("source.snapshot"), F.lit("false")).isin(*_INITIAL)
