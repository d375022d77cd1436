"""Read one window and cut its batches; read it again if it was read without knowing enough.

A window may itself show what its reading depends on (schemas, epochs, a new snapshot). That is
rare, so it is read at once and, if need be, once more. To ask before each reading would read every
window twice.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pyspark.sql import DataFrame

from lakeingest.apply.table.record_schemas import Schemas
from lakeingest.apply.window.decide import Replan, Resnapshot
from lakeingest.apply.window.offset_ranges import EVERYTHING, WindowRanges, plan_window_ranges
from lakeingest.apply.window.per_event import cut_events
from lakeingest.apply.window.resnapshot_cut_over import SnapshotCutOver, cut_over
from lakeingest.apply.window.whole_transactions import cut_whole_transactions
from lakeingest.apply.window.window import Bounds, PipelineLog, Window
from lakeingest.errors import DataError
from lakeingest.ledger.publication import Frontier
from lakeingest.source.contract import Source


def read_window(
    log: PipelineLog, frontier: Frontier, bounds: Bounds, ranges: WindowRanges
) -> Window:
    """Read a window and cut its batches; its rows stay checkpointed while the window is referenced.

    Records with a schema that was not known yet are read again where that matters. If a window ends
    in the middle of a new snapshot, everything available is read instead of ``ranges``.

    Args:
        log: The log.
        frontier: Up to where everything is applied.
        bounds: Bounds of batches, and what the settings accept.
        ranges: What to read.

    Raises:
        DataError: What the window holds cannot be applied.
    """
    schemas = log.schemas
    if not schemas.readable:
        schemas.learn(_edges(log.source, ranges))
    log = replace(log, spec=replace(log.spec, epoch=frontier.epoch, epochs=frontier.epochs))
    cut_at: SnapshotCutOver | None = None
    while True:
        cut_window = cut_whole_transactions if log.spec.whole else cut_events
        try:
            reading = cut_window(log, ranges, frontier, bounds)
        except DataError:
            if not (schemas.needed and schemas.learn(log.source.read(ranges.all))):
                raise
            continue
        if isinstance(reading, Replan):
            again = log.spec.ends_again | reading.ends_again
            log = replace(log, spec=replace(log.spec, epochs=reading.epochs, ends_again=again))
        elif isinstance(reading, Resnapshot) and not ranges.whole:
            ranges = plan_window_ranges(
                log.source, log.transaction_topic, frontier, EVERYTHING, rules=bounds.log
            )
        elif isinstance(reading, Resnapshot):
            cut_at = cut_over(reading.stretches, ranges, frontier, reading.ends)
            ranges = cut_at.before(ranges)
        else:
            new = learn_schemas(schemas, reading.contents.tags(), log.source, ranges)
            if not (new and schemas.needed):
                return replace(reading, cut_over=cut_at)


def learn_schemas(
    schemas: Schemas, tags: Collection[bytes], source: Source, ranges: WindowRanges
) -> bool:
    """Learn the schemas with these tags; return whether any was new.

    Most windows have one schema per table, or an old and a new one: their first and last records
    show all of them.
    """
    new = schemas.lacks(tags) and schemas.learn(_edges(source, ranges))
    if schemas.lacks(tags):
        new |= schemas.learn(source.read(ranges.all))
    return new


def _edges(source: Source, ranges: WindowRanges) -> DataFrame:
    # Two reads: a source takes one range of a partition at a time.
    first, last = ranges.edges
    return source.read(first).unionByName(source.read(last))
