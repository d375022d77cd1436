"""Find the ENDs that a restarted connector sent again, where no row of theirs shows it.

Where rows give ENDs their positions, the rows of an END that comes again put it below the frontier.
They may be read without it, though, in the window before: they are passed then, for they were
applied, and END counts rows that never come. The transaction topic shows what it is: it has an END
with the same id before this window. Each END there was released.

Rejected: to read such rows again until their END comes. Rows that are read again because others in
their partition wait have no END in the window, either, and theirs was passed for good. Rejected: to
keep the ids of released transactions in the ledger: the topic has them.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import functions as F

from lakeingest.apply.window.gather import WindowFrames
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.window import PipelineLog
from lakeingest.envelope.change import FAMILIES
from lakeingest.plan.end_positions import some_positions_from_rows
from lakeingest.plan.window import window_metadata
from lakeingest.transaction.completeness import counts

_LOOK_BACK = 1_000_000
"""Records of the transaction topic before the window in which to look for the END.

A connector that starts anew goes back to the offsets that it stored last, by default a minute ago.
"""


def ends_again(log: PipelineLog, ranges: WindowRanges, frames: WindowFrames) -> frozenset[int]:
    """Return the offsets of the window's ENDs that lack all of their rows and have come before.

    Args:
        log: The log.
        ranges: The window's ranges.
        frames: The window's frames.

    Raises:
        UnavailableError: See ``Source.watermarks``.
    """
    part = ranges.transactions
    if part is None or not some_positions_from_rows(log.spec):
        return frozenset()
    start = max(log.source.watermarks([part.topic])[part.place].earliest, part.start - _LOOK_BACK)
    if start >= part.start:
        return frozenset()
    counted = counts(frames.boundaries, log.counted).where(F.col("expected") > 0)
    with_rows = frames.changes.where(F.col("end_offset").isNotNull())
    alone = frames.boundaries.join(counted, "end_offset", "left_semi").join(
        with_rows, "end_offset", "left_anti"
    )
    if alone.isEmpty():
        return frozenset()
    records = log.read_and_learn([replace(part, start=start, end=part.start)])
    earlier = window_metadata(records, log.spec)
    released = earlier.where(F.col("status") == "END").select(
        FAMILIES[log.spec.connector].transaction_key(F.col("id")).alias("transaction_key")
    )
    # What a connector sends again of its last minute, without its rows: a handful.
    again = alone.join(released, "transaction_key", "left_semi").select("end_offset").collect()
    return frozenset(row["end_offset"] for row in again)
