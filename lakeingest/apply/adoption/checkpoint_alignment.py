"""Between which source transactions the checkpoint of another writer lies: what a lake begins with.

Hudi Streamer counts offsets, one topic at a time, so its checkpoints cut transactions: of one that
was under way its tables hold a part. The tables are therefore taken to be *wholly* at the last END
before any change that is behind a checkpoint, and to be *partly ahead* up to the last transaction
of which they hold anything. That is what a crash between commits and publication leaves, too, so
the protocol knows how to go on: everything behind that END is read again, and the first publication
reaches at least as far as the tables do (``lake.py``). What is read again changes nothing.

A partition is in commit order but where a connector sent transactions again. So it is read from
behind the last change that is wholly in the tables, which the repetition has passed then, too.

Where rows may still be on their way (a live source), ENDs of the last ``transaction.timeout`` are
not believed to be whole: what is taken back costs a few minutes of events, once. Rejected: counting
their rows, which needs every row back to the transaction of the least busy partition.

Only the records around the checkpoints are looked at, more of them if these do not reach back far
enough. A repetition of more records than ``DEPTH`` just before the checkpoint could hide that the
tables are further ahead; then the first publication may show a part of what follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.table.record_schemas import Schemas
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.errors import ConfigError, DataError, TransientError
from lakeingest.ledger.publication import Frontier
from lakeingest.plan import handover as plan
from lakeingest.plan.spec import PipelineSpec
from lakeingest.plan.window import (
    over,
    shortfalls,
    shortfalls_by_incarnation,
    window_boundaries,
    window_changes,
    window_metadata,
)
from lakeingest.position import after
from lakeingest.source.bounds import check_retained
from lakeingest.source.contract import OffsetRange, Source, TopicPartition, Watermarks

DEPTH = 20_000
"""Records of each partition that are looked at on either side of its checkpoint, at first."""

_GROWTH = 8
_END_MARKS = frozenset({"last", "last_in_data_collection"})


@dataclass(frozen=True)
class Handover:
    """Where another writer's tables stand between source transactions.

    Attributes:
        frontier: Everything up to it is wholly in the tables.
        through: END of the last transaction of which they hold a change; null: of none above the
            frontier.
        position: Position above every change that they may hold.
    """

    frontier: Frontier
    through: int | None
    position: str


def handover(
    source: Source,
    transaction_topic: str,
    checkpoints: Mapping[TopicPartition, int],
    spec: PipelineSpec,
    schemas: Schemas,
    counted: Column,
    margin_seconds: int | None,
) -> Handover:
    """Find where the tables of these checkpoints stand.

    Args:
        source: Has all their topics.
        transaction_topic: The topic of BEGIN and END.
        checkpoints: The next offset of each partition of the tables' topics.
        spec: Pipeline settings.
        schemas: What is known of the records' schemas; more may be learned.
        counted: See ``plan.window.is_counted``.
        margin_seconds: For how long rows may be on their way after END; null: none are.

    Raises:
        ConfigError: The writer has not finished its initial snapshot.
        DataError: The log does not hold what is needed any more.
        TransientError: A transaction of which the tables hold a part is not over yet.
    """
    (where, bounds), *_ = source.watermarks([transaction_topic]).items()
    markers = OffsetRange(where.topic, where.partition, bounds.earliest, bounds.high)
    marks = source.watermarks(sorted({place.topic for place in checkpoints}))
    for place, offset in checkpoints.items():
        check_retained([OffsetRange(place.topic, place.partition, offset, offset)], marks)
    topic = window_metadata(_read(source, [markers], schemas), spec)
    ends = local_checkpoint(over(window_boundaries(topic, spec)))
    search = _Search(source, checkpoints, marks, spec, schemas, ends, margin_seconds)
    depth = DEPTH
    while True:
        found = search.at(depth)
        if not found.short:
            break
        depth *= _GROWTH
    frontier = found.frontier
    if frontier.end_offset < 0 < bounds.earliest:
        raise _gone(transaction_topic, "the ENDs of")
    unproven = [place for place, start in found.unproven.items() if start > 0]
    if unproven and found.through is not None:
        _refuse_incomplete(search, found, counted, unproven)
    if found.unended:
        message = (
            f"The tables hold changes of {found.unended} rows whose transaction has no END in "
            f"'{transaction_topic}' yet. Nothing was written. Run again in a moment; if it does "
            "not go away, the connector has stopped or writes its ENDs to another topic "
            "(lakeingest.transaction.topic)."
        )
        raise (DataError if margin_seconds is None else TransientError)(message)
    return Handover(frontier, found.through, found.position)


@dataclass(frozen=True)
class _Found:
    """What looking so deep has shown; ``short``: it was not deep enough.

    ``unproven``: first retained offset of the partitions of which nothing that is wholly in the
    tables is retained.
    """

    frontier: Frontier
    through: int | None
    position: str
    unended: int
    short: bool
    unproven: Mapping[TopicPartition, int]


@dataclass(frozen=True)
class _Search:
    """Looks around the checkpoints."""

    source: Source
    checkpoints: Mapping[TopicPartition, int]
    marks: Mapping[TopicPartition, Watermarks]
    spec: PipelineSpec
    schemas: Schemas
    ends: DataFrame
    margin_seconds: int | None

    def changes(self, begin: Callable[[TopicPartition], int], ahead: int | None) -> DataFrame:
        """Read each partition from ``begin`` to so many records behind its checkpoint, or all."""
        ranges = []
        for place, offset in self.checkpoints.items():
            high = self.marks[place].high
            end = high if ahead is None else min(high, offset + ahead)
            ranges.append(OffsetRange(place.topic, place.partition, begin(place), end))
        return window_changes(_read(self.source, ranges, self.schemas), self.spec)

    def at(self, depth: int) -> _Found:
        """Look so many records to either side."""

        def begin(place: TopicPartition) -> int:
            return max(self.marks[place].earliest, self.checkpoints[place] - depth)

        checkpoints = {(place.topic, place.partition): at for place, at in self.checkpoints.items()}
        sided = local_checkpoint(plan.with_sides(self.changes(begin, depth), checkpoints))
        first = self._first_behind(sided)
        over = plan.last_over(self.ends, first, self.margin_seconds).first()
        # Without an END everything that was streamed is above, and the initial snapshot below.
        position = over["end_position"] if over else after(self.spec.epoch)
        offsets: dict[str, dict[int, int]] = {}
        short, unproven = False, {}
        below = {
            TopicPartition(row["topic"], row["partition"]): row["offset"]
            for row in plan.last_below(sided, position).collect()
        }
        for place in self.checkpoints:
            last = below.get(place)
            if last is None:
                short = short or begin(place) > self.marks[place].earliest
                unproven[place] = begin(place)
            start = begin(place) if last is None else last + 1
            offsets.setdefault(place.topic, {})[place.partition] = start
        shown = plan.shown_above(sided, self.ends, position).first()
        committed = over["committed_at"] if over else None
        return _Found(
            Frontier(
                over["end_offset"] if over else -1,
                position,
                offsets,
                int(committed.timestamp() * 1000) if committed else 0,
                streaming=True,
            ),
            shown["through"] if shown else None,
            (shown["end_position"] if shown else None) or position,
            int(shown["unended"] or 0) if shown else 0,
            short,
            unproven,
        )

    def _first_behind(self, sided: DataFrame) -> str | None:
        """Return the lowest position behind the checkpoints.

        Raises:
            ConfigError: The initial snapshot is not wholly before them.
        """
        parts = plan.what_is_behind(sided).collect()
        loading = sorted({row["topic"] for row in parts if row["loading"]})
        if not loading and not any(row["streamed"] for row in parts) and self.ends.isEmpty():
            marks: dict[str, set[str]] = {}
            for row in parts:
                marks.setdefault(row["topic"], set()).add(row["mark"] or "")
            loading = sorted(
                t for t, seen in marks.items() if seen != {""} and not seen & _END_MARKS
            )
        if loading:
            message = (
                f"Hudi Streamer has not finished the initial snapshot: rows of it lie behind its "
                f"checkpoint in {', '.join(loading)}. Nothing was written. Let it go on until it "
                "has read them, then run again."
            )
            raise ConfigError(message)
        return min((row["first"] for row in parts if row["first"]), default=None)


def _read(source: Source, ranges: list[OffsetRange], schemas: Schemas) -> DataFrame:
    records = source.read(ranges)
    if schemas.needed:
        schemas.learn(records)
    return records


def _refuse_incomplete(
    search: _Search, found: _Found, counted: Column, unproven: list[TopicPartition]
) -> None:
    """Stop where rows that must be read again are not retained any more.

    Raises:
        DataError: They are not.
    """
    offsets = found.frontier.offsets
    rows = search.changes(lambda place: offsets[place.topic][place.partition], None)
    ends = search.ends.where(
        (F.col("end_position") > F.lit(found.frontier.end_position))
        & (F.col("end_offset") <= F.lit(found.through or -1))
    )
    if shortfalls(rows, ends, counted).isEmpty():
        return
    if not shortfalls_by_incarnation(rows, ends, counted).isEmpty():
        raise _gone(", ".join(sorted({place.topic for place in unproven})), "rows of")


def _gone(topic: str, what: str) -> DataError:
    return DataError(
        f"Retention removed {what} transactions that lie around Hudi Streamer's checkpoint from "
        f"'{topic}': what its tables hold of them cannot be made whole. Nothing was written. Let "
        "Hudi Streamer catch up to what the topics still hold and run again at once, or raise "
        "retention.ms first."
    )
