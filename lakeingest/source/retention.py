"""What a topic's own settings may take away before a run reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_SHORT_HOURS = 24.0
"""A run that stops on a Friday evening is noticed later than that."""

_NAMED = 3


@dataclass(frozen=True)
class Retention:
    """How long a topic keeps its records.

    Attributes:
        hours: After which it removes them (``retention.ms``); None: never.
        compacted: Whether it removes older records of a key (``cleanup.policy``).
    """

    hours: float | None = None
    compacted: bool = False


def retention_risks(topics: Mapping[str, Retention]) -> Iterator[str]:
    """Yield what of these topics may be lost, one line for all topics with the same risk."""
    compacted = [topic for topic, retention in topics.items() if retention.compacted]
    if compacted:
        yield (
            f"{_listed(compacted)} {'is' if len(compacted) == 1 else 'are'} compacted: a "
            "transaction that lost a record to compaction never becomes complete. Set "
            "cleanup.policy=delete"
        )
    short = {
        topic: retention.hours
        for topic, retention in topics.items()
        if retention.hours is not None and retention.hours < _SHORT_HOURS
    }
    if short:
        yield (
            f"{_listed(list(short))} {'keeps' if len(short) == 1 else 'keep'} records for "
            f"{min(short.values()):g} hours only (retention.ms): a pipeline that stands still for "
            "longer loses them and stops"
        )


def _listed(topics: list[str]) -> str:
    shown = ", ".join(sorted(topics)[:_NAMED])
    return shown if len(topics) <= _NAMED else f"{shown} and {len(topics) - _NAMED} more topics"
