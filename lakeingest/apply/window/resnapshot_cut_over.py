"""Find where a new initial snapshot cuts the log into two epochs: the snapshot cut-over.

A connector that starts over (its offsets are gone, its slot is new, the server was restored) takes
a snapshot and streams on from there. No event reports which rows the lake then lacks or has too
many: the time between is lost. So the snapshot is the state of the source, all of it, and a new
epoch. What lies before the cut-over belongs to the old epoch, or is superseded.

Topics keep no order between one another. But each incarnation of a connector (its ``runId``, a
header of every row since Debezium 3.3) writes its rows in order and is over when the next one
begins. So the cut-over of a partition is its first row of the incarnation that took the snapshot,
or of a later one. The transaction topic has no such header: its cut-over lies behind the last END
of a row before the cut-overs of the partitions, and before the first END of a row behind them. In
between there may be ENDs without a row that is read. Each incarnation writes ENDs in commit order,
so the new one begins where positions go back. If they only rise, these ENDs count as new: a
connector that goes back may send them again, and they harm nobody. If the new incarnation has no
END of a row yet, such an END is old: as new, it could lie above all that a restored server commits.
What lies before the cut-over and has no certain order is not applied: the snapshot has it. Where
all that does not decide, the run stops.
Rejected: the clocks of records (Connect's workers have one each). Rejected: log positions (a
restored server has lower ones, and a transaction that was open during the snapshot has rows from
before it).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.apply.next_publication import next_publication
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.errors import DataError
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Frontier, Publication
from lakeingest.position.epochs import Epoch
from lakeingest.source.contract import TopicPartition
from lakeingest.transaction.completeness import counts
from lakeingest.transaction.cut import End

_NO_RUN = "rows have no header __debezium.context.runId"
_ON_DEMAND = "a running connector took it on demand"
_UNKNOWN = "a partition holds rows of a runId that no partition with rows of the snapshot has"


@dataclass(frozen=True)
class SnapshotCutOver:
    """Offsets at which a new epoch begins.

    Attributes:
        offsets: Of the data topics' partitions.
        end_offset: Of the transaction topic.
    """

    offsets: Mapping[TopicPartition, int]
    end_offset: int

    def before(self, ranges: WindowRanges) -> WindowRanges:
        """Return the part of ``ranges`` before the cut-over; it counts as read to its end."""
        data = (replace(part, end=min(part.end, self.offsets[part.place])) for part in ranges.data)
        ends = ranges.transactions
        if ends is not None:
            ends = replace(ends, end=min(ends.end, self.end_offset))
        return replace(
            ranges,
            transactions=ends if ends is not None and ends.end > ends.start else None,
            data=tuple(part for part in data if part.end > part.start),
            cut_short=frozenset(),
            more_ends=False,
        )


@dataclass(frozen=True)
class Stretch:
    """Rows of one incarnation of a connector in one partition of a window.

    Attributes:
        where: The partition.
        incarnation: Its ``runId``; None: the rows name none.
        first: Lowest offset.
        last: Highest offset.
        snapshot: Whether rows of the new snapshot are among them.
        first_end: Lowest END of its transactions; None: none has an END.
        last_end: Highest END of its transactions; None: none has an END.
    """

    where: TopicPartition
    incarnation: str | None
    first: int
    last: int
    snapshot: bool
    first_end: int | None = None
    last_end: int | None = None


def stretches(changes: DataFrame, snapshot_runs: Collection[str | None]) -> list[Stretch]:
    """Summarise a window by partition and incarnation.

    Args:
        changes: ``CHANGE`` with ``end_offset``, also of ENDs below the frontier: a restored server
            counts its transactions from below it.
        snapshot_runs: Incarnations whose snapshot is the new one.
    """
    snapshot = F.col("kind") == Kind.SNAPSHOT
    rows = (
        changes.groupBy("topic", "partition", "incarnation")
        .agg(
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            F.max(snapshot).alias("snapshot"),
            F.min("end_offset").alias("first_end"),
            F.max("end_offset").alias("last_end"),
        )
        .collect()
    )
    return [
        Stretch(
            TopicPartition(row["topic"], row["partition"]),
            row["incarnation"],
            row["first"],
            row["last"],
            bool(row["snapshot"]) and row["incarnation"] in snapshot_runs,
            row["first_end"],
            row["last_end"],
        )
        for row in rows
    ]


def with_own_counts(ends: Sequence[End], boundaries: DataFrame, is_counted: Column) -> list[End]:
    """Return ENDs whose ``events`` are the rows of the tables that are read.

    Args:
        ends: The ENDs of a window.
        boundaries: Their ``BOUNDARY``.
        is_counted: Condition over ``data_collection``.
    """
    own = counts(boundaries, is_counted).groupBy("end_offset").agg(F.sum("expected").alias("rows"))
    events = {row["end_offset"]: row["rows"] for row in own.collect()}
    return [replace(end, events=events.get(end.offset, 0)) for end in ends]


def cut_over(
    spans: Sequence[Stretch], ranges: WindowRanges, frontier: Frontier, ends: Sequence[End] = ()
) -> SnapshotCutOver:
    """Find the cut-over that a new snapshot makes.

    Args:
        spans: The window's stretches; it was read to the watermarks.
        ranges: Its ranges.
        frontier: Up to where everything is applied.
        ends: Its ENDs, in the order of their offsets, with their ``with_own_counts``.

    Raises:
        DataError: The cut-over is not certain.
    """
    if any(item.incarnation is None for item in spans):
        raise _uncertain(_NO_RUN)
    cuts = _cut_partitions(spans)
    new = {item.incarnation for item in spans if item.first >= cuts.get(item.where, item.last + 1)}
    old = {item.incarnation for item in spans if item.last < cuts.get(item.where, -1)}
    for where in {item.where for item in spans} - cuts.keys():
        here = [item for item in spans if item.where == where]
        if any(item.incarnation not in new | old for item in here):
            raise _uncertain(_UNKNOWN)
        fresh = [item.first for item in here if item.incarnation in new]
        if fresh:
            cuts[where] = min(fresh)
    torn = any(item.first < cuts.get(item.where, item.last + 1) <= item.last for item in spans)
    if new & old or torn:
        raise _uncertain(_ON_DEMAND)
    stops = {part.place: part.end for part in ranges.data}
    begin, first = _bounds_of_first_end(spans, cuts, frontier)
    return SnapshotCutOver({**stops, **cuts}, _first_end(ends, begin, first))


def open_epoch(head: Publication, cut: SnapshotCutOver, run: str) -> Publication:
    """Return the publication that opens the epoch behind a cut-over: it changes no table.

    Args:
        head: The newest publication, whose writer is this run.
        cut: The cut-over.
        run: Identifier of the run.
    """
    old = head.frontier
    number = old.newest_epoch + 1
    offsets = {topic: dict(parts) for topic, parts in old.offsets.items()}
    for where, offset in cut.offsets.items():
        offsets.setdefault(where.topic, {})[where.partition] = offset
    frontier = Frontier(
        end_offset=cut.end_offset - 1,
        end_position=old.end_position,
        offsets=offsets,
        epoch=number,
        # Behind the last END there may be records that retention has removed since.
        read_offset=old.read_offset,
        topic_ids=old.topic_ids,
    )
    epoch = Epoch(number, "", end_offset=cut.end_offset)
    return replace(next_publication(head, run), opened=(epoch,), frontier=frontier)


def _cut_partitions(spans: Sequence[Stretch]) -> dict[TopicPartition, int]:
    """Return the first offset of the snapshot's incarnation, for partitions that have one."""
    snapshot_runs = {item.incarnation for item in spans if item.snapshot}
    cuts: dict[TopicPartition, int] = {}
    for item in spans:
        if item.incarnation in snapshot_runs:
            cuts[item.where] = min(item.first, cuts.get(item.where, item.first))
    return cuts


def _bounds_of_first_end(
    spans: Sequence[Stretch], cuts: Mapping[TopicPartition, int], frontier: Frontier
) -> tuple[int, int | None]:
    """Return the offset behind the last END of a row before the cut-overs, and the first behind.

    The second is the END of a row behind the cut-overs; None: no such row has an END.
    """
    old = [
        item.last_end
        for item in spans
        if item.last_end is not None and item.first < cuts.get(item.where, item.last + 1)
    ]
    new = [
        item.first_end
        for item in spans
        if item.first_end is not None and item.first >= cuts.get(item.where, item.last + 1)
    ]
    behind = max(old, default=frontier.end_offset) + 1
    # A restored server may use a number again: never count an END as old that is surely new.
    return min([behind, *new]), min(new, default=None)


def _first_end(ends: Sequence[End], begin: int, first: int | None) -> int:
    """Return the offset from which ENDs are new.

    Args:
        ends: See ``cut_over``.
        begin: Offset behind the ENDs that are surely old.
        first: First END that is surely new; None: there is none.
    """
    rest = [end for end in ends if end.offset >= begin]
    if first is None:
        # The rows of an END that counts some are still under way: the old incarnation is over.
        first = next((end.offset for end in rest if end.events), None)
    if first is None:
        return max([begin, *(end.offset + 1 for end in rest)])
    up_to_first = [end for end in rest if end.offset <= first]
    back = [end.offset + 1 for end, later in pairwise(up_to_first) if end.position > later.position]
    return max([begin, *back])


def _uncertain(why: str) -> DataError:
    message = (
        "The topics hold a new initial snapshot, but where it cuts the log cannot be told: "
        f"{why}. lakeingest.source.snapshot.again=replace needs a connector of Debezium 3.3 or "
        "later that was started over (extended.headers.enabled=true), and no other one writing "
        "meanwhile. Load the lake anew (another lakeingest.target.path). The lake stands at its "
        "last publication."
    )
    return DataError(message)
