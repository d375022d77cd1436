"""Make a table ours that Hudi Streamer wrote: one commit that says so, and not one row moved.

The commit adds the metadata columns, which are null in the rows that are there: what they stand
for is in the commit's note (``CommitNote.adopted_at``). From then on the table is one of ours to
everything but the way it is written (``adopted_table.py``).

Where Hudi stored Debezium's placeholder for a value (table versions 6 and 8, merge-on-read: the
fill is lost in compaction; and any version for a change without an earlier row), the value is not
in the table any more. ``toast.missing`` says what becomes of it, as everywhere: stop, or NULL, and
then this commit writes these rows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.hudi_streamer import (
    is_hashed_consistently,
    newest_checkpoint,
    newest_file_ids,
    rows_elsewhere,
    table_properties,
)
from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.errors import ConfigError, DataError, TransientError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.sink.contract import CommitNote, TableState
from lakeingest.sink.foreign_files import refuse_tombstones
from lakeingest.sink.hudi.adopted_table import (
    OPERATION,
    ORDERING,
    adopted_options,
    key_fields,
    refuse_other_index,
    refuse_unlike,
    without_placeholders,
)
from lakeingest.sink.hudi.commit import HudiTable
from lakeingest.sink.hudi.sink import HudiSink
from lakeingest.sink.progress import owned


class HudiAdoption:
    """Adopts tables for a sink.

    Args:
        spark: Session with Hudi's extension.
        sink: Writes them afterwards.
        pipeline: Name of the pipeline.
        names: Names of the metadata columns.
        placeholder: What Debezium sends for a value that it leaves out.
        null_missing: Whether a value that is nowhere to be found becomes NULL.
    """

    def __init__(
        self,
        spark: SparkSession,
        sink: HudiSink,
        pipeline: str,
        names: MetadataColumns,
        *,
        placeholder: str,
        null_missing: bool,
    ) -> None:
        self._spark = spark
        self._sink = sink
        self._pipeline = pipeline
        self._names = names
        self._placeholder = placeholder
        self._null_missing = null_missing

    def pending(self, collection: str) -> bool:
        """Tell whether a table is still to be adopted: it is there, and nobody's.

        Raises:
            ConfigError: It is not there, or another pipeline's.
        """
        path = self._sink.path(collection)
        version, note = self._sink.table(collection).newest_note()
        if version is None:
            message = (
                f"lakeingest.table.{collection}.adopt: there is no Hudi table with a commit at "
                f"'{path}'. Correct the path, or take the setting out to have the table made."
            )
            raise ConfigError(message)
        if note is None:
            return True
        owned(note, self._pipeline, collection, path, "Hudi")
        return False

    def checkpoint(self, collection: str) -> str | None:
        """Return Hudi Streamer's newest checkpoint; null where no commit has one."""
        return newest_checkpoint(self._spark, self._sink.path(collection))

    def version(self, collection: str) -> int:
        """Return the table's newest version, by which ``adopt`` sees whether it changed."""
        version, _ = self._sink.table(collection).newest_note()
        return version or 0

    def check(self, collection: str) -> None:
        """See that the table can be adopted.

        Raises:
            ConfigError: It merges by other rules, has another index than the settings say, has not
                the columns of Hudi Streamer, or tombstones of an earlier adoption lie beside it.
            DataError: It holds placeholders, and they may not become NULL.
        """
        path = self._sink.path(collection)
        properties = table_properties(self._spark, path)
        refuse_unlike(collection, properties)
        options = adopted_options(properties, self._sink.table(collection).settings.given)
        refuse_other_index(
            collection,
            newest_file_ids(self._spark, path),
            options,
            partial(rows_elsewhere, self._spark, path),
            consistent=is_hashed_consistently(self._spark, path),
        )
        refuse_tombstones(self._spark, path)
        present = self._unadopted(collection).read(None)
        absent = [name for name in (ORDERING, OPERATION) if name not in present.columns]
        if absent:
            message = (
                f"The Hudi table of '{collection}' has no column {', '.join(absent)}, which Hudi "
                "Streamer's PostgresDebeziumSource writes. It was not touched."
            )
            raise ConfigError(message)
        if self._null_missing:
            return
        _, had = without_placeholders(present, self._placeholder)
        spoilt = present.where(had).count()
        if spoilt:
            message = (
                f"{spoilt} rows of the Hudi table of '{collection}' hold Debezium's placeholder "
                "instead of a value: Hudi stored it where it had no earlier value, or lost one. "
                "The table was not touched. Have the source send these rows whole (an update of "
                "the columns), or set lakeingest.toast.missing=null, which makes them NULL."
            )
            raise DataError(message)

    def adopt(self, collection: str, note: CommitNote, at: int) -> TableState:
        """Make the table ours, in one commit.

        Args:
            collection: The source table.
            note: Its progress, with ``adopted_at``.
            at: The table's version from before its checkpoint was read.

        Raises:
            FencedError: A later run has the table.
            TransientError: Its first writer has committed since ``at``; ``note`` knows nothing of
                that. Nothing was written.
        """
        path = self._sink.path(collection)
        key = key_fields(table_properties(self._spark, path))
        table = self._unadopted(collection)
        version, found = table.newest_note()
        if (version or 0) != at and (found is None or found.token < note.token):
            message = (
                f"The Hudi table of '{collection}' was written to while it was about to be "
                "adopted. It was not touched. Stop Hudi Streamer for good, and its table services, "
                "and run again."
            )
            raise TransientError(message)
        note = replace(note, collection=collection, key=key)
        previous = TableState(version or 0, found or note)
        return table.write(self._with_metadata(self._mended(table)), note, previous)

    def _mended(self, table: HudiTable) -> DataFrame:
        """Return the rows whose placeholders become NULL."""
        present = table.read(None)
        _, had = without_placeholders(present, self._placeholder)
        spoilt = present.where(had if self._null_missing else F.lit(False))
        rows = local_checkpoint(without_placeholders(spoilt, self._placeholder)[0])
        # Read before the write: it may begin with an upgrade, which moves the files away.
        rows.count()
        return rows

    def _unadopted(self, collection: str) -> HudiTable:
        """Return the table as it is: perhaps without the metadata columns."""
        return replace(self._sink.table(collection), last=(), adopted_at="")

    def _with_metadata(self, rows: DataFrame) -> DataFrame:
        names = self._names
        kinds = dict(zip(names.names, ("string", "boolean", "map<string,string>"), strict=True))
        new = {name: kind for name, kind in kinds.items() if name not in rows.columns}
        return rows.withColumns({n: F.lit(None).cast(kind) for n, kind in new.items()})
