"""Retire a table, or take it up again: one publication, claimed and fenced like any writer's.

The table's files are not touched; it is looked at if it is there, so a table whose folder is gone
already can be retired. No source is asked to retire one: its topic may be gone, too.

A publication has the number that the tables' commits of a killed run have. While such a table is
ahead of the ledger it is refused, for afterwards nobody could tell that it is.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from lakeingest.apply.factory import open_ledger, open_sink, refuse_unfenced, storage_of
from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.lake import (
    LakeState,
    handed_over,
    same_progress,
    take_over,
    with_every_table,
    with_tables,
)
from lakeingest.apply.retirement import (
    refuse_retiring,
    refuse_undoing,
    waiting,
    with_table,
    without_retired,
    without_table,
)
from lakeingest.apply.run import run_session
from lakeingest.apply.window.continuity import log_rules
from lakeingest.apply.window.offset_ranges import plan_window_ranges
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.storage_errors import storage
from lakeingest.errors import TransientError
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication
from lakeingest.sink.contract import Sink
from lakeingest.source import open_source


@dataclass(frozen=True)
class Retirement:
    """What ``retire`` did.

    Attributes:
        batch: The publication that says so.
        table: The table.
        waiting: Records of its topic that the next run reads; null: it was retired.
    """

    batch: int
    table: str
    waiting: int | None = None


def retire_table(
    spark: SparkSession, config: PipelineConfig, table: str, *, undo: bool = False
) -> Retirement:
    """Publish the lake without a table; from then on its topic is not read.

    Args:
        spark: Session with Delta, and Hudi if tables are.
        config: The pipeline.
        table: The table, as the source names it.
        undo: Take a retired table up again, from where its topic was left. It must be the same
            table at the source: rows that went with a DROP are told by no event and would stay.

    Raises:
        UsageError: There is no such table, or it cannot be; see ``retirement``.
        TransientError: A run must finish first, or another one is at work.
        DataError: To take it up again: its topic does not hold all that came since.
        LakeingestError: Lake or source cannot be reached, or do not fit the configuration.
    """
    own = run_session(spark)
    with storage(*storage_of(config)):
        refuse_unfenced(own, config)
        run = uuid.uuid4().hex
        ledger, sink = open_ledger(own, config, run), open_sink(own, config)
        head = ledger.head()
        if undo:
            return _taken_up(own, config, ledger, sink, head, table, run)
        refuse_retiring(head, table, config.source.names)
        state = LakeState(head, {})
        found = sink.state(table)
        adopted_at = found.note.adopted_at if found else ""
        if found:
            state = replace(state, tables={table: found})

        def without(taken: Publication) -> Publication:
            return without_table(taken, table, config.source.names, run, adopted_at)

        return Retirement(_published(ledger, sink, state, table, without), table)


def _taken_up(
    spark: SparkSession,
    config: PipelineConfig,
    ledger: DeltaLedger,
    sink: Sink,
    head: Publication,
    name: str,
    run: str,
) -> Retirement:
    refuse_undoing(head, name)
    gone = head.retired[name]
    shown = replace(head, tables={**head.tables, name: gone.version})
    found = with_tables(LakeState(shown, {}), sink, [name])
    path = config.folders.named([name]).get(name, name)
    planned = with_table(head, name, run, shown=False, path=path)
    source_config = without_retired(config, planned).source
    with closing(open_source(spark, source_config)) as source:
        count = waiting(gone, source.watermarks([gone.topic]))
        # Whether the next run can go on from there, before it is said to.
        rules = log_rules(source_config)
        plan_window_ranges(source, source_config.ends_topic, planned.frontier, 2**62, rules=rules)

    def with_it(taken: Publication) -> Publication:
        return with_table(taken, name, run, shown=not count, path=path)

    state = LakeState(head, found.tables)
    return Retirement(_published(ledger, sink, state, name, with_it), name, count)


def _published(
    ledger: DeltaLedger,
    sink: Sink,
    state: LakeState,
    name: str,
    publication_after: Callable[[Publication], Publication],
) -> int:
    """Take the lake over and publish; returns the number of the publication.

    Args:
        ledger: Is claimed.
        sink: Where the tables are.
        state: The head, and the table's state if it is there.
        name: The table: whether it is ahead of the ledger is of no matter.
        publication_after: Returns what is published after the newest publication.
    """
    if not state.head.released:
        head = state.head
        rest = {other: at for other, at in head.tables.items() if other != name}
        looked = with_every_table(replace(state, head=replace(head, tables=rest)), sink)
        state = replace(looked, head=head)
    settled: LakeState | None = state
    with handed_over(ledger, lambda: settled):
        _refuse_interrupted(state, name)
        taken = take_over(ledger, sink, state)
        settled = taken
        if not same_progress(_without(state, name), _without(taken, name)):
            message = "Another run published meanwhile, so nothing was changed; run again."
            raise TransientError(message)
        _refuse_interrupted(taken, name)
        publication = publication_after(taken.head)
        settled = None
        failpoint("4.before-publication")
        ledger.publish_alone(publication)
        failpoint("4.after-publication")
        settled = _without(taken.published(publication, {}), name)
    return publication.batch


def _without(state: LakeState, name: str) -> LakeState:
    """Return the lake's state but for one table."""
    return replace(state, tables={other: at for other, at in state.tables.items() if other != name})


def _refuse_interrupted(state: LakeState, name: str) -> None:
    """Stop where a killed run wrote other tables and did not publish them.

    Raises:
        TransientError: It did.
    """
    if _without(state, name).through is not None:
        message = (
            "A run was interrupted after it wrote tables and before it published them, and only a "
            "run can finish that. Run the pipeline (lakeingest run), then this again. If the run "
            f"waits for rows that went with the topic of '{name}', give it "
            f"--set lakeingest.transaction.filtered.collections={name} this once."
        )
        raise TransientError(message)
