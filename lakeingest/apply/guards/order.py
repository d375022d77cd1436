"""Refuse a change of what a lake's positions are made of: its mode and its ordering columns.

Positions of another kind do not compare with those of the lake's rows, and no row would show it.
The ledger shows how the lake began. Where each event is on its own, the ordering columns name the
lake's single epoch. Where transactions are whole, the frontier has a position above the last one;
its width shows whether an END or the rows gave it.
"""

from __future__ import annotations

import json

from lakeingest.errors import ConfigError
from lakeingest.ledger.publication import Frontier, Publication
from lakeingest.plan.row_boundaries import is_by_rows
from lakeingest.plan.spec import Ordering, PipelineSpec, Transactions
from lakeingest.position.epochs import Epoch


def order_epoch(spec: PipelineSpec) -> Epoch:
    """Return the epoch of a pipeline without transactions; its ordering columns name it."""
    columns = {"": spec.ordering.columns, **spec.ordering.tables}
    return Epoch(spec.epoch, json.dumps(columns, sort_keys=True))


def refuse_another_order(head: Publication, spec: PipelineSpec) -> None:
    """Stop where the lake was begun in another order of events.

    Args:
        head: The newest publication.
        spec: Pipeline settings.

    Raises:
        ConfigError: The transaction mode, or the ordering columns of an existing table, have
            changed.
    """
    frontier = head.frontier
    if not head.batch:
        return
    begun = _begun_with(frontier)
    if spec.transactions not in begun:
        mode = begun[0].value
        message = (
            f"The lake was begun with lakeingest.transaction.mode={mode}; where it stands cannot "
            "be told in the other mode. Set it as it was, or load the lake anew (another "
            "lakeingest.target.path)."
        )
        raise ConfigError(message)
    if spec.whole or not frontier.epochs:
        return
    old = _ordering(frontier.epochs[0])
    for collection in sorted(head.tables):
        if old.of(collection) != spec.ordering.of(collection):
            message = (
                f"Table '{collection}' was begun with the ordering columns "
                f"'{','.join(old.of(collection))}', and its rows have their positions by them. Set "
                "lakeingest.source.ordering.columns (or the table's own) as they were, or load "
                "the lake anew (another lakeingest.target.path)."
            )
            raise ConfigError(message)


def _begun_with(frontier: Frontier) -> tuple[Transactions, ...]:
    """Return the modes with which a lake may have been begun."""
    if frontier.end_position:
        by_rows = is_by_rows(frontier.end_position)
        return (Transactions.BOUNDARY if by_rows else Transactions.METADATA,)
    # With an initial snapshot alone no transaction is over yet; an event on its own always is.
    if frontier.end_offset < 0:
        return (Transactions.METADATA, Transactions.BOUNDARY)
    return (Transactions.NONE,)


def _ordering(epoch: Epoch) -> Ordering:
    tables = {name: tuple(columns) for name, columns in json.loads(epoch.domain).items()}
    return Ordering(tables.pop("", ()), tables)
