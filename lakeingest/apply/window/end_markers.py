"""Read the ENDs of a window: offset, count and position of each, never the rows they counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakeingest.engine.known_columns import Selection, made_once
from lakeingest.envelope.change import FAMILIES
from lakeingest.errors import DataError
from lakeingest.plan.end_positions import all_positions_from_rows, release_limit
from lakeingest.plan.spec import PipelineSpec
from lakeingest.transaction.cut import End


@dataclass(frozen=True)
class EndMarker(End):
    """An END with the number of its transaction's BEGINs."""

    begins: int = 0


@dataclass(frozen=True)
class EndMarkers:
    """The ENDs of a window.

    Attributes:
        ends: In commit order.
        domains: Domains of their numbers, which compare only within one domain; empty: no END has
            one.
        opened: The first transaction without an END; None: there is none.
    """

    ends: Sequence[EndMarker]
    domains: frozenset[str]
    opened: OpenTransaction | None = None


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction with a BEGIN and no END.

    Attributes:
        offset: Offset of its last BEGIN.
        transaction: Its id.
        alone_since: Kafka timestamp (milliseconds) of the newest BEGIN without END, where such a
            BEGIN may need no END (``Family.implied_end``); 0: it needs one.
    """

    offset: int
    transaction: str
    alone_since: int = 0


def read_end_markers(boundaries: DataFrame, spec: PipelineSpec) -> EndMarkers:
    """Bring the END summaries to the driver.

    Args:
        boundaries: The window's ``plan.window.window_boundaries``.
        spec: Pipeline settings.

    Raises:
        DataError: A record of the transaction topic cannot be read.
    """
    everything, summary = _markers()
    markers = summary.of_groups(boundaries, everything)
    row = markers.first()
    ends = sorted(map(_end, row["lines"] if row else ()), key=attrgetter("offset"))
    unreadable = [end.offset for end in ends if not end.position]
    if unreadable:
        message = (
            f"The record at offset {unreadable[0]} of the transaction topic cannot be read: "
            f"it is broken, or its id has no position for a {spec.connector} connector "
            f"({len(unreadable)} such records in all). Without it a transaction's rows cannot be "
            "counted, and a copy of it comes too late: the order of the topic is the order of "
            "commits. Delete the connector's topics and offsets, let it take a snapshot of all "
            "tables, and load it into another lakeingest.target.path. The lake stands at its last "
            "publication."
        )
        raise DataError(message)
    opened = None
    if row and row["opened"]:
        offset, transaction = row["opened"]
        may_be_alone = FAMILIES[spec.connector].implied_end
        opened = OpenTransaction(offset, transaction, row["begun_at"] or 0 if may_be_alone else 0)
    return EndMarkers(ends, frozenset(row["domains"] if row else ()) - {""}, opened)


@made_once
def _markers() -> tuple[Selection, Selection]:
    """Return no groups, and the summary of all boundaries."""
    # One row with a line per END: a row per END costs five times as much to bring here.
    begin_offset = F.coalesce("begun", F.lit(-1))
    committed = F.coalesce(F.unix_millis("committed_at"), F.lit(0))
    line = F.concat_ws(
        " ", "end_offset", "event_count", "begins", begin_offset, "end_position", committed, "id"
    )
    is_over = ~F.col("open")
    summary = Selection(
        F.collect_list(F.when(is_over, line)).alias("lines"),
        F.collect_set(F.when(is_over, F.col("domain"))).alias("domains"),
        F.min(F.when(F.col("open"), F.struct("end_offset", "id"))).alias("opened"),
        F.max(F.when(F.col("open"), F.unix_millis("written_at"))).alias("begun_at"),
    )
    return Selection(), summary


def ascending_prefix(ends: Sequence[EndMarker]) -> Sequence[EndMarker]:
    """Return the ENDs before the first one that goes back to a position that was not seen.

    ENDs are written in commit order, so their positions rise. A connector that went back sends the
    same positions again. A lower position that is new has another cause: the log started over in
    between (a restored database, a slot that was made anew without a snapshot), or the numbers do
    not follow the commits. The rows of such an END would lose against older ones. The ENDs before
    it are sound. The END itself is left to the next window. That window finds it below everything
    applied and unknown to the ledger (``stall_detection.is_superseded``), or behind a new snapshot
    (``resnapshot_cut_over.py``). Rejected: to stop here, because that snapshot may only
    come with a larger window.

    Args:
        ends: In commit order, all behind the frontier.
    """
    highest = ""
    positions: set[str] = set()
    for number, end in enumerate(ends):
        if end.position < highest and end.position not in positions:
            return ends[:number]
        highest = max(highest, end.position)
        positions.add(end.position)
    return ends


def refuse_disorder(ends: Sequence[EndMarker], spec: PipelineSpec, released: str) -> None:
    """Stop where rows show another order of commits than the transaction topic has.

    Args:
        ends: In the topic's order, all behind the frontier.
        spec: Pipeline settings.
        released: Position of the last END that was released. If a connector that went back sends
            that END again, its position is higher, because the new offset is in it.

    Raises:
        DataError: A later END lies below an earlier one. (Where ids give the position, see
            ``ascending_prefix``.)
    """
    if not all_positions_from_rows(spec):
        return
    for earlier, later in pairwise(ends):
        again = release_limit(later.position) == release_limit(released)
        if later.position < earlier.position and not again:
            message = (
                f"The ENDs at offsets {earlier.offset} and {later.offset} of the transaction topic "
                "are in another order than the commit SCNs of their rows. Older connectors tell "
                "the last commit of the redo thread instead of the row's own, which has no order "
                "with several threads (RAC): upgrade the connector and load the lake anew. The "
                "lake stands at its last publication."
            )
            raise DataError(message)


def _end(line: str) -> EndMarker:
    offset, events, begins, begin_offset, position, committed, id_ = line.split(" ", 6)
    first = int(begin_offset)
    return EndMarker(
        offset=int(offset),
        events=int(events),
        position=position,
        begun=first if first >= 0 else None,
        transaction=id_,
        committed_ms=int(committed),
        begins=int(begins),
    )
