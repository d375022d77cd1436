"""Maintain a whole lake, while no run is at work or beside one.

Nothing here is fenced, and nothing needs to be: each step is one commit that changes no row of a
snapshot, or removes what no kept publication needs, whoever else writes.

A publication names a version of each table. So the files that were written better are read, and
values that were erased are gone, once a publication names the new version. A table that changes
gets it with its next batch. For the others, maintenance publishes the new versions itself, if the
previous driver released the lake: it claims the lake for that moment alone. Beside a run that has
claimed the lake it does not: its own claim would end the run. (A run that has written nothing yet
has claimed nothing; it claims the lake after maintenance.)
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lakeingest.apply.as_published import as_published, refuse_other_tables
from lakeingest.apply.factory import open_ledger, open_sink, refuse_unfenced, storage_of
from lakeingest.apply.lake import LakeState, release_on_exit, take_over, with_every_table
from lakeingest.apply.maintenance.keeper import Keeper, open_keeper
from lakeingest.apply.next_publication import clock_ms
from lakeingest.apply.run_session import run_session
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.storage_errors import storage
from lakeingest.errors import FencedError
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication

_FRESH_MS = 24 * 60 * 60 * 1000
"""Age of the newest publication beyond which only an idle lake's files are removed."""


@dataclass(frozen=True, kw_only=True)
class Maintenance:
    """Result of ``maintain_lake``.

    Attributes:
        tables: Collection to the version of its table in the newest publication; empty: nothing is
            published yet.
        batch: Number of that publication.
        kept_from: Number of the first publication that is kept; 0: nothing was removed, because a
            run was killed more than a day ago.
        waiting: Tables that a run kept writing, or whose new version no publication names yet,
            because a run is at work or was killed.
    """

    tables: Mapping[str, int]
    batch: int
    kept_from: int
    waiting: tuple[str, ...] = ()


def maintain_lake(spark: SparkSession, config: PipelineConfig) -> Maintenance:
    """Do all maintenance that the configuration describes (``MaintenanceConfig``).

    Args:
        spark: Session with Delta, and with Hudi if there are Hudi tables.
        config: The pipeline.

    Raises:
        LakeingestError: The lake cannot be read, or does not fit the configuration.
    """
    own = run_session(spark)
    with storage(*storage_of(config)):
        refuse_unfenced(own, config)
        run = uuid.uuid4().hex
        ledger = open_ledger(own, config, run)
        state = LakeState(ledger.head(), {})
        config = as_published(config, state.head)
        sink = open_sink(own, config)
        keeper = open_keeper(own, config, sink)
        if not state.head.batch:
            return Maintenance(tables={}, batch=0, kept_from=0)
        state = with_every_table(state, sink)

        def is_free(name: str) -> bool:
            # Hudi's table services and a write of another process need a lock that both see.
            return config.format_of(name) == "delta" or ledger.head().released

        tidied = keeper.tidy(
            state.tables[name] for name in sorted(state.head.tables) if is_free(name)
        )
        busy = state.head.tables.keys() - tidied.keys()
        head = _publish(ledger, keeper, config, run)
        kept_from = 0
        is_fresh = head.released or clock_ms() - head.at_ms < _FRESH_MS
        # Of a table that was loaded anew meanwhile, this sink has the folder of the earlier load.
        if is_fresh and as_published(config, head) is config:
            kept_from = keeper.expire(sorted(head.tables.keys() - busy), is_free)
        return Maintenance(
            tables=dict(sorted(head.tables.items())),
            batch=head.batch,
            kept_from=kept_from,
            waiting=tuple(sorted({*keeper.publishable(LakeState(head, tidied)), *busy})),
        )


def _publish(ledger: DeltaLedger, keeper: Keeper, config: PipelineConfig, run: str) -> Publication:
    """Publish the tables' new versions, if no run is at work; return the newest publication.

    Claim and release the ledger even if there is nothing to publish: its log then has a new entry
    (``Keeper.expire``).
    """
    head = ledger.head()
    if not head.released:
        return head
    state = LakeState(head, {})
    published_state: LakeState | None = state
    with suppress(FencedError), release_on_exit(ledger, lambda: published_state):
        published_state = take_over(ledger, keeper.sink, state)
        refuse_other_tables(published_state.head, config)
        claimed = with_every_table(published_state, keeper.sink)
        new_versions = keeper.publishable(claimed)
        if new_versions and claimed.through is None:
            published_state = None
            published_state = keeper.publish(ledger, claimed, new_versions, run)
    # If a run began meanwhile, it reads the tables' newest versions. If a command chose other
    # tables, nothing is published.
    return ledger.head()
