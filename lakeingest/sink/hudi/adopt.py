"""Adopt a table that Hudi Streamer wrote: one commit marks it, without a copy of its rows.

The commit adds the metadata columns, which are NULL in the present rows. The commit's note has the
position of these rows (``CommitNote.adopted_at``). After that, only the writes to the table differ
from those to other lakeingest tables (``adopted_table.py``).

Hudi may have stored Debezium's placeholder instead of a value: in table versions 6 and 8 with
merge-on-read, where compaction loses the filled value, and in any version for a change without an
earlier row. The table then no longer has the value. ``toast.missing`` decides, as everywhere: stop,
or NULL. For NULL, the adopting commit writes these rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.commit_note import CommitNote
from lakeingest.engine.hudi.streamer import (
    is_hashed_consistently,
    newest_checkpoint,
    newest_file_ids,
    rows_elsewhere,
    table_properties,
)
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.errors import ConfigError, DataError, TransientError
from lakeingest.sink.contract import TableState
from lakeingest.sink.foreign_files import refuse_tombstones
from lakeingest.sink.hudi.adopted_table import (
    OPERATION,
    ORDERING,
    Placeholders,
    adopted_options,
    key_fields,
    refuse_other_index,
    refuse_other_merge,
    without_placeholders,
)
from lakeingest.sink.hudi.commit import HudiTable
from lakeingest.sink.hudi.sink import HudiSink
from lakeingest.sink.progress import require_ownership


@dataclass(frozen=True)
class HudiAdoption:
    """Adoption of tables for a sink.

    Attributes:
        spark: Session with Hudi's extension.
        sink: Sink that writes the tables after the adoption.
        placeholders: Debezium's forms of an unavailable value.
    """

    spark: SparkSession
    sink: HudiSink
    placeholders: Placeholders

    def pending(self, collection: str) -> bool:
        """Return whether a table still needs its adoption: it exists and belongs to no pipeline.

        Raises:
            ConfigError: The table does not exist, or belongs to another pipeline or collection.
        """
        path = self.sink.path(collection)
        version, note = self.sink.table(collection).newest_note()
        if version < 0:
            message = (
                f"lakeingest.table.{collection}.adopt: there is no Hudi table with a commit at "
                f"'{path}'. Correct the path, or take the setting out to have the table made."
            )
            raise ConfigError(message)
        if note is None:
            return True
        require_ownership(note, self.sink.settings.pipeline, collection, path, HudiTable.kind)
        return False

    def checkpoint(self, collection: str) -> str | None:
        """Return Hudi Streamer's newest checkpoint; None: no commit has one."""
        return newest_checkpoint(self.spark, self.sink.path(collection))

    def version(self, collection: str) -> int:
        """Return the table's newest version; ``adopt`` takes it to detect later commits."""
        version, _ = self.sink.table(collection).newest_note()
        return version

    def check(self, collection: str) -> None:
        """Check that the table can be adopted.

        Args:
            collection: The source table.

        Raises:
            ConfigError: The table merges by other rules, has another index than the configured one,
                lacks the columns of Hudi Streamer, or has tombstones of an earlier adoption beside
                it.
            DataError: The table has placeholders, and they may not become NULL.
        """
        path = self.sink.path(collection)
        properties = table_properties(self.spark, path)
        refuse_other_merge(collection, properties)
        options = adopted_options(properties, self.sink.table(collection).hudi.user_options)
        refuse_other_index(
            collection,
            newest_file_ids(self.spark, path),
            options,
            partial(rows_elsewhere, self.spark, path),
            consistent=is_hashed_consistently(self.spark, path),
        )
        refuse_tombstones(self.spark, path)
        present = self._present_table(collection).read()
        absent = [name for name in (ORDERING, OPERATION) if name not in present.columns]
        if absent:
            message = (
                f"The Hudi table of '{collection}' has no column {', '.join(absent)}, which Hudi "
                "Streamer's PostgresDebeziumSource writes. It was not touched."
            )
            raise ConfigError(message)
        if self.sink.settings.null_missing:
            return
        _, has_placeholder = without_placeholders(present, self.placeholders)
        affected = present.where(has_placeholder).count()
        if affected:
            message = (
                f"{affected} rows of the Hudi table of '{collection}' hold Debezium's placeholder "
                "instead of a value: Hudi stored it where it had no earlier value, or lost one. "
                "The table was not touched. Have the source send these rows whole (an update of "
                "the columns), or set lakeingest.toast.missing=null, which makes them NULL."
            )
            raise DataError(message)

    def adopt(self, collection: str, note: CommitNote, at: int) -> TableState:
        """Adopt the table in one commit.

        Args:
            collection: The source table.
            note: Progress of the table, with ``adopted_at``.
            at: Version of the table before its checkpoint was read.

        Returns:
            The table's state with the commit.

        Raises:
            FencedError: A later run has claimed the table.
            TransientError: The table's first writer has committed after ``at``, and ``note`` does
                not include that commit. Nothing was written.
        """
        path = self.sink.path(collection)
        key = key_fields(table_properties(self.spark, path))
        table = self._present_table(collection)
        version, newest = table.newest_note()
        if version != at and (newest is None or newest.token < note.token):
            message = (
                f"The Hudi table of '{collection}' was written to while it was about to be "
                "adopted. It was not touched. Stop Hudi Streamer for good, and its table services, "
                "and run again."
            )
            raise TransientError(message)
        note = replace(note, collection=collection, key=key)
        previous = TableState(version, newest or note)
        return table.write(self._with_metadata(self._repaired_rows(table)), note, previous)

    def _repaired_rows(self, table: HudiTable) -> DataFrame:
        """Return the rows with placeholders, with NULL in their place."""
        present = table.read()
        _, has_placeholder = without_placeholders(present, self.placeholders)
        affected = present.where(
            has_placeholder if self.sink.settings.null_missing else F.lit(False)
        )
        rows = local_checkpoint(without_placeholders(affected, self.placeholders)[0])
        # Read the rows before the write: it may begin with an upgrade, which moves the files.
        rows.count()
        return rows

    def _present_table(self, collection: str) -> HudiTable:
        """Return the table in its present form, which may lack the metadata columns."""
        return replace(self.sink.table(collection), adopted_at="")

    def _with_metadata(self, rows: DataFrame) -> DataFrame:
        names = self.sink.settings.names
        kinds = dict(zip(names.names, ("string", "boolean", "map<string,string>"), strict=True))
        new = {name: kind for name, kind in kinds.items() if name not in rows.columns}
        return rows.withColumns({n: F.lit(None).cast(kind) for n, kind in new.items()})
