"""Define what reading a window showed: all that a decision about it needs, and no rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakeingest.apply.window.contents import Contents
from lakeingest.apply.window.end_markers import EndMarker, OpenTransaction
from lakeingest.apply.window.incomplete_transaction import IncompleteTransaction
from lakeingest.apply.window.offset_ranges import WindowRanges
from lakeingest.apply.window.resnapshot_cut_over import Stretch
from lakeingest.apply.window.snapshot_attempts import Verdict
from lakeingest.apply.window.unreadable_records import UnreadableRecords
from lakeingest.ledger.publication import Frontier
from lakeingest.transaction.cut import End


@dataclass(frozen=True)
class WindowFacts:
    """What a window holds.

    Attributes:
        ranges: The ranges read.
        ends: All of its ENDs, in the order of their offsets.
        opened: The first BEGIN without END; None: there is none.
        contents: Summaries of its records, without superseded attempts at a snapshot.
        new_snapshot: Whether rows of a snapshot are in it that was taken after the one in the lake.
        attempts: Which attempts at the initial snapshot it holds.
        stretches: Stretches of the connector's incarnations; asked for only where a snapshot may
            have been taken anew.
        own_ends: Its ENDs with their ``with_own_counts``; asked for with the stretches.
        unreadable: Unreadable records that block it.
        short: The first transaction that lacks a row; None: none does, or nobody asked.
        interrupted: The first transaction that a killed connector did not send whole; None: none.
        in_part: Offsets of the ENDs that are released though they may lack rows, with the number
            of rows that are missing by table; no table: nothing counts them, or they have come.
        settled: Commit below which no row is under way, where no END counts rows; None: END does,
            or the source gets no more records.
        topics: Data topics that exist after the reading; asked for only before the first
            publication of the initial snapshot.
    """

    ranges: WindowRanges
    ends: Sequence[EndMarker]
    opened: OpenTransaction | None = None
    contents: Contents = field(default_factory=lambda: Contents(()))
    new_snapshot: bool = False
    attempts: Verdict = field(default_factory=Verdict)
    stretches: Sequence[Stretch] = ()
    own_ends: Sequence[End] = ()
    unreadable: UnreadableRecords = field(default_factory=dict)
    short: IncompleteTransaction | None = None
    interrupted: IncompleteTransaction | None = None
    in_part: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    settled: str | None = None
    topics: frozenset[str] = frozenset()

    @property
    def ranges_read(self) -> WindowRanges:
        """The ranges, cut short where an unreadable record blocks a partition."""
        return replace(self.ranges, cut_short=self.ranges.cut_short | self.unreadable.keys())

    def has_repeats(self, frontier: Frontier) -> bool:
        """Return whether a new transaction's BEGIN came twice: its connector was killed in it."""
        return any(end.begins > 1 for end in self.ends_behind(frontier))

    @property
    def has_resnapshot(self) -> bool:
        """Whether the connector started over with a new snapshot."""
        started_over = self.attempts.anew and not self.attempts.streamed_first(self.stretches)
        return self.new_snapshot or bool(started_over)

    def ends_behind(self, frontier: Frontier) -> list[EndMarker]:
        """Return the ENDs that were not released before."""
        return [end for end in self.ends if end.position > frontier.end_position]
