"""Report why nothing can be released: which record or transaction blocks it, and what to do."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

from lakeingest.apply.lake import LakeState
from lakeingest.apply.window.contents import Contents, Portion
from lakeingest.apply.window.incomplete_transaction import NO_END, ONLY_BEGUN, IncompleteTransaction
from lakeingest.apply.window.unreadable_records import unreadable_error
from lakeingest.apply.window.window import Window
from lakeingest.config.model import PipelineConfig
from lakeingest.config.spelling import nearest
from lakeingest.errors import DataError
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.plan.end_positions import is_placed
from lakeingest.plan.row_boundaries import is_by_rows
from lakeingest.topic_names import TopicNames
from lakeingest.transaction.completeness import NO_WHOLE_INCARNATION
from lakeingest.transaction.compressed_detection import SHARED_PLACE
from lakeingest.transaction.unreadable import UNREADABLE


class Patience:
    """Measure how long the same transaction has blocked this run.

    A connector that catches up writes ENDs of old commits while their rows are still under way, so
    the commit time proves nothing. A continuous run measures the time since it first met the
    transaction. A one-shot run uses the timestamp of the END record.
    """

    def __init__(
        self, timeout_seconds: int, *, static: bool, continuous: bool, stops: bool = True
    ) -> None:
        """Set the time-out.

        Args:
            timeout_seconds: How long a transaction may stay incomplete.
            static: Whether the source gets no more records, so that waiting is of no use.
            continuous: Whether the run reads again.
            stops: Whether the run then stops; else it publishes the transaction in part.
        """
        self.timeout_seconds = timeout_seconds
        self.static = static
        self.stops = stops
        self._continuous = continuous
        self._first: tuple[str, float] | None = None

    @property
    def if_late(self) -> str:
        """What helps where rows are only late."""
        if self.static:
            return "record the topics again, all up to the same moment"
        if self._continuous:
            return "raise lakeingest.transaction.timeout.seconds"
        return "run again when they have arrived"

    def over(self, incomplete: IncompleteTransaction) -> bool:
        """Return whether this transaction has been incomplete for too long."""
        if self.static:
            return True
        if not self._continuous:
            age = time.time() - incomplete.written_ms / 1000
            return incomplete.written_ms > 0 and age > self.timeout_seconds
        if self._first is None or self._first[0] != incomplete.transaction:
            self._first = (incomplete.transaction, time.monotonic())
        return time.monotonic() - self._first[1] > self.timeout_seconds


def patience_of(config: PipelineConfig, *, continuous: bool) -> Patience:
    """Return how long a run waits for a transaction that is not complete.

    Args:
        config: The pipeline.
        continuous: Whether the run reads again.
    """
    return Patience(
        config.transaction_timeout_seconds,
        static=config.source.is_final,
        continuous=continuous,
        stops=config.transaction_timeout_action == "stop",
    )


def refuse_stall(
    window: Window, patience: Patience, names: TopicNames, filtered: Sequence[str] = ()
) -> IncompleteTransaction | None:
    """Stop if what blocks the window will not go away by itself.

    Returns a transaction that is to be published in part instead; None: there is nothing to do but
    wait.

    Args:
        window: A window that was read to the end and gave no batch.
        patience: How long to wait for rows.
        names: Names of the data topics.
        filtered: Collections whose rows a transform is known to drop.

    Raises:
        DataError: A record cannot be read, or a transaction lacks rows or their order.
        ConfigError: A record is not a Debezium event.
    """
    if window.unreadable:
        raise unreadable_error(window.unreadable, whole=window.whole)
    incomplete = window.incomplete
    if incomplete is not None and incomplete.reason == SHARED_PLACE:
        # More rows are of no use; only a new snapshot further on replaces these.
        raise _compressed_error(incomplete)
    if incomplete is None or not patience.over(incomplete):
        return None
    if patience.stops or not _can_be_in_part(window, incomplete):
        timeout = patience.timeout_seconds
        topic = names.topic(incomplete.collection or "")
        broken = _first_broken(window.contents, topic)
        head_missing = any(place.topic == topic for place in window.ranges.heads)
        late = _HEADLESS if head_missing else _late_hint(incomplete, filtered, patience)
        remedy = _remedy(incomplete.reason, patience) or _broken_hint(broken) or late
        raise DataError(
            _incomplete_text(incomplete, window.waiting, timeout, static=patience.static) + remedy
        )
    return incomplete


def _can_be_in_part(window: Window, incomplete: IncompleteTransaction) -> bool:
    """Return whether a transaction can be published in part.

    Its END must be there, and have a position of its own: if its rows give it one, those that come
    later cannot be told from rows of a transaction without END.
    """
    placed_by_rows = window.in_the_way is not None and is_placed(window.in_the_way.position)
    return incomplete.lacks_rows and not placed_by_rows


def in_part_warning(incomplete: IncompleteTransaction) -> str:
    """Return the warning of a transaction that is published without the rows that it lacks."""
    return (
        f"Transaction {incomplete.transaction} is published in part ({incomplete.reason})"
        f"{_counts(incomplete)} ({_IN_PART}). If the rows still come, they are applied by their "
        "positions alone: load its tables anew then (lakeingest reload). If they are lost, repair "
        "the tables (guide page 'operations')."
    )


def _compressed_error(first: IncompleteTransaction) -> DataError:
    return DataError(
        f"Transaction {first.transaction} has rows of several statements on '{first.collection}' "
        "at one place of the binlog: MySQL compressed it (binlog_transaction_compression=ON). "
        "Before version 3.7 Debezium does not tell the order of such rows for certain, so none of "
        "them was applied, nor what was read with it. Set binlog_transaction_compression=OFF on "
        "the server, or upgrade the connector to Debezium 3.7 or later; either holds for "
        "transactions to come. For those in the topics already, let the connector make a new "
        "snapshot (lakeingest.source.snapshot.again=replace) or load the lake anew."
    )


def _first_broken(contents: Contents, topic: str) -> Portion | None:
    """Return the first unreadable records of a topic; none of them blocks the log by itself."""
    portions = (part for part in contents.of(*UNREADABLE) if part.where.topic == topic)
    return min(portions, key=lambda part: (part.where, part.first_offset), default=None)


def _incomplete_text(
    first: IncompleteTransaction, waiting: int, timeout_seconds: int, *, static: bool
) -> str:
    limit = "" if static else f" for more than {timeout_seconds} s"
    # The transactions that wait have an END; without one, this transaction is not among them.
    later = waiting if first.named_by is None else waiting - 1
    held_back = f"{later} later transaction{'s' if later > 1 else ''}" if later > 0 else "no other"
    return (
        f"Transaction {first.transaction} is not complete{limit} ({first.reason}){_counts(first)}. "
        f"It holds back {held_back}; everything before it is published. "
    )


def _counts(first: IncompleteTransaction) -> str:
    if first.rows_read is None:
        return ""
    table = f" of table '{first.collection}'" if first.collection else ""
    return f": END counts {first.expected} rows{table}, {first.rows_read} are there"


_IN_PART = "lakeingest.transaction.timeout.action=apply-partial"
_ANEW = (
    "let the connector make a new snapshot of all tables (its offsets deleted) and set "
    "lakeingest.source.snapshot.again=replace; with a connector before Debezium 3.3 delete its "
    "topics, too, and load the lake anew (another lakeingest.target.path): over the same topics a "
    "new lake stops here, too."
)
_LOST = (
    "Records of the transaction topic were lost, so its rows cannot be counted. If they do not "
    f"come, {_ANEW}"
)
_LOST_OR_XA = (
    "XA transactions of MariaDB have no END: their rows come with XA PREPARE, and nothing says "
    "whether they were committed. Let none change a table of the pipeline. If it is another one, "
    "its END was lost, so its rows cannot be counted. If it does not come, or for XA, "
    f"{_ANEW}"
)
_HEADLESS = (
    "The head of the table's topic is missing (lakeingest.source.missing.head=accept), most likely "
    "with these rows: the topics were not cut between the same two transactions. Delete the "
    "connector's topics and offsets, let it take a new snapshot of all tables, and load it into "
    "another lakeingest.target.path."
)


def _remedy(reason: str, patience: Patience) -> str:
    """Return the remedy for this reason; empty: it depends on the table's records."""
    if reason == NO_END:
        return _LOST
    if reason == ONLY_BEGUN:
        return _LOST_OR_XA
    if reason == NO_WHOLE_INCARNATION:
        return (
            "The connector was killed in it and END counts the rows of its last attempt, so rows "
            f"of it may be lost. If they are only late, {patience.if_late}; else {_IN_PART} "
            f"publishes it as it is, or {_ANEW}"
        )
    return ""


def _broken_hint(broken: Portion | None) -> str:
    if broken is None:
        return ""
    return (
        f"The record at offset {broken.first_offset} of '{broken.where.topic}' partition "
        f"{broken.where.partition} cannot be read ({broken.records} such records there) and is "
        "most likely one of them. Write it again as it should be, to the same partition and with "
        "the same key."
    )


def _late_hint(
    incomplete: IncompleteTransaction, filtered: Sequence[str], patience: Patience
) -> str:
    near = nearest(incomplete.collection or "", filtered)
    similar = f" (it names {near})" if near else ""
    return (
        "If a transform or filter drops these rows on purpose, name the table in "
        f"lakeingest.transaction.filtered.collections{similar}; if its topic is not read, list "
        f"the topics in lakeingest.source.topics; if rows are only late, {patience.if_late}; if "
        f"they are lost, {_IN_PART} publishes it without them."
    )


def refuse_if_lost(through: int | None) -> None:
    """Stop if tables hold transactions that are missing in the log, read to its end.

    Args:
        through: END up to which an interrupted run has written tables; None: no run was
            interrupted.

    Raises:
        DataError: There is such an END.
    """
    if through is not None:
        message = (
            f"Some tables hold transactions up to the END at offset {through} of the transaction "
            "topic, written by a run that was interrupted before it published them, but the topic "
            "ends before it: the broker lost records. Nothing can be published that does not show "
            "them. Run again when the topic is complete; if it never will be, load the lake anew "
            "(another lakeingest.target.path). The lake stands at its last publication."
        )
        raise DataError(message)


_DELAY = "lakeingest.transaction.boundary.delay.seconds"


def is_superseded(window: Window, ledger: DeltaLedger, state: LakeState, *, replaces: bool) -> bool:
    """Return whether to apply nothing of a window: its order is not certain, a snapshot follows.

    The snapshot is at the end of the window, or may lie further on than the window reaches.

    Args:
        window: A window.
        ledger: Has the transactions that were published.
        state: The lake. A table that is ahead of the ledger needs the window's batches.
        replaces: Whether a new snapshot may replace the tables.

    Raises:
        DataError: The order is not certain, and no snapshot follows.
    """
    error = _unplaced_error(window) or _unknown_ends_error(window, ledger, state.adopted_at)
    if error is None:
        return False
    may_replace = replaces and state.through is None
    if may_replace and (window.cut_over is not None or not window.ranges.whole):
        return True
    raise error


def _unplaced_error(window: Window) -> DataError | None:
    """Return the error where the rows of a transaction do not say which commit is before them."""
    if window.unplaced is None:
        return None
    return DataError(
        f"Transaction {window.unplaced.transaction} is the first one of a connector that began "
        "without its offsets and without a snapshot (it has another name, or another Connect "
        "cluster): its rows do not say which commit is before them (source.sequence begins with "
        "null, or is missing), so their order against the transactions before them is not known. "
        f"Nothing of this batch was published. To go on, {_ANEW}"
    )


def _unknown_ends_error(window: Window, ledger: DeltaLedger, adopted_at: str) -> DataError | None:
    """Return the error where the log goes back to transactions that this lake has never seen.

    A connector that sends old transactions again is harmless. A restored database or a replica that
    took over starts its positions anew, and its new transactions would look old. The ledger does
    not have the transactions up to ``adopted_at``, which another writer applied.
    """
    by_length: dict[int, list[str]] = defaultdict(list)
    for position in window.again:
        if position > adopted_at:
            by_length[len(position)].append(position)
    unknown = sum(map(ledger.unknown_ends, by_length.values()))
    if not unknown:
        return None
    # Then no END says that a transaction has begun.
    by_rows = any(map(is_by_rows, window.again))
    late = (
        f", or they came later than {_DELAY} allows, or are of a table that was added later"
        if by_rows
        else ""
    )
    anew = "load the lake anew (another lakeingest.target.path)"
    replaced = (
        "let the connector start over with a snapshot of all tables (its offsets deleted) and "
        "set lakeingest.source.snapshot.again=replace, or "
    )
    return DataError(
        f"{unknown} transactions lie below the last applied position but are not in the "
        "ledger: the source's log started over (restored database, failover, new slot), or "
        "its numbers do not follow its commits (MySQL: a group whose primary changed, with "
        "group_replication_gtid_assignment_block_size above 1; a replica without "
        f"replica_preserve_commit_order=ON){late}. Their order against the lake is not known, "
        f"nor what the source lost. Correct that, {'' if by_rows else replaced}{anew}. The "
        "lake stands at its last publication."
    )
