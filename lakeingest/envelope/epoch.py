"""The epoch of rows and ENDs, from their own coordinates (``position/epochs.py`` argues why)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakeingest.envelope.family import Domains, Family, is_streamed
from lakeingest.position.epochs import Epoch


def row_epoch(family: Family, base: int, epochs: Sequence[Epoch]) -> Column:
    """Return the epoch of an envelope row.

    A row of a domain that no END has told of yet is in an epoch to come: its transaction is not
    over, and until it is no position of it is kept.

    Args:
        family: The connector's.
        base: The epoch of the initial snapshot, and of all where domains make none.
        epochs: Those known, by number.
    """
    domains = family.domains
    if domains is None or not domains.follow or not epochs:
        return F.lit(base)
    placed = _epoch(domains, domains.row_id(), epochs)
    return F.when(is_streamed(), placed).otherwise(F.lit(base))


def end_epoch(family: Family, base: int, epochs: Sequence[Epoch], id_: Column) -> Column:
    """Return the epoch of an END, over its id; as ``row_epoch``."""
    domains = family.domains
    if domains is None or not domains.follow or not epochs:
        return F.lit(base)
    return _epoch(domains, id_, epochs)


def _epoch(domains: Domains, id_: Column, epochs: Sequence[Epoch]) -> Column:
    to_come = F.lit(epochs[-1].number + 1)
    found: Column | None = None
    # Most rows are of the newest one; one in file order has what is left of its server.
    in_file_order = any(epoch.in_file_order for epoch in epochs)
    for epoch in epochs if in_file_order else reversed(epochs):
        inside = domains.is_in(id_, epoch.domain)
        if epoch.lowest > 0:
            inside = inside & (domains.number(id_) >= F.lit(epoch.lowest))
        if epoch.highest is not None:
            inside = inside & (domains.number(id_) <= F.lit(epoch.highest))
        number = F.lit(epoch.number)
        found = F.when(inside, number) if found is None else found.when(inside, number)
    return to_come if found is None else found.otherwise(to_come)
