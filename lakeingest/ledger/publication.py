"""Define publications and ledger entries as plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lakeingest.folders import load_of
from lakeingest.position.epochs import Epoch

PUBLICATION, CLAIM, RELEASE = "publication", "writer", "release"
"""Kinds of ledger entries, as the ledger's commits name them; only a publication has rows."""

EPOCH, TRANSACTION, KEPT = "epoch", "transaction", "kept"
"""Kinds of rows beside a publication's own: an epoch that begins in it, a source transaction of it;
and, written by maintenance, the first publication that is kept (``frame_schemas.LEDGER``)."""


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """The point in the source up to which everything is applied.

    Attributes:
        end_offset: Offset of the newest END applied; -1 before the first transaction.
        end_position: Position above every row applied.
        offsets: Topic and partition to the lowest offset that still has to be read.
        committed_ms: Commit time of the newest transaction applied (milliseconds, source clock).
        streaming: Whether the initial snapshot is applied (or there was none).
        epoch: Epoch of the initial snapshot, and of all transactions that no later epoch holds.
        epochs: Epochs that the transaction topic shows up to ``end_offset``, by number.
        read_offset: Lowest offset of the transaction topic that still has to be read, where it is
            higher than ``end_offset`` says: markers of Kafka's own transactions and foreign records
            lie behind the newest END; -1: an older version did not store it.
        snapshot_run: ``runId`` of the connector that took the initial snapshot; None: unknown.
        snapshot_place: Place in the log that the rows of that snapshot share; empty: unknown.
        earlier_snapshots: ``runId`` and place of the snapshots that were taken before that one and
            count, too: each has tables that the later ones lack.
        topic_ids: Kafka's ids of the topics that were read, where Kafka has ids; an older version
            stored none.
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
    earlier_snapshots: tuple[tuple[str | None, str], ...] = ()
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def low_end(self) -> int | None:
        """Lowest offset of the transaction topic still to be read; None: none was read yet."""
        low = max(self.read_offset, self.end_offset + 1)
        return low if low > 0 else None

    @property
    def newest_epoch(self) -> int:
        """Number of the newest epoch."""
        return max([self.epoch, *(epoch.number for epoch in self.epochs)])

    def with_topic_ids(self, topic_ids: Mapping[str, str]) -> Frontier:
        """Return the frontier with the ids of more topics that were read."""
        return replace(self, topic_ids={**self.topic_ids, **topic_ids})

    def low(self, topic: str, partition: int) -> int | None:
        """Return the lowest offset still to be read; None: none was read yet."""
        return self.offsets.get(topic, {}).get(partition)


@dataclass(frozen=True, kw_only=True)
class Retired:
    """A table that no publication includes any more; its files stay as they were.

    Attributes:
        batch: First publication without the table.
        version: Version of the table in the publication before.
        topic: Topic of the table, which is not read any more.
        offsets: Partition of the topic to the lowest offset that was still to be read.
        epoch: Number of the newest epoch of which it may have rows.
        adopted_at: See ``LakeState.adopted_at``; empty: the table was not adopted.
        path: Its folder, if the folder's name is not the collection's; empty: it is, or an older
            version did not store it.
    """

    batch: int
    version: int
    topic: str
    offsets: Mapping[int, int] = field(default_factory=dict)
    epoch: int = 0
    adopted_at: str = ""
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class Reload:
    """A table that is loaded anew; until that is published, readers see its earlier load.

    Attributes:
        batch: Publication that began it; the new load's folder has its number.
        version: Version of the table in its earlier load.
        path: Folder of the earlier load, as a publication names it.
        topic: Topic of the table, which is read again from its beginning.
        offsets: Partition of the topic to the lowest offset that was still to be read.
    """

    batch: int
    version: int
    path: str
    topic: str
    offsets: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A ledger entry: the moment a batch exists for readers.

    Attributes:
        batch: Number of the publication, from 1.
        token: Fence of the writer that published it.
        writer: Number of that writer.
        run: Identifier of that writer's run.
        tables: Collection to table version.
        paths: Collection to folder, where the folder's name is not the collection's; also of each
            table that was taken up again and is not shown yet (``taken_up``).
        transactions: Number of source transactions in the batch.
        events: Number of their changes, as read.
        jobs: Spark jobs that began between the batch before and this one, of whatever thread; 0:
            unknown. A publication without a batch repeats the number.
        opened: Epochs that begin in the batch.
        frontier: Where the next batch starts.
        schemas: Collection to the source's table as SQL would declare it, where earlier
            publications do not show the same.
        at_ms: The driver's clock (milliseconds; 0: unknown). It decides only how often progress
            alone is published (``apply/window/progress.py``).
        notes: Collection to the note of its table's commit, if the batch changed the table. Only
            the publication's row holds it; it is read when the table's own log has lost it.
        released: Whether every earlier driver has ended properly: none of them writes any more, and
            no published table is ahead of the ledger.
        retired: Tables that were published once and are not read any more.
        reloads: Tables that are loaded anew. For the writer they do not exist yet, so ``tables``
            lacks them.
        read_at: Version of the ledger's table at which this publication was read as the newest;
            -1: it was not read from the ledger.
    """

    batch: int = 0
    token: int = 0
    writer: int = 0
    run: str = ""
    tables: Mapping[str, int] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    transactions: int = 0
    events: int = 0
    jobs: int = 0
    opened: tuple[Epoch, ...] = ()
    frontier: Frontier = field(default_factory=Frontier)
    schemas: Mapping[str, str] = field(default_factory=dict)
    at_ms: int = 0
    notes: Mapping[str, str] = field(default_factory=dict)
    released: bool = False
    retired: Mapping[str, Retired] = field(default_factory=dict)
    reloads: Mapping[str, Reload] = field(default_factory=dict)
    read_at: int = field(default=-1, compare=False)

    @property
    def shown(self) -> dict[str, int]:
        """Version of each table that readers see."""
        return {**{name: table.version for name, table in self.reloads.items()}, **self.tables}

    @property
    def shown_paths(self) -> dict[str, str]:
        """Folders of the tables that readers see, as ``paths``."""
        earlier = {name: table.path for name, table in self.reloads.items() if table.path != name}
        paths = {**earlier, **self.paths}
        return {name: path for name, path in paths.items() if name in self.shown}

    @property
    def taken_up(self) -> frozenset[str]:
        """The tables that were taken up again and that no publication shows yet."""
        return frozenset(self.paths.keys() - self.tables.keys())

    @property
    def loads(self) -> dict[str, int]:
        """Collection to the publication that began its load, of tables that were loaded anew."""
        retired_paths = {name: table.path for name, table in self.retired.items()}
        by_path = {name: load_of(path) for name, path in {**retired_paths, **self.paths}.items()}
        begun = {name: table.batch for name, table in self.reloads.items()}
        return {name: load for name, load in {**by_path, **begun}.items() if load}

    def to_json(self, pipeline: str, kind: str) -> str:
        """Serialise for the metadata of the ledger's commit, from which ``Entry`` is read."""
        entry = replace(self, notes={}, released=False)
        body = {"lakeingest": 1, "pipeline": pipeline, "kind": kind, **asdict(entry)}
        return json.dumps(body, sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One commit of the ledger.

    Attributes:
        pipeline: Pipeline that owns the ledger.
        kind: Publication, or a driver's claim or release.
        publication: The publication. A release repeats the newest one; a claim repeats the newest
            one that its driver had read. Both have their own writer, run and token in it.
        version: Version of the ledger's table that the commit made.
    """

    pipeline: str
    kind: str
    publication: Publication
    version: int = -1

    @property
    def certain(self) -> bool:
        """Whether no earlier entry can hold a newer publication than this one.

        For a claim: whether nothing was committed between the read of the head and the claim.
        """
        return self.kind != CLAIM or 0 <= self.publication.read_at == self.version - 1

    @classmethod
    def from_json(cls, text: str | None, version: int = -1) -> Entry | None:
        """Read a ledger commit's metadata; return None if lakeingest did not write it."""
        try:
            body: Mapping[str, Any] = json.loads(text or "")
        except ValueError:
            return None
        if not isinstance(body, dict) or body.get("lakeingest") != 1 or "kind" not in body:
            return None
        raw = body["frontier"]
        offsets = {topic: _by_number(parts) for topic, parts in raw["offsets"].items()}
        # An older version wrote no epochs, no earlier snapshots, no paths and no retired or
        # reloaded tables.
        epochs = tuple(Epoch(**epoch) for epoch in raw.get("epochs", ()))
        earlier = tuple((run, place) for run, place in raw.get("earlier_snapshots", ()))
        frontier = Frontier(
            **{**raw, "offsets": offsets, "epochs": epochs, "earlier_snapshots": earlier}
        )
        fields = {name: body[name] for name in Publication.__dataclass_fields__ if name in body}
        opened = tuple(Epoch(**epoch) for epoch in body.get("opened", ()))
        retired = {
            name: Retired(**{**item, "offsets": _by_number(item["offsets"])})
            for name, item in body.get("retired", {}).items()
        }
        released = body["kind"] == RELEASE
        reloads = {
            name: Reload(**{**item, "offsets": _by_number(item["offsets"])})
            for name, item in body.get("reloads", {}).items()
        }
        objects = {
            "frontier": frontier,
            "opened": opened,
            "released": released,
            "retired": retired,
            "reloads": reloads,
        }
        return cls(
            pipeline=body["pipeline"],
            kind=body["kind"],
            publication=Publication(**{**fields, **objects}),
            version=version,
        )


def _by_number(parts: Mapping[str, Any]) -> dict[int, int]:
    """Return offsets by partition number, which is text in JSON."""
    return {int(partition): int(offset) for partition, offset in parts.items()}
