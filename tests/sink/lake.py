"""A table of the contract tests: payloads written by hand, applied as one writer's batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.commit_note import CommitNote, token
from lakeingest.engine.delta import log as delta_log
from lakeingest.engine.hudi import table as hudi_table
from lakeingest.folders import LakeFolders
from lakeingest.frame_schemas import FIRST_OP, LINK, MetadataColumns
from lakeingest.position import after
from lakeingest.sink.contract import Changeset, Sink, TableState
from lakeingest.sink.delta.sink import DeltaSink
from lakeingest.sink.settings import SinkSettings
from tests.notes import commit_note
from tests.recordings.rust import queried

COLLECTION = "public.docs"
PIPELINE = "contract"
NAMES = MetadataColumns()
META = (
    f"{NAMES.position} STRING, {NAMES.deleted} BOOLEAN, "
    f"{NAMES.column_positions} MAP<STRING,STRING>, {FIRST_OP} STRING, {LINK} STRING"
)
"""What a payload has besides its columns."""
DDL = "id BIGINT, n INT, body STRING, blob BINARY, tags ARRAY<STRING>"
FILLABLE = ("body", "blob", "tags", "bo.dy")


NewSink = Callable[..., Sink]
"""Binds a new sink to the same folder: ``hard``, ``null_missing`` and ``pipeline``."""


def sink_settings(
    root: str, *, paths: Mapping[str, str] | None = None, **options: Any
) -> SinkSettings:
    """Return the settings of a sink in the folder ``root``; ``options`` as ``SinkSettings``."""
    given = {"pipeline": PIPELINE, "names": NAMES, **options}
    return SinkSettings(folders=LakeFolders(root, paths or {}), **given)


def at(number: int) -> str:
    """Return the position of change ``number``."""
    return after(0, number)


@dataclass(frozen=True)
class Payload:
    """The net change of one key; without ``values`` it is a delete.

    Attributes:
        id: The key.
        position: Number of the change.
        values: Values by column; those that are not given are NULL.
        older: Columns with a position of their own.
        first: Operation of the key's first change in the batch.
    """

    id: int
    position: int
    values: Mapping[str, object] | None = None
    older: Mapping[str, str] = field(default_factory=dict)
    first: str = "u"


def insert(id_: int, position: int, **values: object) -> Payload:
    """Return a new row."""
    return Payload(id_, position, values, first="c")


def update(id_: int, position: int, **values: object) -> Payload:
    """Return an update; every fillable column that is not given is unavailable."""
    return Payload(id_, position, values, {name: "!" for name in FILLABLE if name not in values})


def delete(id_: int, position: int) -> Payload:
    """Return a delete."""
    return Payload(id_, position, None, first="d")


class Lake:
    """One table of a sink, written by one writer."""

    def __init__(
        self, spark: SparkSession, new_sink: NewSink, options: Mapping[str, object]
    ) -> None:
        """Bind to a folder through ``new_sink``."""
        self.spark = spark
        self.options = dict(options)
        self._new_sink = new_sink
        self.sink = new_sink(**self.options)
        self.state: TableState | None = None
        self.batch = 0
        self.partition: tuple[str, ...] = ()

    def restart(self, **options: object) -> None:
        """Forget everything and read the state from the lake, as a new run does."""
        self.sink = self._new_sink(**{**self.options, **options})
        self.state = self.sink.state(COLLECTION)

    def note(self, batch: int, *, writer: int = 1, run: str = "run 1") -> CommitNote:
        """Return what the commit of a batch says about itself."""
        end = {"end_offset": batch * 100, "end_position": at(1000 + batch)}
        return commit_note(
            COLLECTION, pipeline=PIPELINE, run=run, writer=writer, batch=batch, **end
        )

    def apply(self, *payloads: Payload, ddl: str = DDL, floor: str = "") -> TableState:
        """Apply the next batch."""
        self.batch += 1
        with_changes = self.changeset(*payloads, ddl=ddl, floor=floor)
        self.state = self.sink.apply(with_changes, self.note(self.batch), self.state)
        return self.state

    def changeset(self, *payloads: Payload, ddl: str = DDL, floor: str = "") -> Changeset:
        """Return payloads for this table."""
        return replace(changeset(self.spark, payloads, ddl, floor), partition=self.partition)

    def head(self) -> DataFrame:
        """Read the table with tombstones and metadata."""
        assert self.state is not None
        return self.sink.read(COLLECTION, self.state.version)

    def raw(self) -> DataFrame:
        """Read the table as any reader of Hudi finds it."""
        path = self.sink.path(COLLECTION)
        return self.spark.read.format("hudi").options(**hudi_table.READ_OPTIONS).load(path)

    def versions(self) -> list[int]:
        """Return the versions that commits made, newest first."""
        path = self.sink.path(COLLECTION)
        log = hudi_table if hudi_table.is_hudi_table(self.spark, path) else delta_log
        return [commit.version for commit in log.commits(self.spark, path)]

    def live(self, *columns: str, version: int | None = None) -> dict[int, tuple[object, ...]]:
        """Return the chosen columns (default ``n``) of the live rows.

        Those of a Delta table's newest version come by delta-rs: Spark takes many times as long.
        """
        names = ("id", *(columns or ("n",)))
        if isinstance(self.sink, DeltaSink) and version is None and not self.partition:
            assert self.state is not None
            at = DeltaTable(self.sink.path(COLLECTION), version=self.state.version)
            listed = ", ".join(f'"{name.strip("`")}"' for name in names)
            query = f'SELECT {listed} FROM t WHERE NOT "{NAMES.deleted}"'  # noqa: S608
            rows: Sequence[tuple[Any, ...]] = [*zip(*queried(at, query).values(), strict=True)]
        else:
            frame = self.head() if version is None else self.sink.read(COLLECTION, version)
            rows = frame.where(~F.col(NAMES.deleted)).select(*names).collect()
        by_key = {row[0]: tuple(map(_plain, row[1:])) for row in rows}
        assert len(by_key) == len(rows), "a key is in the table twice"
        return by_key

    def everything(self, version: int) -> list[str]:
        """Return all rows of a version, comparable."""
        frame = self.sink.read(COLLECTION, version)
        return sorted(row[0] for row in frame.select(F.to_json(F.struct("*"))).collect())


def _plain(value: object) -> object:
    return bytes(value) if isinstance(value, bytearray) else value


@cache
def _names(spark: SparkSession, ddl: str) -> tuple[str, ...]:
    return tuple(spark.createDataFrame([], ddl).schema.fieldNames())


def changeset(
    spark: SparkSession, payloads: Sequence[Payload], ddl: str = DDL, floor: str = ""
) -> Changeset:
    """Return payloads as ``payload/`` hands them to a sink."""
    columns = _names(spark, ddl)
    key = columns[0]
    fillable = tuple(name for name in FILLABLE if name in columns)
    rows = []
    for item in payloads:
        values = {key: item.id, **(item.values or {})}
        older = {name: place for name, place in item.older.items() if name in fillable} or None
        given = tuple(values.get(name) for name in columns)
        rows.append((*given, at(item.position), item.values is None, older, item.first, None))
    positions = [at(item.position) for item in payloads]
    return Changeset(
        frame=spark.createDataFrame(rows, f"{ddl}, {META}"),
        columns=columns,
        key=(key,),
        fillable=fillable,
        floor=floor,
        low=min(positions, default=""),
        high=max([*positions, floor]),
        rows=len(rows),
        inserts_only=all(item.first in ("c", "r") for item in payloads),
        masked=any(item.older for item in payloads),
        deletes=any(item.values is None for item in payloads),
        size=1000,
    )


def successor(note: CommitNote, writer: int, run: str) -> CommitNote:
    """Return a note of the same batch by another writer."""
    return replace(note, token=token(writer, note.batch), run=run)
