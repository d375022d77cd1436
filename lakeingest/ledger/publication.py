"""What a publication says, as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lakeingest.position.epochs import Epoch

PUBLICATION, CLAIM, RELEASE = "publication", "writer", "release"
"""Kinds of ledger entries, as its commits name them; only a publication has rows, too."""

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
        snapshot_run: ``runId`` of the connector that took the initial snapshot; null: unknown.
        snapshot_place: Place in the log that the rows of that snapshot share; empty: unknown.
        read_offset: Offset of the transaction topic up to which nothing is left to read: behind
            ``end_offset`` lie the markers of Kafka's own transactions, and records of nobody's;
            -1: an older version did not say.
        topic_ids: Kafka's ids of the topics of which something was read, where it has any; an older
            version kept none.
    """

    end_offset: int = -1
    end_position: str = ""
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    committed_ms: int = 0
    streaming: bool = False
    epoch: int = 0
    epochs: tuple[Epoch, ...] = ()
    read_offset: int = -1
    snapshot_run: str | None = None
    snapshot_place: str = ""
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def low_end(self) -> int | None:
        """Lowest offset of the transaction topic still to be read; None when none was read yet."""
        low = max(self.read_offset, self.end_offset + 1)
        return low if low > 0 else None

    @property
    def newest_epoch(self) -> int:
        """Number of the newest epoch."""
        return max([self.epoch, *(epoch.number for epoch in self.epochs)])

    def with_topic_ids(self, read: Mapping[str, str]) -> Frontier:
        """Return it with the ids of topics that were read."""
        return replace(self, topic_ids={**self.topic_ids, **read})

    def low(self, topic: str, partition: int) -> int | None:
        """Return the lowest offset still to be read, null when none was read yet."""
        return self.offsets.get(topic, {}).get(partition)


@dataclass(frozen=True)
class Retired:
    """A table that is in no publication any more; its files are as they were.

    Attributes:
        batch: Publication from which on it is gone.
        version: Its version in the one before.
        topic: The topic that is not read any more.
        offsets: Partition to the lowest offset of it that was still to be read.
        epoch: Number of the newest epoch then.
        adopted_at: See ``LakeState.adopted_at``; empty: another writer did not leave it.
    """

    batch: int
    version: int
    topic: str
    offsets: Mapping[int, int] = field(default_factory=dict)
    epoch: int = 0
    adopted_at: str = ""


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
        at_ms: The driver's clock (milliseconds; 0: unknown). Only how often progress alone is
            published depends on it (``apply/window/progress.py``).
        notes: Collection to the note of its table's commit, where the batch changed it. Only in the
            publication's row: it is read when the table's own log has lost it.
        released: Whether every earlier driver has ended properly: none of them writes any more, and
            no published table is ahead of the ledger.
        retired: Tables that were published once and are not read any more.
        read_at: Version of the ledger's table at which it was found to be the newest; -1: it was
            not read from there.
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
    at_ms: int = 0
    notes: Mapping[str, str] = field(default_factory=dict)
    released: bool = False
    retired: Mapping[str, Retired] = field(default_factory=dict)
    read_at: int = field(default=-1, compare=False)

    def to_json(self, pipeline: str, kind: str) -> str:
        """Serialise for the ledger commit's own metadata, from which ``Entry`` is read."""
        told = replace(self, notes={}, released=False)
        body = {"lakeingest": 1, "pipeline": pipeline, "kind": kind, **asdict(told)}
        return json.dumps(body, sort_keys=True)


@dataclass(frozen=True)
class Entry:
    """What one commit of the ledger says.

    Attributes:
        pipeline: Whose ledger it is.
        kind: Publication, or a driver's claim or release.
        publication: The publication. Of a release, the newest one; of a claim, the newest one that
            its driver knew of; of both, with the entry's own writer, run and token.
        version: That of the ledger's table, which the commit made.
    """

    pipeline: str
    kind: str
    publication: Publication
    version: int = -1

    @property
    def certain(self) -> bool:
        """Whether no publication can be newer than the entry's.

        Of a claim: nothing was committed between the reading of the head and the claim.
        """
        return self.kind != CLAIM or 0 <= self.publication.read_at == self.version - 1

    @classmethod
    def from_json(cls, text: str | None, version: int = -1) -> Entry | None:
        """Read a ledger commit's metadata; null where it is not one of ours."""
        try:
            body: Mapping[str, Any] = json.loads(text or "")
        except ValueError:
            return None
        if not isinstance(body, dict) or body.get("lakeingest") != 1 or "kind" not in body:
            return None
        raw = body["frontier"]
        offsets = {topic: _by_number(parts) for topic, parts in raw["offsets"].items()}
        # An older version knew no epochs, no paths and no retired tables.
        epochs = tuple(Epoch(**epoch) for epoch in raw.get("epochs", ()))
        frontier = Frontier(**{**raw, "offsets": offsets, "epochs": epochs})
        fields = {name: body[name] for name in Publication.__dataclass_fields__ if name in body}
        opened = tuple(Epoch(**epoch) for epoch in body.get("opened", ()))
        retired = {
            name: Retired(**{**told, "offsets": _by_number(told["offsets"])})
            for name, told in body.get("retired", {}).items()
        }
        released = body["kind"] == RELEASE
        own = {"frontier": frontier, "opened": opened, "released": released, "retired": retired}
        return cls(body["pipeline"], body["kind"], Publication(**{**fields, **own}), version)


def _by_number(parts: Mapping[str, Any]) -> dict[int, int]:
    """Return offsets by partition, which JSON has as text."""
    return {int(partition): int(offset) for partition, offset in parts.items()}
