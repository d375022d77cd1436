"""Read the tables of a lake as of one publication.

A snapshot is resolved once, from one ledger row, to a version per table. Frames and views are bound
to these versions, so their rows do not change while batches are published. Rejected: read the heads
of the tables. One table could be a batch ahead of another.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lakeingest.commit_note import CommitNote
from lakeingest.engine.commit import Commit
from lakeingest.engine.delta.log import commits
from lakeingest.engine.delta.snapshot import rows_as_of
from lakeingest.engine.hudi import table as hudi_table
from lakeingest.engine.hudi.streamer import with_positions
from lakeingest.errors import UsageError
from lakeingest.folders import LakeFolders
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.named import quoted
from lakeingest.reader.views import Views, view_names
from lakeingest.session import require_hudi


class Snapshot:
    """The tables as of one publication."""

    def __init__(
        self, spark: SparkSession, folders: LakeFolders, row: Row, names: MetadataColumns
    ) -> None:
        """Bind to a publication's row of the ledger."""
        self._spark = spark
        self._folders = folders
        self._row = row
        self._names = names

    def __repr__(self) -> str:
        """Return what a notebook shows of it."""
        return f"<Snapshot: batch {self.batch}, {len(self.versions)} tables>"

    @property
    def batch(self) -> int:
        """Number of the publication."""
        return int(self._row["batch"])

    @property
    def transactions(self) -> int:
        """Number of the source transactions of the publication; it shows the last one's commit."""
        return int(self._row["transactions"] or 0)

    @property
    def versions(self) -> dict[str, int]:
        """Version of each table."""
        return dict(sorted(self._row["tables"].items()))

    def tables(self) -> list[str]:
        """Names of the tables, sorted."""
        return list(self.versions)

    def folder(self, name: str) -> str:
        """Return the folder of a table, which is another one after the table was loaded anew."""
        return self._folders.table(name)

    def key(self, name: str) -> tuple[str, ...]:
        """Return the key columns of a table, from its newest commit."""
        note = self._note(name)
        return note.key if note else ()

    def removes_rows(self, name: str) -> bool:
        """Return whether a table may lack rows that were deleted, instead of marking them."""
        note = self._note(name)
        return bool(note and (note.tombstones or note.floor))

    def table(self, name: str, metadata: bool = False) -> DataFrame:
        """Return a table's rows as the source had them.

        Args:
            name: Collection, such as ``public.orders``.
            metadata: Whether to return tombstones and the metadata columns, too.

        Raises:
            UsageError: The snapshot has no such table.
            ConfigError: It is a Hudi table, and the session has no Hudi.
        """
        versions = self.versions
        if name not in versions:
            listed = ", ".join(versions) or "none"
            message = f"Batch {self.batch} has no table '{name}'; it has: {listed}."
            raise UsageError(message)
        frame = self._at(name, versions[name])
        if metadata:
            return frame
        live = frame.where(~F.col(self._names.deleted))
        return live.drop(*self._names.names, *self._names.keyless)

    def _at(self, name: str, version: int) -> DataFrame:
        path = self.folder(name)
        if not self._is_hudi(name):
            return rows_as_of(self._spark, path, version)
        names = self._names
        frame = hudi_table.rows_of(self._spark, path, version, names)
        note = self._note(name)
        if note is None or not note.adopted_at:
            return frame
        return with_positions(frame, names.position, names.deleted, note.adopted_at)

    def _note(self, name: str) -> CommitNote | None:
        """Return the note of the table's newest commit of lakeingest; None: it has no such one."""
        notes = (CommitNote.from_json(commit.metadata) for commit in self._commits(name))
        return next((note for note in notes if note is not None), None)

    def _commits(self, name: str) -> Iterator[Commit]:
        path = self.folder(name)
        if self._is_hudi(name):
            return hudi_table.commits(self._spark, path)
        return commits(self._spark, path)

    def _is_hudi(self, name: str) -> bool:
        is_hudi = hudi_table.is_hudi_table(self._spark, self.folder(name))
        if is_hudi:
            require_hudi(self._spark, write=False)
        return is_hudi

    def create_views(self, prefix: str = "") -> Views:
        """Create a temporary view per table; see ``view_names``.

        Returns:
            The views' names, and the table that each one shows (``tables``).
        """
        views = Views(view_names(self.versions, prefix))
        for view, name in views.tables.items():
            self.table(name).createOrReplaceTempView(quoted(view))
        return views
