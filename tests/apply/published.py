"""What a small lake shows, read by delta-rs: a look at a table took Spark a second (measured).

What judges the writing is read so; our own reader has tests of its own (``tests/reader``, and
``tests/recordings``, which hold it equal to other engines). It reads what delta-rs cannot, too:
Hudi tables, and those with features or types that are not the same everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from lakeingest.folders import LEDGER_FOLDER
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.reader import Snapshot, open_lake

Values = dict[int, Any]
"""Key to value of a table's rows."""

_NEWEST = "SELECT tables, paths FROM t WHERE kind = 'publication' ORDER BY batch DESC LIMIT 1"
_ROWS = f'SELECT "id", "v" FROM t WHERE NOT "{MetadataColumns("_").deleted}"'  # noqa: S608
_FEATURES = ["deletionVectors"]
_PLAIN_TYPES = {"short", "integer", "long", "double", "string"}


def table(spark: SparkSession, lake: Path, collection: str) -> Values:
    """Return a table of the newest publication."""
    return tables(spark, lake, [collection])[collection]


def tables(
    spark: SparkSession, lake: Path, names: Collection[str] | None = None
) -> dict[str, Values]:
    """Return tables of the newest publication, by default all."""
    (row,) = _queried(lake / LEDGER_FOLDER, None, _NEWEST)
    versions, folders = dict(row["tables"]), dict(row["paths"] or ())
    read: dict[str, Values] = {}
    snapshot: Snapshot | None = None
    for name in sorted(versions if names is None else names):
        folder = lake / folders.get(name, name)
        if _is_plain(folder, versions[name]):
            read[name] = _values(folder, versions[name])
        else:
            snapshot = snapshot or open_lake(spark, str(lake)).snapshot()
            read[name] = _values_by_our_reader(snapshot, name)
    return read


def read_table(spark: SparkSession, lake: Path, collection: str) -> Values:
    """Return a table of the newest publication, as users read it."""
    return _values_by_our_reader(open_lake(spark, str(lake)).snapshot(), collection)


def history(spark: SparkSession, lake: Path) -> Mapping[int, Mapping[str, Values]]:
    """Return the tables of each publication that is kept."""
    snapshots = open_lake(spark, str(lake)).snapshots()
    shown = {
        snapshot.batch: {
            name: _values(Path(snapshot.folder(name)), version)
            if _is_plain(Path(snapshot.folder(name)), version)
            else _values_by_our_reader(snapshot, name)
            for name, version in snapshot.versions.items()
        }
        for snapshot in snapshots
    }
    assert len(shown) == len(snapshots), "two publications have one number"
    return shown


def _is_plain(folder: Path, version: int) -> bool:
    """Return whether delta-rs and Spark show a table's ``id`` and ``v`` alike."""
    if not (folder / "_delta_log").is_dir():
        return False
    at = DeltaTable(str(folder), version=version)
    types = {field.name: str(field.type.type) for field in at.schema().fields}
    protocol = at.protocol()
    is_readable = protocol.min_reader_version == 1 or protocol.reader_features == _FEATURES
    return is_readable and {types.get("id"), types.get("v")} <= _PLAIN_TYPES


def _values(folder: Path, version: int) -> Values:
    return _by_key(_queried(folder, version, _ROWS))


def _values_by_our_reader(snapshot: Snapshot, name: str) -> Values:
    return _by_key([row.asDict() for row in snapshot.table(name).collect()])


def _by_key(rows: Sequence[Mapping[str, Any]]) -> Values:
    values = {row["id"]: row["v"] for row in rows}
    assert len(values) == len(rows), "a key stands in two rows"
    return values


def _queried(folder: Path, version: int | None, query: str) -> list[dict[str, Any]]:
    at = DeltaTable(str(folder), version=version)
    found = QueryBuilder().register("t", at).execute(query).read_all()
    columns = [found.column(name).to_pylist() for name in found.schema.names]
    return [dict(zip(found.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
