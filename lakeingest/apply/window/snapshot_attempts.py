"""Decide which of several initial snapshots counts: a killed connector begins its snapshot anew.

Debezium does not resume an initial snapshot. The next attempt reads all tables again, at a later
place of the log. No event reports the rows that were deleted in between, because streaming begins
behind the last attempt only. So the later attempt replaces the earlier one. The rows of the earlier
one are left out before anything is folded, and its end marks do not end the later one.

The ``runId`` of its connector identifies an attempt (a header since Debezium 3.3). Without it, the
mark of its first row and the place in the log that all its rows share identify it. Offsets show
which one is later: a connector writes its rows in order. A snapshot that a running connector takes
on demand (its own ``runId``, or other tables only, or after streamed rows) is no attempt: its rows
compete with the others by position.

Rejected: to let the positions decide. The higher place wins for each key, but a key that was
deleted between two attempts is only in the first one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lakeingest.apply.window.contents import Attempt, Contents
from lakeingest.apply.window.resnapshot_cut_over import Stretch
from lakeingest.errors import DataError
from lakeingest.frame_schemas import Kind
from lakeingest.ledger.publication import Frontier
from lakeingest.source.contract import TopicPartition

_TWICE = "two rows are marked as the first one, at one place of the log, and have no runId"
_ALTERNATE = "their rows alternate, or share no partition that shows which ones are later"
_ABOVE = "G"
"""Suffix of a place: the result is above every position that begins with the place."""

_ENDED = "last"
_FIRST = "first"


@dataclass(frozen=True)
class Verdict:
    """Judgement of several attempts.

    Attributes:
        superseded: Attempts that a later one replaces.
        anew: The latest one, if it was taken after streamed changes; else None.
        begun_at: Partition to the first offset of the latest one.
    """

    superseded: frozenset[Attempt] = frozenset()
    anew: Attempt | None = None
    begun_at: Mapping[TopicPartition, int] = field(default_factory=dict)

    def streamed_first(self, spans: Iterable[Stretch]) -> bool:
        """Return whether the connector that took ``anew`` streamed before: it took it on demand.

        Without a ``runId`` in its rows this is not known; then the connector counts as started
        over.

        Args:
            spans: Stretches of each incarnation in the partitions of the window.
        """
        run = self.anew.run if self.anew else None
        return run is not None and any(
            item.incarnation == run and item.first < self.begun_at.get(item.where, 0)
            for item in spans
        )


@dataclass(frozen=True)
class _AttemptRows:
    """Rows of one attempt in a window."""

    run: str | None
    place: str
    names: frozenset[Attempt]
    spans: Mapping[TopicPartition, tuple[int, int]]
    collections: frozenset[str]
    first_ms: int
    marks: frozenset[str]

    @property
    def killed(self) -> bool:
        """Whether it began and did not end."""
        return _FIRST in self.marks and _ENDED not in self.marks


def judge_attempts(contents: Contents, *, read_past: bool = True) -> Verdict:
    """Find which attempts of the initial snapshot a window holds, and which one counts.

    Args:
        contents: What the window holds; nothing of it is applied.
        read_past: Whether no partition of the window ends in the middle of a snapshot. Otherwise
            the tables that a later attempt lacks may lie further on.

    Raises:
        DataError: Nothing shows which attempt is the latest, or whether it replaces an earlier one.
    """
    attempts = _attempts(contents)
    if not attempts:
        return Verdict()
    latest = _latest(attempts)
    superseded: set[Attempt] = set()
    anew: Attempt | None = None
    if len(attempts) == 1:
        if not (latest.run and _streamed_before(latest, contents, by_clock=False)):
            return Verdict()
        # The only attempt, behind changes that an earlier incarnation of the connector streamed.
        anew = Attempt(latest.run, latest.place)
    for other in attempts:
        if other is latest or not _both_begun(other, latest):
            continue
        shared = other.collections & latest.collections
        if _streamed_before(latest, contents, by_clock=not other.killed):
            anew = Attempt(latest.run, latest.place) if shared else anew
        elif other.killed or other.collections <= latest.collections:
            superseded |= other.names
        elif shared:
            missing = sorted(other.collections - latest.collections)
            raise _partial(missing) if read_past else _cut_off(missing)
    begun_at = {where: first for where, (first, _) in latest.spans.items()}
    return Verdict(frozenset(superseded), anew, begun_at)


def late_attempts(contents: Contents, frontier: Frontier) -> frozenset[Attempt]:
    """Return attempts before the one in the lake whose rows came only now.

    Those of a snapshot that counts may come again, where a table is loaded anew.

    Args:
        contents: What the window holds.
        frontier: Up to where everything is applied.
    """
    place_in_lake = frontier.snapshot_place
    if not (frontier.streaming and place_in_lake and frontier.committed_ms):
        return frozenset()
    return frozenset(
        portion.attempt
        for portion in contents.of(Kind.SNAPSHOT)
        if portion.attempt.place < place_in_lake
        and portion.attempt.place
        and (portion.attempt.run != frontier.snapshot_run or portion.attempt.run is None)
        and (portion.attempt.run, portion.attempt.place) not in frontier.earlier_snapshots
    )


def superseded_below(contents: Contents, table: str, high: str) -> str:
    """Return the position below which a table that was never published has superseded rows.

    A killed run wrote the table. The attempt from which it took the rows may have been replaced
    since, or may no longer be in the topics.

    Args:
        contents: What the first batch of a lake, or of an epoch, is made of.
        table: The table.
        high: Highest position that was applied to it; empty: none.

    Returns:
        Empty where all of its rows are the newest attempt's, or above it.

    Raises:
        DataError: Their positions do not decide.
    """
    newest = contents.newest_attempt().place
    others = {attempt.place for attempt in contents.superseded} - {newest}
    if contents.superseded and (not newest or "" in others or max(others, default="") > newest):
        raise _left_behind(table)
    older = {place for place in (*others, high[: len(newest)]) if place < newest}
    return max(older) + _ABOVE if older - {""} else ""


def _attempts(contents: Contents) -> list[_AttemptRows]:
    """Return the attempts; an attempt with a ``runId`` is one, whatever its places."""
    by_name: dict[tuple[str | None, str], list[Attempt]] = {}
    firsts: dict[tuple[str | None, str], int] = {}
    for portion in contents.of(Kind.SNAPSHOT):
        attempt = portion.attempt
        name = (attempt.run, "" if attempt.run else attempt.place)
        by_name.setdefault(name, []).append(attempt)
        firsts[name] = firsts.get(name, 0) + portion.firsts
    for (run, _), count in firsts.items():
        if run is None and count > 1:
            raise _uncertain(_TWICE)
    attempts = [_attempt_rows(contents, frozenset(names)) for names in by_name.values()]
    # A place alone proves nothing: where rows have places of their own, one snapshot has many.
    return [attempt for attempt in attempts if attempt.run or _FIRST in attempt.marks]


def _attempt_rows(contents: Contents, names: frozenset[Attempt]) -> _AttemptRows:
    portions = [portion for portion in contents.of(Kind.SNAPSHOT) if portion.attempt in names]
    spans: dict[TopicPartition, tuple[int, int]] = {}
    for portion in portions:
        low, high = spans.get(portion.where, (portion.first_offset, portion.last_offset))
        spans[portion.where] = (min(low, portion.first_offset), max(high, portion.last_offset))
    return _AttemptRows(
        portions[0].attempt.run,
        max(name.place for name in names),
        names,
        spans,
        frozenset(portion.collection for portion in portions),
        min(portion.first_ms for portion in portions),
        frozenset(mark for portion in portions for mark in portion.marks),
    )


def _both_begun(one: _AttemptRows, other: _AttemptRows) -> bool:
    """Return whether two attempts are surely distinct."""
    return bool(one.run and other.run) or bool(_FIRST in one.marks and _FIRST in other.marks)


def _latest(attempts: Sequence[_AttemptRows]) -> _AttemptRows:
    for candidate in attempts:
        if all(other is candidate or _is_before(other, candidate) for other in attempts):
            return candidate
    raise _uncertain(_ALTERNATE)


def _is_before(one: _AttemptRows, other: _AttemptRows) -> bool:
    shared = one.spans.keys() & other.spans.keys()
    if shared:
        return all(one.spans[where][1] < other.spans[where][0] for where in shared)
    # No partition holds both: the log's place and the source's clock must agree.
    earlier, later = (one.place, one.first_ms), (other.place, other.first_ms)
    return earlier != later and earlier[0] <= later[0] and earlier[1] <= later[1]


def _streamed_before(latest: _AttemptRows, contents: Contents, *, by_clock: bool) -> bool:
    """Return whether changes were streamed before the latest attempt was over.

    Args:
        latest: The attempt.
        contents: What the window holds.
        by_clock: Whether an earlier commit time proves it, too. It does not after a killed attempt,
            behind which nothing can have been streamed: a transaction may commit between a snapshot
            and the reading of its first row.
    """
    for portion in contents.of(Kind.ROW, Kind.TRUNCATE):
        if portion.first_offset < latest.spans.get(portion.where, (0, 0))[1]:
            return True
        if by_clock and 0 < portion.first_ms < latest.first_ms:
            return True
    return False


def restarted_snapshot() -> DataError:
    """Return the error for a snapshot of which an earlier attempt is in the lake."""
    message = (
        "The initial snapshot was begun anew, and rows of the attempt before are in the lake. "
        "Without transactions (lakeingest.transaction.mode=none) nothing removes those that the "
        "new one lacks. Load the lake anew (another lakeingest.target.path), with "
        "lakeingest.batch.max.events above the number of records in the topics. The lake stands "
        "at its last publication."
    )
    return DataError(message)


def _uncertain(why: str) -> DataError:
    message = (
        f"The topics hold several attempts at the initial snapshot, and which rows are the latest "
        f"one's cannot be told: {why}. Rows that were deleted between two attempts would stay, so "
        f"nothing was published. {_AFRESH}"
    )
    return DataError(message)


def _partial(missing: Sequence[str]) -> DataError:
    message = (
        f"The topics hold two initial snapshots, and the later one has no row of {missing[0]} "
        f"({len(missing)} such tables): it may be empty by now, or the later snapshot may be of "
        f"some tables only. Nothing was published. {_AFRESH}"
    )
    return DataError(message)


def _left_behind(table: str) -> DataError:
    message = (
        f"Table '{table}' was written by a run that was killed before it published it, and the "
        "snapshot was begun anew since. Which of its rows the new one replaces cannot be told: the "
        "log starts over, or rows have positions of their own. Delete the folder of table "
        f"'{table}', of which nothing is published, and run again."
    )
    return DataError(message)


def _cut_off(missing: Sequence[str]) -> DataError:
    message = (
        f"The topics hold two initial snapshots, and the batch ends before the later one's rows of "
        f"{missing[0]} ({len(missing)} such tables). Without transactions "
        "(lakeingest.transaction.mode=none) they are read at once: set lakeingest.batch.max.events "
        "above the number of records in the topics. Nothing was published."
    )
    return DataError(message)


# A mirror may deliver the later attempt's rows of one table before those of another.
_AFRESH = (
    "Run again when the topics hold all that the connector has written. If this stays, stop the "
    "connector, delete its topics and offsets, and let it take one snapshot of all tables."
)
