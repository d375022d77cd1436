"""Find the epochs that the ENDs of a window open, before any of its positions is used.

Nearly every window has one domain, that of the window before; then no query runs. Where another
domain appears, the window is read again with the new epochs (``resolve.py``).
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from lakeingest.envelope.change import FAMILIES
from lakeingest.envelope.family import Domains
from lakeingest.errors import DataError
from lakeingest.ledger.publication import Frontier
from lakeingest.plan.spec import PipelineSpec
from lakeingest.position.epochs import IN_FILE_ORDER, Epoch, epoch_number, leading_component
from lakeingest.transaction.epochs import Run, epochs_after

MAX_EPOCHS = 100
"""A position has room for 65,536. Servers in turns would use them up; each slows every row."""


def find_new_epochs(
    metadata: DataFrame, domains: Collection[str], frontier: Frontier, spec: PipelineSpec
) -> tuple[Epoch, ...]:
    """Return the epochs of ``spec`` and those that a window opens.

    Args:
        metadata: The window's part of the transaction topic, decoded.
        domains: Domains of its ENDs.
        frontier: Up to where everything is applied.
        spec: Has the epochs before the window.

    Raises:
        DataError: A domain cannot follow another one, or the domains take turns.
    """
    epochs_before = spec.epochs
    if not domains or (epochs_before and _of_one_server(domains, epochs_before[-1])):
        return epochs_before
    of_family = FAMILIES[spec.connector].domains
    if of_family is None:
        return epochs_before
    follow = of_family.follow
    all_names = sorted({*domains, *(epoch.domain for epoch in epochs_before)})
    if len(all_names) > 1 and not follow:
        message = (
            f"The transactions of this {spec.connector} connector are of {len(all_names)} "
            f"databases ({', '.join(all_names[:3])}), whose positions cannot be compared. One "
            "pipeline follows one database: give each a connector with a topic.prefix of its own. "
            "The lake stands at its last publication."
        )
        raise DataError(message)
    if not follow:
        return epochs_before or (Epoch(spec.epoch, all_names[0]),)
    runs = _runs(metadata, of_family)
    epochs = epochs_after(epochs_before, runs, spec.epoch, _applied(frontier, epochs_before))
    if len(epochs) > MAX_EPOCHS:
        message = (
            f"The transaction ids of this {spec.connector} connector changed between "
            f"{len(all_names)} domains ({', '.join(all_names[:3])}) more than {MAX_EPOCHS} times."
            " One pipeline follows one server at a time and takes over when another one takes "
            "over; servers that take turns (several primaries, parallel GTID domains) need a "
            "connector each. The lake stands at its last publication."
        )
        raise DataError(message)
    return epochs


def _of_one_server(domains: Collection[str], newest: Epoch) -> bool:
    """Return whether all ENDs have the newest epoch's domain, judged by the domains alone."""
    if not newest.in_file_order:
        return set(domains) == {newest.domain}
    return set(domains) <= {newest.domain, newest.domain.removesuffix(IN_FILE_ORDER)}


def _applied(frontier: Frontier, epochs: tuple[Epoch, ...]) -> int:
    """Return the highest number applied in the newest epoch."""
    position = frontier.end_position
    if not position or not epochs or epoch_number(position) != epochs[-1].number:
        return 0
    # The position of an END is one above its rows.
    return max(0, leading_component(position) - 1)


def _runs(metadata: DataFrame, domains: Domains) -> list[Run]:
    """Return the runs of records of one domain, in the order of offsets.

    A BEGIN counts like an END: the last record of a run may be a BEGIN without END (MariaDB's DDL).
    """
    id_ = F.col("id")
    by_offset = Window.orderBy("offset")
    is_first = F.coalesce(F.col("_domain") != F.lag("_domain").over(by_offset), F.lit(True))
    rows = (
        metadata.where(F.col("status").isin("BEGIN", "END") & ~F.col("malformed"))
        .select(
            "offset", domains.domain(id_).alias("_domain"), domains.number(id_).alias("_number")
        )
        .where(F.col("_number").isNotNull())
        .withColumn("_run", F.sum(is_first.cast("int")).over(by_offset))
        .groupBy("_run", "_domain")
        .agg(
            F.min("_number").alias("lowest"),
            F.max("_number").alias("highest"),
            F.min("offset").alias("first"),
        )
        .orderBy("first")
        .limit(_MOST_RUNS)
        .collect()
    )
    return [Run(row["_domain"], row["lowest"], row["highest"], row["first"]) for row in rows]


_MOST_RUNS = 10_000
"""Runs to read: more than open an epoch, because a connector may go back to an earlier domain."""
