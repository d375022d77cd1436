"""Find the epochs that the ENDs of a window open, before a position of theirs is relied on.

Nearly every window holds one domain, that of the window before; then nothing is asked. Where
another one appears, what was read is read again with the epochs known (``window.py``).
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
"""A position names 65,536; servers that take turns would use them up, and each slows every row."""


def find_new_epochs(
    metadata: DataFrame, domains: Collection[str], frontier: Frontier, spec: PipelineSpec
) -> tuple[Epoch, ...]:
    """Return the epochs of ``spec`` and those that a window opens.

    Args:
        metadata: The window's part of the transaction topic, decoded.
        domains: Those of its ENDs.
        frontier: Up to where everything is applied.
        spec: Has the epochs known so far.

    Raises:
        DataError: The domains cannot follow one another, or take turns.
    """
    known = spec.epochs
    if not domains or (known and _of_one_server(domains, known[-1])):
        return known
    of_family = FAMILIES[spec.connector].domains
    if of_family is None:
        return known
    follow = of_family.follow
    everything = sorted({*domains, *(epoch.domain for epoch in known)})
    if len(everything) > 1 and not follow:
        message = (
            f"The transactions of this {spec.connector} connector are of {len(everything)} "
            f"databases ({', '.join(everything[:3])}), whose positions cannot be compared. One "
            "pipeline follows one database: give each a connector with a topic.prefix of its own. "
            "The lake stands at its last publication."
        )
        raise DataError(message)
    if not follow:
        return known or (Epoch(spec.epoch, everything[0]),)
    runs = _runs(metadata, of_family)
    epochs = epochs_after(known, runs, spec.epoch, _applied(frontier, known))
    if len(epochs) > MAX_EPOCHS:
        message = (
            f"The transaction ids of this {spec.connector} connector changed between "
            f"{len(everything)} domains ({', '.join(everything[:3])}) more than {MAX_EPOCHS} times."
            " One pipeline follows one server at a time and takes over when another one takes "
            "over; servers that take turns (several primaries, parallel GTID domains) need a "
            "connector each. The lake stands at its last publication."
        )
        raise DataError(message)
    return epochs


def _of_one_server(domains: Collection[str], newest: Epoch) -> bool:
    """Tell whether all is of the newest epoch's domain, by the domains alone."""
    if not newest.in_file_order:
        return set(domains) == {newest.domain}
    return set(domains) <= {newest.domain, newest.domain.removesuffix(IN_FILE_ORDER)}


def _applied(frontier: Frontier, known: tuple[Epoch, ...]) -> int:
    """Return the highest number applied in the newest known epoch."""
    place = frontier.end_position
    if not place or not known or epoch_number(place) != known[-1].number:
        return 0
    # An END lies one above its rows.
    return max(0, leading_component(place) - 1)


def _runs(metadata: DataFrame, domains: Domains) -> list[Run]:
    """Return the runs of one domain, in the order of offsets.

    BEGINs count as ENDs do: the last one before a seam may be one without END (MariaDB's DDL).
    """
    id_ = F.col("id")
    by_offset = Window.orderBy("offset")
    changed = F.coalesce(F.col("_domain") != F.lag("_domain").over(by_offset), F.lit(True))
    rows = (
        metadata.where(F.col("status").isin("BEGIN", "END") & ~F.col("malformed"))
        .select(
            "offset", domains.domain(id_).alias("_domain"), domains.number(id_).alias("_number")
        )
        .where(F.col("_number").isNotNull())
        .withColumn("_run", F.sum(changed.cast("int")).over(by_offset))
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
"""Runs that are looked at: more than open an epoch, as a connector goes back over seams."""
