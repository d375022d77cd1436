"""Events into a table by the way of the product: shares, changeset, sink; no part is replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from lakeingest.apply.batch.changeset import changeset
from lakeingest.apply.batch.latest_per_key import latest
from lakeingest.apply.batch.table_part import Fold, TablePart, choose_fold
from lakeingest.apply.batch_stats import BatchStats, batch_stats
from lakeingest.apply.window.summary import summarise
from lakeingest.commit_note import CommitNote
from lakeingest.decode.columns import declared_columns
from lakeingest.decode.encodings import Encodings
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.errors import TransientError
from lakeingest.folders import LakeFolders
from lakeingest.frame_schemas import CHANGE, END
from lakeingest.plan.spec import PipelineSpec, TableSpec, Transactions
from lakeingest.plan.table import tables_with_deferred_order
from lakeingest.sink.contract import Changeset, Sink, TableState
from lakeingest.sink.delta.sink import DeltaSink
from lakeingest.sink.settings import SinkSettings
from tests.law.history import COLLECTION, Case, Change
from tests.notes import commit_note
from tests.recordings.rust import DELETED, queried

DDL = "h BIGINT, id BIGINT, n BIGINT, body STRING, blob BINARY, tags ARRAY<STRING>"
KEY = ("h", "id")
PIPELINE = "law"

Interrupt = Callable[[str, int], None]

_BATCHED = StructType([*CHANGE, StructField("batch", IntegerType())])
_VARYING = {item.name for item in fields(Change)}


def delta_sink(
    spark: SparkSession,
    root: Path,
    *,
    hard: bool,
    null_missing: bool,
    direct: bool = True,
    hides: bool = True,
) -> DeltaSink:
    """Return the sink as a run would make it."""
    settings = SinkSettings(
        folders=LakeFolders(str(root)),
        pipeline=PIPELINE,
        names=PipelineSpec("postgresql", Encodings()).names,
        hard=hard,
        null_missing=null_missing,
    )
    return DeltaSink(spark, settings, direct=direct, deletion_vectors=hides)


class Ingest:
    """One table and the batches that go into it, one after another."""

    def __init__(
        self,
        spark: SparkSession,
        sink: Sink,
        *,
        ddl: str = DDL,
        key: tuple[str, ...] = KEY,
        whole: bool = False,
    ) -> None:
        """Bind to a sink.

        Args:
            spark: Session.
            sink: Where the table is.
            ddl: The table's columns as the source has them now.
            key: Of the table.
            whole: Whether transactions come whole and in the order of their commits.
        """
        self.sink = sink
        self.state: TableState | None = None
        self._spark = spark
        transactions = Transactions.METADATA if whole else Transactions.NONE
        self._spec = PipelineSpec("postgresql", Encodings(), transactions=transactions)
        self._key = key
        self._batch = 0
        self.table = self.columns(ddl)

    def columns(self, ddl: str) -> TableSpec:
        """Change the columns that the source has from here on."""
        schema = self._spark.createDataFrame([], ddl).schema
        columns = declared_columns(schema, self._spec.encodings)
        self.table = TableSpec(COLLECTION, columns, self._key)
        return self.table

    def arriving(self, case: Case, history: int, number: int) -> Iterable[object]:
        """Return what arrives of a case in round ``number``, as ``deliver`` takes it."""
        return case.changes(history, number)

    def number(self, key: Any) -> int:
        """Return which row of a history a key of the table means."""
        return int(key)

    def deliver(self, rounds: Sequence[Iterable[object]]) -> Iterable[int]:
        """Apply each round as one batch; yields its number when it is in the table."""
        frame = self._frame(rounds)
        all_stats = batch_stats(summarise(frame, self._spec.format))
        for number in range(len(rounds)):
            self._apply(
                frame.where(F.col("batch") == number).drop("batch"),
                [stats for stats in all_stats if stats.batch == number],
            )
            yield number

    def one(self, changes: Iterable[Change]) -> TableState:
        """Apply one batch."""
        list(self.deliver([changes]))
        assert self.state is not None
        return self.state

    def live(self, *names: str) -> list[tuple[Any, ...]]:
        """Return columns of the rows that are not deleted, as delta-rs reads them."""
        assert self.state is not None
        at = DeltaTable(self.sink.path(COLLECTION), version=self.state.version)
        listed = ", ".join(f'"{name}"' for name in names)
        columns = queried(at, f'SELECT {listed} FROM t WHERE NOT "{DELETED}"')  # noqa: S608
        return list(zip(*(columns[name] for name in names), strict=True))

    def head(self) -> DataFrame:
        """Read the table with tombstones and metadata."""
        assert self.state is not None
        return self.sink.read(COLLECTION, self.state.version)

    def _frame(self, rounds: Sequence[Iterable[object]]) -> DataFrame:
        rows: list[tuple[object, ...]] = []
        for number, changes in enumerate(rounds):
            for item in changes:
                same = {name: None for name in CHANGE.fieldNames() if name not in _VARYING}
                fixed = {"topic": "t.docs", "partition": 0, "offset": len(rows), "source_ms": 1}
                named = {**same, **fixed, **vars(item), "collection": COLLECTION, "batch": number}
                rows.append(tuple(named[name] for name in _BATCHED.fieldNames()))
        return local_checkpoint(self._spark.createDataFrame(rows, _BATCHED))

    def _apply(self, changes: DataFrame, mine: Sequence[BatchStats]) -> None:
        previous, self._batch = self.state, self._batch + 1
        self.state = self.sink.apply(
            self._payloads(changes, mine), self._note(self._batch), previous
        )

    def _note(self, batch: int, position: str = "") -> CommitNote:
        return commit_note(COLLECTION, batch=batch, pipeline=PIPELINE, end_position=position)

    def _payloads(self, changes: DataFrame, mine: Sequence[BatchStats]) -> Changeset:
        # As ``BatchWriter._commit`` does it.
        previous = self.state
        floors = [stats.floor for stats in mine] + ([previous.note.floor] if previous else [])
        lake = self.sink.read(COLLECTION, previous.version) if previous else None
        floor = max(floors, default="")
        exchanges = self._spec.whole and not tables_with_deferred_order(changes).isEmpty()
        fold = choose_fold(mine, self.table, floor, exchanges=exchanges)
        part = TablePart(self.table, tuple(mine), changes, floor, fold, foreseen=False)
        undecoded = [COLLECTION] if fold is Fold.UNDECODED else []
        counted = [COLLECTION] if not undecoded and part.counts_undecoded else []
        folded = latest(changes, undecoded, counted)
        tombstones_to = previous.note.high if previous and previous.note.tombstones else ""
        return changeset(part, self._spec, lake, folded, tombstones_to)[0]


class EachIngest(Ingest):
    """One table, where each round but the first is a transaction of one batch.

    Attributes:
        interrupt: Called before each of the batch's commits with the table's path and the number of
            its commits so far; may end the writer by an error, after which another one goes on.
    """

    interrupt: Interrupt | None = None

    def deliver(self, rounds: Sequence[Iterable[object]]) -> Iterable[int]:
        """Apply all rounds; yields each one's number while the table is at its version."""
        frame = self._frame(rounds)
        all_stats = batch_stats(summarise(frame, self._spec.format))
        self._apply(
            frame.where(F.col("batch") == 0).drop("batch"),
            [stats for stats in all_stats if stats.batch == 0],
        )
        yield 0
        highest = ""
        notes = []
        for number in range(1, len(rounds)):
            highest = max([highest, *(stats.high for stats in all_stats if stats.batch == number)])
            notes.append(self._note(number + 1, highest))
        made = self._made(frame, [stats for stats in all_stats if stats.batch], notes)
        for number in range(1, len(rounds)):
            self.state = [state for state in made if state.note.batch <= number + 1][-1]
            yield number

    def _made(
        self, frame: DataFrame, stats: Sequence[BatchStats], notes: Sequence[CommitNote]
    ) -> list[TableState]:
        first = self.state
        assert first is not None
        made = [first]
        changes = frame.where(F.col("batch") > 0).withColumn(END, F.col("batch") + 1)
        if self.interrupt is not None:
            interrupted = partial(self.interrupt, self.sink.path(COLLECTION))
            with pytest.raises((KeyboardInterrupt, TransientError)):
                self.sink.apply_each(
                    self._payloads(changes.drop("batch"), stats), notes, first, interrupted
                )
            self.state = self.sink.state(COLLECTION)
            assert self.state is not None
            made += self.sink.commits(COLLECTION, first.version)
            changes = changes.where(F.col(END) > self.state.note.end_offset)
        payloads = self._payloads(changes.drop("batch"), stats)
        assert self.state is not None
        return [*made, *self.sink.apply_each(payloads, notes, self.state)]
