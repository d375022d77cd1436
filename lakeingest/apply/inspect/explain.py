"""Explain where a pipeline stands: what waits, for what, since when, and what the next run does.

The next batch is read and prepared as a run does it (``next_batch.py``), so what a run would stop
at is reported with the same words. Rejected: to let a run note in the lake why it stopped. The note
is old as soon as a record arrives, and a run that cannot write cannot note it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum

from pyspark.sql import SparkSession

from lakeingest.apply.inspect.next_batch import NextBatch
from lakeingest.apply.inspect.pipeline_parts import open_parts
from lakeingest.apply.lake import read_lake
from lakeingest.apply.run_session import run_session
from lakeingest.apply.table.new_tables import likely_tables
from lakeingest.apply.window.incomplete_transaction import NO_END, ONLY_BEGUN
from lakeingest.apply.window.offset_ranges import plan_all_ranges
from lakeingest.apply.window.window import Window
from lakeingest.config.model import PipelineConfig
from lakeingest.errors import LakeingestError
from lakeingest.ledger.publication import Publication
from lakeingest.plan.row_boundaries import is_by_rows

_OPEN = "rows of it are there, and its END is not"


class State(Enum):
    """Where a pipeline stands, by what its next run would do first."""

    IDLE = "idle"
    BEHIND = "behind"
    WAITING = "waiting"
    STOPPED = "stopped"


@dataclass(frozen=True)
class Explanation:
    """Why a pipeline stands where it stands.

    Attributes:
        state: In one word.
        reasons: In sentences.
        facts: Printable values, see ``_lake_facts`` and ``_window_facts``; ``records_waiting`` has
            a number for each topic.
        exit_code: Exit code of the run that would stop; 0: none would.
    """

    state: State
    reasons: tuple[str, ...]
    facts: Mapping[str, object] = field(default_factory=dict)
    exit_code: int = 0


def explain_pipeline(spark: SparkSession, config: PipelineConfig) -> Explanation:
    """Read what the next run would read, prepare its first batch, and say what it would do.

    Args:
        spark: Session with Delta, and with Hudi if there are Hudi tables.
        config: The pipeline.

    Raises:
        LakeingestError: The lake or the source cannot be opened. What a run would stop at behind
            that is part of the explanation.
    """
    own = run_session(spark)
    with open_parts(own, config) as parts:
        tables = likely_tables(parts.config, parts.source.topics())
        state = read_lake(parts.ledger, parts.sink, tables, parts.config.folders)
        return _explanation(NextBatch(own, parts, state))


def _explanation(following: NextBatch) -> Explanation:
    head = following.state.head
    beside = (*_reloads(head), *_holder(head))
    facts: dict[str, object] = dict(_lake_facts(head))
    try:
        window = following.read()
        if window is None:
            return Explanation(State.IDLE, ("Everything is applied.", *beside), facts)
        facts |= _window_facts(window, head)
        facts["records_waiting"] = _records_waiting(following)
        following.refuse(window)
    except LakeingestError as failure:
        reason = f"A run would stop with exit code {failure.exit_code}: {failure}"
        return Explanation(State.STOPPED, (reason, *beside), facts, failure.exit_code)
    waits = tuple(_waits(window, following.parts.config))
    if window.batches:
        state, reasons = State.BEHIND, (_next(facts), *waits)
    elif waits:
        state, reasons = State.WAITING, waits
    else:
        state, reasons = State.IDLE, (_nothing_left(head),)
    return Explanation(state, (*reasons, *beside), facts)


def _lake_facts(head: Publication) -> Iterator[tuple[str, object]]:
    """Return ``batch``, ``applied_to`` (commit time of the newest transaction in the lake)."""
    yield "batch", head.batch
    yield "applied_to", _moment(head.frontier.committed_ms)


def _window_facts(window: Window, head: Publication) -> Mapping[str, object]:
    """Return what waits in the topics.

    ``seconds_behind`` (age of ``applied_to``); of the window that the next run reads first:
    ``transactions_ready`` and ``events_ready`` (by table),
    ``transactions_waiting``; of the oldest incomplete transaction ``waits_for``.
    """
    ready: Counter[str] = Counter()
    for stats in window.batch_stats:
        ready[stats.collection] += stats.rows
    committed = head.frontier.committed_ms
    return {
        "seconds_behind": max(0, int(time.time() - committed / 1000)) if committed else None,
        "batches_ready": len(window.batches),
        "transactions_ready": sum(cut.transactions for cut in window.cuts),
        "events_ready": {name: count for name, count in sorted(ready.items()) if count},
        "transactions_waiting": window.waiting,
        "waits_for": _awaited_facts(window),
    }


def _records_waiting(following: NextBatch) -> Mapping[str, int]:
    """Return how many records of each topic no publication has."""
    parts, frontier = following.parts, following.state.head.frontier
    ranges = plan_all_ranges(parts.source, parts.config, frontier)
    records: Counter[str] = Counter()
    for part in ranges.data:
        records[part.topic] += part.end - part.start
    return {topic: count for topic, count in sorted(records.items()) if count}


def _awaited_facts(window: Window) -> Mapping[str, object]:
    """Return which transaction lacks what: the first incomplete one, else the open one."""
    first, open_one = window.incomplete, window.contents.first_unended()
    if first is None:
        return {"transaction": open_one.transaction, "reason": _OPEN} if open_one else {}
    return {
        "transaction": first.transaction,
        "reason": first.reason,
        "table": first.collection,
        "rows_counted": first.expected,
        "rows_there": first.rows_read,
        "since": _moment(first.written_ms),
    }


def _next(facts: Mapping[str, object]) -> str:
    return (
        f"The next run publishes {facts['transactions_ready']} transactions in "
        f"{facts['batches_ready']} batches, and reads on from there."
    )


def _waits(window: Window, config: PipelineConfig) -> Iterator[str]:
    """Return what the window waits for, in sentences."""
    if window.awaited:
        yield window.awaited
    first, without_end = window.incomplete, window.contents.first_unended()
    if first is not None:
        counts = (
            f": its END counts {first.expected} rows of '{first.collection}', {first.rows_read} "
            "are there"
            if first.rows_read is not None
            else ""
        )
        stops = config.transaction_timeout_action == "stop" or not first.lacks_rows
        act = "stops" if stops else "publishes it in part"
        that_end = {NO_END: "that END", ONLY_BEGUN: "its BEGIN"}.get(first.reason, "its END")
        yield (
            f"Transaction {first.transaction} is not complete ({first.reason}){counts}. "
            f"{window.waiting} transactions wait for it or with it. A run {act} when {that_end}, "
            f"written {_moment(first.written_ms) or 'at an unknown time'}, is older than "
            f"{config.transaction_timeout_seconds} s (lakeingest.transaction.timeout.seconds)."
        )
    elif window.waiting:
        yield (
            f"{window.waiting} transactions wait until every topic is read past them: their rows "
            f"may still be under way.{_UNTIL if _by_rows(window) else ''}"
        )
    if without_end is not None:
        yield (
            f"Transaction {without_end.transaction} is open: {_OPEN}. It waits until the connector "
            "sends the END."
        )


_UNTIL = " That shows a row of a later transaction, and another one written after the delay."


def _by_rows(window: Window) -> bool:
    """Return whether rows alone show which transactions are over."""
    return window.in_the_way is not None and is_by_rows(window.in_the_way.position)


def _reloads(head: Publication) -> Iterator[str]:
    """Return what readers see of the tables that are loaded anew."""
    if head.reloads:
        names = ", ".join(sorted(head.reloads))
        yield (
            f"To be loaded anew: {names}. Readers see what was loaded before, until a batch has "
            "every row of the topics again."
        )


def _nothing_left(head: Publication) -> str:
    if not head.reloads:
        return "What is left in the topics changes no table."
    streams = head.frontier.end_position
    awaited = "next transaction" if streams else "first transaction after the snapshot"
    return f"What is left in the topics waits for the {awaited}."


def _holder(head: Publication) -> Sequence[str]:
    """Return who holds the lake."""
    if head.released or not head.batch:
        return ()
    return (
        f"Run {head.run} holds the lake: it is at work, or it was killed. The next run takes over, "
        "and the other one stops before it publishes anything more.",
    )


def _moment(ms: int) -> str | None:
    if not ms:
        return None
    return datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="seconds")
