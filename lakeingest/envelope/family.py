"""What differs between connectors, as data: one ``Family`` per connector family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column


@dataclass(frozen=True)
class Family:
    """How one family of connectors names and orders its events.

    Attributes:
        position: ``(epoch) -> Column``: the position (``position.encoding``) of an envelope row;
            null where the source block has no usable coordinates.
        collection: Name of the row's table as Debezium's transaction metadata spells it.
        transaction_key: ``(id) -> Column``: what BEGIN, rows and END of one transaction share.
        end_position: ``(epoch, id) -> Column``: a position above every row of the transaction with
            this END id and of all before it, and not above any row of a later one.
        order: ``(id) -> Column``: a long that grows from transaction to transaction; compares
            BEGINs that have no END.
        implied_end: A BEGIN that a later transaction's BEGIN follows is over without an END.
        order_domain: ``(id) -> Column``: transactions of different domains cannot be compared.
        event: A value per column of RFC-39 (``event_columns``), in their order.
    """

    position: Callable[[Column], Column]
    collection: Callable[[], Column]
    transaction_key: Callable[[Column], Column]
    end_position: Callable[[Column, Column], Column]
    order: Callable[[Column], Column]
    implied_end: bool
    order_domain: Callable[[Column], Column]
    event: Callable[[], tuple[Column, ...]]
