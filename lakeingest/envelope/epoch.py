"""Return the epoch of rows and ENDs, from their own coordinates (``position/epochs.py``: why)."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakeingest.envelope.family import Domains, Family, is_streamed
from lakeingest.position.epochs import Epoch


def row_epoch(family: Family, base: int, epochs: Sequence[Epoch]) -> Column:
    """Return the epoch of an envelope row.

    If no END of the row's domain was read yet, the row is in a future epoch: its transaction is not
    over, and no position of it is stored before it is.

    Args:
        family: The connector's family.
        base: The epoch of the initial snapshot, and of all rows where domains make no epochs.
        epochs: The known epochs, by number.
    """
    domains = family.domains
    if domains is None or not domains.follow or not epochs:
        return F.lit(base)
    placed = _epoch(domains, domains.row_id(), epochs)
    return F.when(is_streamed(), placed).otherwise(F.lit(base))


def end_epoch(family: Family, base: int, epochs: Sequence[Epoch], id_: Column) -> Column:
    """Return the epoch of an END, over its id; otherwise as ``row_epoch``."""
    domains = family.domains
    if domains is None or not domains.follow or not epochs:
        return F.lit(base)
    return _epoch(domains, id_, epochs)


def _epoch(domains: Domains, id_: Column, epochs: Sequence[Epoch]) -> Column:
    future_epoch = F.lit(epochs[-1].number + 1)
    epoch_number: Column | None = None
    # Most rows are of the newest epoch. An epoch in file order holds the rest of its server.
    in_file_order = any(epoch.in_file_order for epoch in epochs)
    for epoch in epochs if in_file_order else reversed(epochs):
        inside = domains.is_in(id_, epoch.domain)
        if epoch.lowest > 0:
            inside = inside & (domains.number(id_) >= F.lit(epoch.lowest))
        if epoch.highest is not None:
            inside = inside & (domains.number(id_) <= F.lit(epoch.highest))
        number = F.lit(epoch.number)
        epoch_number = (
            F.when(inside, number) if epoch_number is None else epoch_number.when(inside, number)
        )
    return future_epoch if epoch_number is None else epoch_number.otherwise(future_epoch)
