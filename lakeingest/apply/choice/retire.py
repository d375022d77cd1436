"""Retire a table, or take it up again: one publication (``table_choice.py``).

The table's files stay untouched. Its state is read only if the table exists, so a table whose
folder is gone can be retired. Retiring reads no source: the table's topic may be gone, too.
"""

from __future__ import annotations

import uuid
from contextlib import closing
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.apply.as_published import as_published
from lakeingest.apply.choice.retirement import (
    OWN_LAKE,
    refuse_retiring,
    refuse_undoing,
    refuse_unplaced_ends,
    waiting,
    with_table,
    without_table,
)
from lakeingest.apply.choice.table_choice import TableChoice
from lakeingest.apply.choice.unnamed_rows import refuse_unnamed_rows
from lakeingest.apply.factory import open_ledger, open_sink, refuse_unfenced, storage_of
from lakeingest.apply.lake import LakeState, with_tables
from lakeingest.apply.run_session import run_session
from lakeingest.apply.window.offset_ranges import plan_all_ranges
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.storage_errors import storage
from lakeingest.ledger.publication import Publication
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
        ledger = open_ledger(own, config, run)
        head = ledger.head()
        config = as_published(config, head)
        filtered = config.uncounted_collections
        choice = TableChoice(ledger, open_sink(own, config), (table,), filtered=filtered)
        if undo:
            return _take_up(own, config, choice, head, run)
        refuse_retiring(head, table, config.source.names)
        state = LakeState(head, {})
        table_state = choice.sink.state(table)
        adopted_at = table_state.note.adopted_at if table_state else ""
        if table_state:
            state = replace(state, tables={table: table_state})

        def without(claimed: Publication) -> Publication:
            return without_table(claimed, table, config.source.names, run, adopted_at)

        return Retirement(choice.publish(state, without), table)


def _take_up(
    spark: SparkSession, config: PipelineConfig, choice: TableChoice, head: Publication, run: str
) -> Retirement:
    """Take a retired table up again."""
    (name,) = choice.names
    refuse_undoing(head, name)
    retired = head.retired[name]
    head_with_table = replace(head, tables={**head.tables, name: retired.version})
    lake = with_tables(LakeState(head_with_table, {}), choice.sink, [name])
    path = config.folders.named([name]).get(name, name)
    publication = with_table(head, name, run, shown=False, path=path)
    count, has_rows = _unread_records(spark, as_published(config, publication), publication, lake)

    def with_it(claimed: Publication) -> Publication:
        return with_table(claimed, name, run, shown=not has_rows, path=path)

    return Retirement(choice.publish(LakeState(head, lake.tables), with_it), name, count)


def _unread_records(
    spark: SparkSession, config: PipelineConfig, publication: Publication, lake: LakeState
) -> tuple[int, bool]:
    """Return how many records of a table the next run reads, and whether a row is among them.

    Args:
        spark: Session of the command.
        config: The pipeline, as ``publication`` completes it.
        publication: The one that takes the table up again.
        lake: State before it, with the table's.

    Raises:
        UsageError: Its rows cannot be told from others.
        DataError: The next run could not read on from there.
    """
    (state,) = lake.tables.values()
    name = state.note.collection
    retired = lake.head.retired[name]
    # Its topic must be the one that was left, even if its rows need not arrive.
    uncounted = tuple(other for other in config.uncounted_collections if other != name)
    config = config.model_copy(update={"uncounted_collections": uncounted})
    with closing(open_source(spark, config.source)) as source:
        count = waiting(retired, source.watermarks([retired.topic]))
        ranges = plan_all_ranges(source, config, publication.frontier)
        parts = [part for part in ranges.data if part.topic == retired.topic]
        has_rows = not source.read(parts).where(F.col("value").isNotNull()).isEmpty()
        if has_rows and config.source.is_whole:
            refuse_unplaced_ends(config.source, publication.frontier, OWN_LAKE)
            refuse_unnamed_rows(config, source, parts, [state], OWN_LAKE)
    return count, has_rows
