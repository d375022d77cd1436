"""What a small lake shows, read by delta-rs: a look at a table took Spark a second (measured).

What judges the writing is read so; our own reader has tests of its own (``tests/reader``, and
``tests/recordings``, which hold it equal to other engines). It reads what delta-rs cannot, too:
Hudi tables, and those with features or types that are not the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakeingest.folders import LEDGER_FOLDER
from lakeingest.ledger.publication import Entry, Publication
from lakeingest.reader import Snapshot, open_lake
from tests.recordings.rust import DELETED, queried

Values = dict[int, Any]
"""Key to value of a table's rows."""

_NEWEST = "SELECT tables, paths FROM t WHERE kind = 'publication' ORDER BY batch DESC LIMIT 1"
_ENTRIES = """
    SELECT kind, batch, tables, paths FROM t WHERE kind IN ('publication', 'kept') ORDER BY batch
"""
_ROWS = f'SELECT "id", "v" FROM t WHERE NOT "{DELETED}"'  # noqa: S608
_FEATURES = ["deletionVectors"]
_PLAIN_TYPES = {"short", "integer", "long", "double", "string"}


def publication_of(text: str) -> Publication:
    """Return the publication that the text of an entry of the ledger holds."""
    entry = Entry.from_json(text)
    assert entry is not None
    return entry.publication


def table(spark: SparkSession, lake: Path, collection: str) -> Values:
    """Return a table of the newest publication."""
    return tables(spark, lake, [collection])[collection]


def tables(
    spark: SparkSession, lake: Path, names: Collection[str] | None = None
) -> dict[str, Values]:
    """Return tables of the newest publication, by default all."""
    newest = queried(DeltaTable(str(lake / LEDGER_FOLDER)), _NEWEST)
    versions, folders = dict(newest["tables"][0]), dict(newest["paths"][0] or ())
    snapshot = cache(lambda: open_lake(spark, str(lake)).snapshot())

    def ours(name: str) -> Values:
        return _values_by_our_reader(snapshot(), name)

    return {
        name: _values(lake / folders.get(name, name), versions[name], partial(ours, name))
        for name in sorted(versions if names is None else names)
    }


def read_table(spark: SparkSession, lake: Path, collection: str) -> Values:
    """Return a table of the newest publication, as users read it."""
    return read_tables(spark, lake, [collection])[collection]


def read_tables(spark: SparkSession, lake: Path, collections: Iterable[str]) -> dict[str, Values]:
    """Return tables of the newest publication, as users read them, by one look at the ledger."""
    snapshot = open_lake(spark, str(lake)).snapshot()
    return {name: _values_by_our_reader(snapshot, name) for name in collections}


def history(spark: SparkSession, lake: Path) -> Mapping[int, Mapping[str, Values]]:
    """Return the tables of each publication that is kept.

    Where publications went, or tables lie elsewhere, our reader says which are kept, and where.
    """
    entries = queried(DeltaTable(str(lake / LEDGER_FOLDER)), _ENTRIES)
    opened = cache(lambda: open_lake(spark, str(lake)).snapshots())
    if is_ours := "kept" in entries["kind"] or any(entries["paths"]):
        listed = [(snapshot.batch, snapshot.versions) for snapshot in opened()]
    else:
        listed = [(n, dict(t)) for n, t in zip(entries["batch"], entries["tables"], strict=True)]

    def values(nth: int, name: str, version: int) -> Values:
        folder = Path(opened()[nth].folder(name)) if is_ours else lake / name
        return _values(folder, version, lambda: _values_by_our_reader(opened()[nth], name))

    shown = {
        batch: {name: values(nth, name, version) for name, version in versions.items()}
        for nth, (batch, versions) in enumerate(listed)
    }
    assert len(shown) == len(listed), "two publications have one number"
    return shown


def _values(folder: Path, version: int, by_our_reader: Callable[[], Values]) -> Values:
    """Return the rows as delta-rs reads them, or, if it might read them otherwise, as we do."""
    if not (folder / "_delta_log").is_dir():
        return by_our_reader()
    at = DeltaTable(str(folder), version=version)
    if not _is_plain(at):
        return by_our_reader()
    columns = queried(at, _ROWS)
    return _by_key(zip(columns["id"], columns["v"], strict=True))


def _is_plain(at: DeltaTable) -> bool:
    """Return whether delta-rs and Spark show a table's ``id`` and ``v`` alike."""
    types = {field.name: str(field.type.type) for field in at.schema().fields}
    protocol = at.protocol()
    is_readable = protocol.min_reader_version == 1 or protocol.reader_features == _FEATURES
    return is_readable and {types.get("id"), types.get("v")} <= _PLAIN_TYPES


def _values_by_our_reader(snapshot: Snapshot, name: str) -> Values:
    return _by_key((row["id"], row["v"]) for row in snapshot.table(name).collect())


def _by_key(rows: Iterable[tuple[int, Any]]) -> Values:
    pairs = [*rows]
    values = dict(pairs)
    assert len(values) == len(pairs), "a key stands in two rows"
    return values
