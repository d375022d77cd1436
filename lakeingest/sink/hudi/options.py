"""Define Hudi's write options: one fixed table, each option with its reason.

Hudi's defaults suit few large commits. The sink makes many small commits, one after another, and
decides every row before the write. So Hudi only has to put rows into files. The figures are for
100 rows into 10,000, on two cores (defaults: COW 1.2 s, MOR 0.85 s; with these options 0.31 and
0.23 s).

The user may set how files are written; these options override those of lakeingest. The user may not
set what a row is, what its key is and which of two rows is newer. These options override the user's
options, whatever the configuration accepts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lakeingest.commit_note import CommitNote
from lakeingest.engine.hudi.table import METADATA_KEY, METADATA_PREFIX
from lakeingest.errors import ConfigError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.sink.hudi.partition import folder_names, partition_options


class TableType(Enum):
    """Hudi's two table types."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


@dataclass(frozen=True)
class HudiSettings:
    """Settings of a pipeline's Hudi tables.

    Attributes:
        table_type: Table type, fixed when a table is created.
        user_options: The user's options (``hoodie.*``) for files, index and table services. Not in
            ``repr``, because they may contain a lock's password.
    """

    table_type: TableType = TableType.MERGE_ON_READ
    user_options: Mapping[str, str] = field(default_factory=dict, repr=False)


WRITING = {
    # Otherwise each write starts a web server in the driver.
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    # A changeset has one row per key.
    "hoodie.combine.before.upsert": "false",
    "hoodie.combine.before.insert": "false",
    # A publication's commits must stay readable. The user cleans; with Delta, the user runs VACUUM.
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.compact.inline": "false",
    # The commit is complete before the service runs. An error would stop the run with the table
    # ahead of the ledger, and the next commit retries the service anyway.
    "hoodie.fail.writes.on.inline.table.service.exception": "false",
}
"""Options of writes to any table, whether lakeingest or Hudi Streamer created it."""

ALWAYS_OURS = {
    # The sink compares types before the write (``schema_change.py``): Hudi accepts a string for an
    # int.
    "hoodie.write.set.null.for.missing.columns": "true",
    "hoodie.datasource.write.commitmeta.key.prefix": METADATA_PREFIX,
    # A cluster's hudi-defaults.conf may turn synchronisation on for every write. Hudi would then
    # register the table in a catalog after the commit. Without a catalog the write fails, although
    # its commit is complete.
    "hoodie.datasource.hive_sync.enable": "false",
    "hoodie.datasource.meta.sync.enable": "false",
}
"""Options that the user cannot change, in any table."""

_OWN_FILES = {
    # A hash of the key gives the file: no look-up (3 jobs instead of 6) and no metadata table.
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "4",
    # The metadata table is a separate table inside the table. It costs 0.4 s a commit and saves
    # listings of thousands of files. Users with large tables on object stores will turn it on.
    "hoodie.metadata.enable": "false",
    # zstd: half the size of snappy at the same cost. gzip, the default, costs an eighth more.
    "hoodie.parquet.compression.codec": "zstd",
}
"""Options for the files of a table that lakeingest creates."""

_BUCKET_FILES = {
    # Only a bloom index reads bloom filters. In a table of 100,000 rows they are three quarters of
    # the written bytes and a tenth of the work. A bucket index cannot become a bloom index. Any
    # other index can, and a bloom index fails on files without bloom filters.
    "hoodie.parquet.bloom.filter.enabled": "false",
}


_ZONE = "hoodie.table.timeline.timezone"


def creation_options(*, beside_adopted: bool) -> dict[str, str]:
    """Return the options with which lakeingest creates a table; Hudi stores them in the table.

    Instants are in the machine's time zone by default. When its clock goes back (in autumn, or on
    another machine), new commits would come before the present ones. Hudi would hide them, and no
    run could continue. But a Hudi process has one time zone for all tables. So beside a table of
    Hudi Streamer, whose instants are in the machine's time zone, the tables of lakeingest use that
    time zone, too.

    Args:
        beside_adopted: Whether the pipeline writes to an adopted table.
    """
    return {_ZONE: "LOCAL" if beside_adopted else "UTC"}


def write_options(
    settings: HudiSettings,
    name: str,
    key: tuple[str, ...],
    names: MetadataColumns,
    *,
    hard: bool,
    partition: tuple[str, ...] = (),
) -> dict[str, str]:
    """Return the options of every write to a table.

    Args:
        settings: The pipeline's Hudi settings.
        name: Name of the table.
        key: Columns of the record key.
        names: Names of the metadata columns.
        hard: Whether Hudi removes a deleted row from the files.
        partition: Partition columns of the table.
    """
    fixed_options = {
        **ALWAYS_OURS,
        "hoodie.table.name": name,
        "hoodie.datasource.write.table.type": settings.table_type.value,
        "hoodie.datasource.write.recordkey.field": ",".join(key),
        **partition_options(key, partition),
        # The second guard: if the merge law has an error, Hudi keeps the higher position.
        "hoodie.table.ordering.fields": names.position,
        "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
    }
    if hard:
        fixed_options["hoodie.payload.delete.field"] = names.deleted
        fixed_options["hoodie.payload.delete.marker"] = "true"
    files = {**WRITING, **_OWN_FILES, **folder_names(partition), **settings.user_options}
    bucket_options = _BUCKET_FILES if files["hoodie.index.type"].upper() == "BUCKET" else {}
    return {**bucket_options, **files, **fixed_options}


def commit_options(note: CommitNote) -> dict[str, str]:
    """Return the options that put a note into the commit."""
    return {METADATA_KEY: note.to_json(), "hoodie.datasource.write.operation": "upsert"}


def hard_table_error(collection: str) -> ConfigError:
    """Return the error of a pipeline that keeps deleted rows in a table from which Hudi drops them.

    Hudi drops deleted rows from every table that was created with ``hard`` deletes, whatever the
    options of a write say. Their positions would then be lost.
    """
    return ConfigError(
        f"Hudi table '{collection}' was made with lakeingest.deletes=hard, and Hudi goes on to "
        "remove its deleted rows. Nothing was written. Set lakeingest.deletes=hard again, or load "
        "the table anew under another lakeingest.target.path."
    )
