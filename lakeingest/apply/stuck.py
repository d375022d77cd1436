"""When nothing can be released: say which record or transaction is in the way, and what to do."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

from lakeingest.apply.shortfall import Shortfall
from lakeingest.apply.window import Window
from lakeingest.config.keys import nearest
from lakeingest.errors import DataError
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.shape import Kind


class Patience:
    """How long the same transaction has been in the way of this run.

    A connector that catches up writes ENDs of old commits next to rows that are still under way, so
    the commit time says nothing. A run that goes on watches the transaction itself; one that looks
    once goes by the time at which END was written.
    """

    def __init__(self, timeout_seconds: int, *, static: bool, continuous: bool) -> None:
        """Set the bound.

        Args:
            timeout_seconds: How long a transaction may stay incomplete.
            static: The source gets no more records, so waiting is of no use.
            continuous: The run will look again.
        """
        self.timeout_seconds = timeout_seconds
        self.static = static
        self._continuous = continuous
        self._first: tuple[str, float] | None = None

    def over(self, lacking: Shortfall) -> bool:
        """Tell whether this transaction has been waited for long enough."""
        if self.static:
            return True
        if not self._continuous:
            age = time.time() - lacking.written_ms / 1000
            return lacking.written_ms > 0 and age > self.timeout_seconds
        if self._first is None or self._first[0] != lacking.transaction:
            self._first = (lacking.transaction, time.monotonic())
        return time.monotonic() - self._first[1] > self.timeout_seconds


_UNREADABLE = (
    "no position in its source block, or a flattened row without the fields that "
    "lakeingest.source.envelope needs"
)
_UNORDERED = (
    "no position in its source block, or no number or timestamp in an ordering column, which a "
    "delete has with REPLICA IDENTITY FULL only and a truncate never"
)


def refuse_if_stuck(window: Window, patience: Patience, filtered: Sequence[str] = ()) -> None:
    """Stop if what holds the rest back will not go away by itself.

    Args:
        window: A window, read to the end, that gave no batch.
        patience: How long to wait for rows.
        filtered: Collections whose rows are known to be dropped on the way.

    Raises:
        DataError: A record cannot be read, or a transaction lacks rows.
    """
    bad = window.contents.first_malformed()
    if bad is not None:
        message = (
            f"The record at offset {bad.first_offset} of '{bad.where.topic}' partition "
            f"{bad.where.partition} is not a Debezium event that can be read (broken JSON, "
            f"{_UNREADABLE if window.whole else _UNORDERED}); {bad.records} such in all. "
            f"Everything before {'its transaction' if window.whole else 'it'} is published, "
            "nothing after it. Send the record again and skip the broken one with a topic that "
            "was repaired, or load the lake anew."
        )
        raise DataError(message)
    lacking = window.shortfall
    if lacking is not None and patience.over(lacking):
        timeout = patience.timeout_seconds
        message = _lacking(lacking, window.waiting, timeout, filtered, static=patience.static)
        raise DataError(message + _foreign(window))


def _lacking(
    lacking: Shortfall, waiting: int, timeout_seconds: int, filtered: Sequence[str], *, static: bool
) -> str:
    table = f" of table '{lacking.collection}'" if lacking.collection else ""
    counts = (
        f": END counts {lacking.expected} rows{table}, {lacking.found} are there"
        if lacking.found is not None
        else ""
    )
    near = nearest(lacking.collection or "", filtered)
    named = f" (it names {near})" if near else ""
    waited = "" if static else f" for more than {timeout_seconds} s"
    return (
        f"Transaction {lacking.transaction} is not complete{waited} ({lacking.reason}){counts}. It "
        f"holds back {waiting} transactions; everything before it is published. If a "
        "transform or filter drops these rows on purpose, name the table in "
        f"lakeingest.transaction.filtered.collections{named}; if its topic is not read, list "
        "the topics in lakeingest.source.topics; if rows are only late, raise "
        "lakeingest.transaction.timeout.seconds."
    )


def _foreign(window: Window) -> str:
    """Return what to say of records that are no change events, if there are any."""
    topics = sorted({portion.where.topic for portion in window.contents.of(Kind.FOREIGN)})
    if not topics:
        return ""
    return (
        f" Records of {', '.join(topics)} are no change events and were passed over; if they are "
        "rows without their envelopes (ExtractNewRecordState), set "
        "lakeingest.source.envelope=flattened."
    )


def refuse_if_lost(through: int | None) -> None:
    """Stop if tables hold transactions that the log, read to its end, does not have.

    Args:
        through: END up to which a run that was interrupted has written tables; null: none has.

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


def refuse_unknown_ends(window: Window, ledger: DeltaLedger, adopted_at: str) -> None:
    """Stop if the log went back to transactions that this lake has never seen.

    A connector that sends old transactions again is harmless; a database that was restored or a
    replica that took over starts its positions anew, and its new transactions would look old.

    Args:
        window: A window.
        ledger: Knows the transactions that were published.
        adopted_at: Position above the transactions that another writer applied, which the ledger
            does not know; empty: there are none.

    Raises:
        DataError: An END below the frontier is not in the ledger.
    """
    by_length: dict[int, list[str]] = defaultdict(list)
    for place in window.again:
        if place > adopted_at:
            by_length[len(place)].append(place)
    unknown = sum(map(ledger.unknown_ends, by_length.values()))
    if unknown:
        message = (
            f"{unknown} transactions lie below the last applied position but are not in the "
            "ledger: the source's log started over (restored database, failover, new slot), or "
            "its numbers do not follow its commits (MySQL: a group whose primary changed, with "
            "group_replication_gtid_assignment_block_size above 1; a replica without "
            "replica_preserve_commit_order=ON). Their order against the lake is not known, nor "
            "what the source lost. Correct that, let the connector start over with a snapshot of "
            "all tables (its offsets deleted) and set lakeingest.source.snapshot.again=replace, or "
            "load the lake anew (another lakeingest.target.path). The lake stands at its last "
            "publication."
        )
        raise DataError(message)
