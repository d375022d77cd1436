"""Retire a table, or take it up again: one publication, claimed and fenced like any other.

The table's files stay untouched. Its state is read only if the table exists, so a table whose
folder is gone can be retired. Retiring reads no source: the table's topic may be gone, too.

The publication gets the batch number that the table commits of a killed run have. While such a
table is ahead of the ledger, the request is refused: afterwards nothing would show that it is
ahead.
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
    release_on_exit,
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
from lakeingest.apply.run_session import run_session
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
    """Result of ``retire_table``.

    Attributes:
        batch: Number of the publication that records it.
        table: The table.
        waiting: Records of its topic that the next run reads; None: the table was retired.
    """

    batch: int
    table: str
    waiting: int | None = None


@dataclass(frozen=True)
class _Writer:
    """What writes the publication: ledger and sink of the lake, and the identifier of the run."""

    ledger: DeltaLedger
    sink: Sink
    run: str


def retire_table(
    spark: SparkSession, config: PipelineConfig, table: str, *, undo: bool = False
) -> Retirement:
    """Publish the lake without a table; from then on its topic is not read.

    Args:
        spark: Session with Delta, and with Hudi if there are Hudi tables.
        config: The pipeline.
        table: The table, as the source names it.
        undo: Take a retired table up again, from the offsets at which its topic was left. It must
            be the same table at the source: no event reports the rows that a DROP removed, so they
            would stay.

    Raises:
        UsageError: The table does not exist, or cannot be retired or taken up; see ``retirement``.
        TransientError: A run must finish first, or another one is at work.
        DataError: With ``undo``: its topic no longer holds everything that came since.
        LakeingestError: Lake or source cannot be read, or do not fit the configuration.
    """
    own = run_session(spark)
    with storage(*storage_of(config)):
        refuse_unfenced(own, config)
        run = uuid.uuid4().hex
        writer = _Writer(open_ledger(own, config, run), open_sink(own, config), run)
        head = writer.ledger.head()
        if undo:
            return _take_up(own, config, writer, head, table)
        refuse_retiring(head, table, config.source.names)
        state = LakeState(head, {})
        table_state = writer.sink.state(table)
        adopted_at = table_state.note.adopted_at if table_state else ""
        if table_state:
            state = replace(state, tables={table: table_state})

        def without(claimed: Publication) -> Publication:
            return without_table(claimed, table, config.source.names, run, adopted_at)

        return Retirement(_publish(writer, state, table, without), table)


def _take_up(
    spark: SparkSession, config: PipelineConfig, writer: _Writer, head: Publication, name: str
) -> Retirement:
    """Take a retired table up again."""
    refuse_undoing(head, name)
    retired = head.retired[name]
    head_with_table = replace(head, tables={**head.tables, name: retired.version})
    lake = with_tables(LakeState(head_with_table, {}), writer.sink, [name])
    path = config.folders.named([name]).get(name, name)
    publication = with_table(head, name, writer.run, shown=False, path=path)
    source_config = without_retired(config, publication).source
    with closing(open_source(spark, source_config)) as source:
        count = waiting(retired, source.watermarks([retired.topic]))
        # Check that the next run can read on from there, before the publication says so.
        rules = log_rules(source_config)
        plan_window_ranges(
            source, source_config.ends_topic, publication.frontier, 2**62, rules=rules
        )

    def with_it(claimed: Publication) -> Publication:
        return with_table(claimed, name, writer.run, shown=not count, path=path)

    state = LakeState(head, lake.tables)
    return Retirement(_publish(writer, state, name, with_it), name, count)


def _publish(
    writer: _Writer,
    state: LakeState,
    name: str,
    publication_after: Callable[[Publication], Publication],
) -> int:
    """Take the lake over and publish; return the number of the publication.

    Args:
        writer: Ledger to claim, and sink of the tables.
        state: The head, and the table's state if the table exists.
        name: The table; it does not matter whether it is ahead of the ledger.
        publication_after: Returns the publication that follows the newest one.
    """
    ledger, sink = writer.ledger, writer.sink
    if not state.head.released:
        head = state.head
        other_tables = {other: at for other, at in head.tables.items() if other != name}
        with_others = with_every_table(
            replace(state, head=replace(head, tables=other_tables)), sink
        )
        state = replace(with_others, head=head)
    published_state: LakeState | None = state
    with release_on_exit(ledger, lambda: published_state):
        _refuse_interrupted(state, name)
        claimed = take_over(ledger, sink, state)
        published_state = claimed
        if not same_progress(_without(state, name), _without(claimed, name)):
            message = "Another run published meanwhile, so nothing was changed; run again."
            raise TransientError(message)
        _refuse_interrupted(claimed, name)
        publication = publication_after(claimed.head)
        published_state = None
        failpoint("4.before-publication")
        ledger.publish_alone(publication)
        failpoint("4.after-publication")
        published_state = _without(claimed.published(publication, {}), name)
    return publication.batch


def _without(state: LakeState, name: str) -> LakeState:
    """Return the lake's state without one table."""
    return replace(state, tables={other: at for other, at in state.tables.items() if other != name})


def _refuse_interrupted(state: LakeState, name: str) -> None:
    """Stop where a killed run wrote other tables and did not publish them.

    Raises:
        TransientError: A run did.
    """
    if _without(state, name).through is not None:
        message = (
            "A run was interrupted after it wrote tables and before it published them, and only a "
            "run can finish that. Run the pipeline (lakeingest run), then this again. If the run "
            f"waits for rows that went with the topic of '{name}', give it "
            f"--set lakeingest.transaction.filtered.collections={name} this once."
        )
        raise TransientError(message)
