"""What a publication says, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lakeingest.position.epochs import Epoch

PUBLICATION, CLAIM = "publication", "writer"
"""Kinds of ledger entries, as its rows and its commits name them."""

EPOCH = "epoch"
"""Kind of a row beside a publication: an epoch begins in it."""


@dataclass(frozen=True)
class Frontier:
    """Up to where everything is applied.

    Attributes:
        end_offset: Offset of the newest END applied; -1 before the first transaction.
        end_position: Position above every row applied.
        offsets: Topic and partition to the lowest offset that still has to be read.
        committed_ms: Commit time of the newest transaction applied (milliseconds, source clock).
        streaming: Whether the initial snapshot is applied (or there was none).
        epoch: Epoch of the initial snapshot, and of all that no later one holds.
        epochs: Those that the transaction topic has told of up to ``end_offset``, by number.
    """

    end_offset: int = -1
    end_position: str = ""
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    committed_ms: int = 0
    streaming: bool = False
    epoch: int = 0
    epochs: tuple[Epoch, ...] = ()

    @property
    def newest_epoch(self) -> int:
        """Number of the newest epoch."""
        return max([self.epoch, *(epoch.number for epoch in self.epochs)])

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
        paths: Collection to folder, where that is not the collection's name.
        transactions: Source transactions in it.
        events: Their changes, as read.
        opened: Epochs that begin in it.
        frontier: Where the next batch goes on.
        schemas: Collection to the source's table as SQL would declare it, where it is not as the
            publications before show it.
    """

    batch: int = 0
    token: int = 0
    writer: int = 0
    run: str = ""
    tables: Mapping[str, int] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    transactions: int = 0
    events: int = 0
    opened: tuple[Epoch, ...] = ()
    frontier: Frontier = field(default_factory=Frontier)
    schemas: Mapping[str, str] = field(default_factory=dict)

    def to_json(self, pipeline: str, kind: str) -> str:
        """Serialise for the ledger commit's own metadata, from which ``Entry`` is read."""
        body = {"lakeingest": 1, "pipeline": pipeline, "kind": kind, **asdict(self)}
        return json.dumps(body, sort_keys=True)


@dataclass(frozen=True)
class Entry:
    """What one commit of the ledger says.

    Attributes:
        pipeline: Whose ledger it is.
        published: Whether the commit is a publication; else a driver's claim.
        publication: The publication; of a claim, the newest one that its driver knew of, with the
            claim's own writer, run and token.
    """

    pipeline: str
    published: bool
    publication: Publication

    @classmethod
    def from_json(cls, text: str | None) -> Entry | None:
        """Read a ledger commit's metadata; null where it is not one of ours."""
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
        # An older version knew no epochs and no paths.
        epochs = tuple(Epoch(**epoch) for epoch in raw.get("epochs", ()))
        frontier = Frontier(**{**raw, "offsets": offsets, "epochs": epochs})
        fields = {name: body[name] for name in Publication.__dataclass_fields__ if name in body}
        opened = tuple(Epoch(**epoch) for epoch in body.get("opened", ()))
        publication = Publication(**{**fields, "frontier": frontier, "opened": opened})
        return cls(body["pipeline"], body["kind"] == PUBLICATION, publication)
