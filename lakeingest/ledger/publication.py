"""What a publication says, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Frontier:
    """Up to where everything is applied.

    Attributes:
        end_offset: Offset of the newest END applied; -1 before the first transaction.
        end_position: Position above every row applied.
        offsets: Topic and partition to the lowest offset that still has to be read.
        committed_ms: Commit time of the newest transaction applied (milliseconds, source clock).
        streaming: Whether the initial snapshot is applied (or there was none).
    """

    end_offset: int = -1
    end_position: str = ""
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    committed_ms: int = 0
    streaming: bool = False

    def low(self, topic: str, partition: int) -> int | None:
        """Return the lowest offset still to be read, null when none was read yet."""
        return self.offsets.get(topic, {}).get(partition)


@dataclass(frozen=True)
class Publication:
    """A ledger entry: the moment a batch exists for readers.

    Attributes:
        batch: Number of the publication, from 1.
        token: Fence of the writer that published it.
        writer: Number of that writer.
        run: Its run identifier.
        tables: Collection to table version.
        transactions: Source transactions in it.
        events: Their changes, as read.
        frontier: Where the next batch goes on.
    """

    batch: int = 0
    token: int = 0
    writer: int = 0
    run: str = ""
    tables: Mapping[str, int] = field(default_factory=dict)
    transactions: int = 0
    events: int = 0
    frontier: Frontier = field(default_factory=Frontier)

    def to_json(self, pipeline: str, kind: str) -> str:
        """Serialise for the ledger commit's own metadata, from which the head is read."""
        body = {"lakeingest": 1, "pipeline": pipeline, "kind": kind, **asdict(self)}
        return json.dumps(body, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | None) -> tuple[str, Publication] | None:
        """Read a ledger commit's metadata: pipeline and publication (or the writer's claim)."""
        try:
            body: Mapping[str, Any] = json.loads(text or "")
        except ValueError:
            return None
        if not isinstance(body, dict) or body.get("lakeingest") != 1 or "kind" not in body:
            return None
        raw = body["frontier"]
        offsets = {
            topic: {int(partition): int(offset) for partition, offset in parts.items()}
            for topic, parts in raw["offsets"].items()
        }
        frontier = Frontier(**{**raw, "offsets": offsets})
        fields = {name: body[name] for name in cls.__dataclass_fields__ if name != "frontier"}
        return body["pipeline"], cls(**fields, frontier=frontier)
