"""Find between which source transactions another writer's checkpoints lie: the lake's frontier.

Hudi Streamer counts offsets, one topic at a time, so its checkpoints cut transactions: its tables
may hold a part of one. So two places count. The tables are *wholly* at the last END before the
first change behind a checkpoint. They are *partly ahead* up to the last transaction of which they
hold any change. A crash between commits and publication makes the same state, and the protocol
handles it: everything behind that END is read again, and the first publication includes at least
all that the tables hold (``lake.py``). The changes that are read again have no effect.

A partition is in commit order, except where a connector sent transactions again. So the pipeline
reads it from behind the last change that is wholly in the tables; every repetition ends before.

A live source may still send rows of a transaction after its END. So ENDs of the last
``transaction.timeout`` do not count as whole: a few minutes of events are read again, once.
Rejected: count the rows of these ENDs. That needs every row back to the transaction of the least
busy partition.

Only the records around the checkpoints are read; more of them if these do not go back far enough.
Limit: a repetition of more than ``DEPTH`` records just before a checkpoint can hide that the tables
are further ahead. Then the first publication may show a part of the transactions behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.window.window import PipelineLog
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.envelope.family import SNAPSHOT_END_MARKS
from lakeingest.errors import ConfigError, DataError, TransientError
from lakeingest.ledger.publication import Frontier
from lakeingest.plan import checkpoint_alignment as plan
from lakeingest.plan.end_positions import without_open_transactions
from lakeingest.plan.window import window_boundaries, window_changes, window_metadata
from lakeingest.position import after
from lakeingest.source.bounds import check_retained
from lakeingest.source.contract import OffsetRange, TopicPartition, Watermarks
from lakeingest.transaction.completeness import incomplete_by_incarnation, incomplete_transactions

DEPTH = 20_000
"""Records of each partition that are read first, on either side of its checkpoint."""

_GROWTH = 8


@dataclass(frozen=True)
class Alignment:
    """Place of another writer's tables between source transactions.

    Attributes:
        frontier: Every transaction up to it is wholly in the tables.
        through: END of the last transaction of which the tables hold a change; None: they hold no
            change above the frontier.
        position: Position above every change that the tables may hold.
    """

    frontier: Frontier
    through: int | None
    position: str


def align_checkpoints(
    log: PipelineLog, checkpoints: Mapping[TopicPartition, int], margin_seconds: int | None
) -> Alignment:
    """Find the place of the tables with these checkpoints between source transactions.

    Args:
        log: The log of the pipeline; the search may learn more schemas of its records.
        checkpoints: The next offset of each partition of the tables' topics.
        margin_seconds: How long rows may arrive after their END (seconds); None: none arrives late.

    Raises:
        ConfigError: The writer has not finished its initial snapshot.
        DataError: The log no longer holds the records that are needed.
        TransientError: The tables hold a part of a transaction that is not over yet.
    """
    transaction_topic, source = log.transaction_topic or "", log.source
    (place_of_ends, bounds), *_ = source.watermarks([transaction_topic]).items()
    markers = OffsetRange(
        place_of_ends.topic, place_of_ends.partition, bounds.earliest, bounds.high
    )
    marks = source.watermarks(sorted({place.topic for place in checkpoints}))
    for place, offset in checkpoints.items():
        check_retained([OffsetRange(place.topic, place.partition, offset, offset)], marks)
    topic = window_metadata(log.read_and_learn([markers]), log.spec)
    ends = local_checkpoint(without_open_transactions(window_boundaries(topic, log.spec)))
    search = _Search(log, checkpoints, marks, ends, margin_seconds)
    depth = DEPTH
    while True:
        result = search.at(depth)
        if not result.short:
            break
        depth *= _GROWTH
    frontier = result.frontier
    if frontier.end_offset < 0 < bounds.earliest:
        raise _retention_error(transaction_topic, "the ENDs of")
    unproven = [place for place, start in result.unproven.items() if start > 0]
    if unproven and result.through is not None:
        _refuse_incomplete(search, result, unproven)
    if result.unended:
        message = (
            f"The tables hold changes of {result.unended} rows whose transaction has no END in "
            f"'{transaction_topic}' yet. Nothing was written. Run again in a moment; if it does "
            "not go away, the connector has stopped or writes its ENDs to another topic "
            "(lakeingest.transaction.topic)."
        )
        raise (DataError if margin_seconds is None else TransientError)(message)
    return Alignment(frontier, result.through, result.position)


@dataclass(frozen=True)
class _Result:
    """Result of a search of one depth; ``short``: the depth is too small.

    ``unproven``: partitions that retain no change below the frontier, with the offset that the
    search starts at.
    """

    frontier: Frontier
    through: int | None
    position: str
    unended: int
    short: bool
    unproven: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class _Search:
    """Searches the records around the checkpoints."""

    log: PipelineLog
    checkpoints: Mapping[TopicPartition, int]
    marks: Mapping[TopicPartition, Watermarks]
    ends: DataFrame
    margin_seconds: int | None

    def changes(self, begin: Callable[[TopicPartition], int], ahead: int | None) -> DataFrame:
        """Read each partition from ``begin`` to ``ahead`` records behind its checkpoint, or all."""
        ranges = []
        for place, offset in self.checkpoints.items():
            high = self.marks[place].high
            end = high if ahead is None else min(high, offset + ahead)
            ranges.append(OffsetRange(place.topic, place.partition, begin(place), end))
        return window_changes(self.log.read_and_learn(ranges), self.log.spec)

    def at(self, depth: int) -> _Result:
        """Search ``depth`` records on either side of each checkpoint."""

        def begin(place: TopicPartition) -> int:
            return max(self.marks[place].earliest, self.checkpoints[place] - depth)

        checkpoints = {(place.topic, place.partition): at for place, at in self.checkpoints.items()}
        with_sides = local_checkpoint(
            plan.mark_before_checkpoint(self.changes(begin, depth), checkpoints)
        )
        first_behind = self._first_behind(with_sides)
        last_end = plan.last_whole_end(self.ends, first_behind, self.margin_seconds).first()
        # Without an END, all streamed changes lie above, and the initial snapshot lies below.
        position = last_end["end_position"] if last_end else after(self.log.spec.epoch)
        offsets: dict[str, dict[int, int]] = {}
        short, unproven = False, {}
        below = {
            TopicPartition(row["topic"], row["partition"]): row["offset"]
            for row in plan.last_below(with_sides, position).collect()
        }
        for place in self.checkpoints:
            last = below.get(place)
            if last is None:
                short = short or begin(place) > self.marks[place].earliest
                unproven[place] = begin(place)
            start = begin(place) if last is None else last + 1
            offsets.setdefault(place.topic, {})[place.partition] = start
        partial_transactions = plan.partly_applied(with_sides, self.ends, position).first()
        committed = last_end["committed_at"] if last_end else None
        return _Result(
            Frontier(
                end_offset=last_end["end_offset"] if last_end else -1,
                end_position=position,
                offsets=offsets,
                committed_ms=int(committed.timestamp() * 1000) if committed else 0,
                streaming=True,
            ),
            partial_transactions["through"] if partial_transactions else None,
            (partial_transactions["end_position"] if partial_transactions else None) or position,
            int(partial_transactions["unended"] or 0) if partial_transactions else 0,
            short,
            unproven,
        )

    def _first_behind(self, sided: DataFrame) -> str | None:
        """Return the lowest streamed position behind the checkpoints; None: there is none.

        Raises:
            ConfigError: The initial snapshot is not wholly before the checkpoints.
        """
        parts = plan.partition_summaries(sided).collect()
        loading_topics = sorted({row["topic"] for row in parts if row["loading"]})
        if not loading_topics and not any(row["streamed"] for row in parts) and self.ends.isEmpty():
            marks: dict[str, set[str]] = {}
            for row in parts:
                marks.setdefault(row["topic"], set()).add(row["mark"] or "")
            loading_topics = sorted(
                t
                for t, table_marks in marks.items()
                if table_marks != {""} and not table_marks & SNAPSHOT_END_MARKS
            )
        if loading_topics:
            message = (
                f"Hudi Streamer has not finished the initial snapshot: rows of it lie behind its "
                f"checkpoint in {', '.join(loading_topics)}. Nothing was written. Let it go on "
                "until it has read them, then run again."
            )
            raise ConfigError(message)
        return min((row["first"] for row in parts if row["first"]), default=None)


def _refuse_incomplete(search: _Search, result: _Result, unproven: list[TopicPartition]) -> None:
    """Raise an error if the log no longer retains rows that must be read again.

    Raises:
        DataError: Some rows are missing.
    """
    offsets = result.frontier.offsets
    # Without a checkpoint Spark plans the counts of a handful of rows for a minute (measured).
    rows = local_checkpoint(
        search.changes(lambda place: offsets[place.topic][place.partition], None)
    )
    ends = search.ends.where(
        (F.col("end_position") > F.lit(result.frontier.end_position))
        & (F.col("end_offset") <= F.lit(result.through or -1))
    )
    if incomplete_transactions(rows, ends, search.log.counted).isEmpty():
        return
    if not incomplete_by_incarnation(rows, ends, search.log.counted).isEmpty():
        raise _retention_error(", ".join(sorted({place.topic for place in unproven})), "rows of")


def _retention_error(topic: str, what: str) -> DataError:
    return DataError(
        f"Retention removed {what} transactions that lie around Hudi Streamer's checkpoint from "
        f"'{topic}': what its tables hold of them cannot be made whole. Nothing was written. Let "
        "Hudi Streamer catch up to what the topics still hold and run again at once, or raise "
        "retention.ms first."
    )
