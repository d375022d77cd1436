"""What Hudi is told when we write: one frozen table, each option with its reason.

Hudi's defaults are made for few large commits. Ours are small, one after another, with every row
decided before it is written, so that what is left for the engine is to put rows into files. Figures
are of 100 rows into 10,000, on two cores (defaults: COW 1.2 s, MOR 0.85 s; with these 0.31 and
0.23 s).

How files are written is the user's, and comes before ours. What a row is, what its key is and which
of two rows is the newer one is not, whatever the configuration lets through: it is laid over what
the user gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lakeingest.engine.hudi_table import METADATA_KEY, METADATA_PREFIX
from lakeingest.errors import ConfigError
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.sink.contract import CommitNote
from lakeingest.sink.hudi.partition import folder_names, partition_options


class TableType(Enum):
    """Hudi's two ways to keep a table."""

    COPY_ON_WRITE = "COPY_ON_WRITE"
    MERGE_ON_READ = "MERGE_ON_READ"


@dataclass(frozen=True)
class HudiSettings:
    """How a pipeline's Hudi tables are kept.

    Attributes:
        table_type: Fixed when a table is made.
        given: Options of the user's own (``hoodie.*``) for files, index and table services. Kept
            out of ``repr``: a lock's password may be among them.
    """

    table_type: TableType = TableType.MERGE_ON_READ
    given: Mapping[str, str] = field(default_factory=dict, repr=False)


WRITING = {
    # A web server in the driver for each write.
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.upsert.shuffle.parallelism": "2",
    "hoodie.insert.shuffle.parallelism": "2",
    # A changeset has one row per key.
    "hoodie.combine.before.upsert": "false",
    "hoodie.combine.before.insert": "false",
    # What a publication points to must stay readable; Delta's VACUUM is the user's, too.
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.datasource.compaction.async.enable": "false",
    "hoodie.compact.inline": "false",
    # By then the commit has landed: an error would stop the run with the table ahead of the ledger,
    # and the next commit has the service tried again.
    "hoodie.fail.writes.on.inline.table.service.exception": "false",
}
"""How any table is written, our own and those of Hudi Streamer's making."""

ALWAYS_OURS = {
    # Types are compared by us, before (``schema_change.py``): Hudi takes a string for an int.
    "hoodie.write.set.null.for.missing.columns": "true",
    "hoodie.datasource.write.commitmeta.key.prefix": METADATA_PREFIX,
    # A cluster's hudi-defaults.conf may turn it on for every write: Hudi would tell a catalog of
    # the table after the commit, and fail the write whose commit has landed if there is none.
    "hoodie.datasource.hive_sync.enable": "false",
    "hoodie.datasource.meta.sync.enable": "false",
}
"""What no setting of the user's changes, in any table."""

_OWN_FILES = {
    # A hash of the key tells the file: no look-up (3 jobs instead of 6), and it needs no metadata.
    "hoodie.index.type": "BUCKET",
    "hoodie.index.bucket.engine": "SIMPLE",
    "hoodie.bucket.index.num.buckets": "4",
    # A table of its own inside the table; it costs 0.4 s a commit and saves listings of thousands
    # of files, which is what a user of object stores with large tables will turn on.
    "hoodie.metadata.enable": "false",
    # Half the size of snappy's for the same work; gzip, the default, costs an eighth more.
    "hoodie.parquet.compression.codec": "zstd",
}
"""How the files of a table that we made lie."""

_OF_BUCKETS = {
    # Only an index of blooms reads them: in a table of 100,000 rows three quarters of what is
    # written, and a tenth of the work. Buckets cannot become such an index; any other index can,
    # and it fails at files without them.
    "hoodie.parquet.bloom.filter.enabled": "false",
}


_ZONE = "hoodie.table.timeline.timezone"


def at_first(*, beside_adopted: bool) -> dict[str, str]:
    """Return what a table of ours is made with; Hudi takes it from the table later.

    Instants are in the machine's zone by default. Where its clock goes back (in autumn, or on the
    next machine) commits would lie before those that are there: hidden, and no run could go on. But
    a process of Hudi's has one zone for all tables, so beside a table of Hudi Streamer's, whose
    instants are the machine's, ours are, too.

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
        settings: The pipeline's.
        name: Name of the table.
        key: Its key columns.
        names: Its metadata columns.
        hard: Whether a deleted row is removed from the files.
        partition: Its partition columns.
    """
    ours = {
        **ALWAYS_OURS,
        "hoodie.table.name": name,
        "hoodie.datasource.write.table.type": settings.table_type.value,
        "hoodie.datasource.write.recordkey.field": ",".join(key),
        **partition_options(key, partition),
        # The second guard: whatever we have overlooked, the engine keeps the higher position.
        "hoodie.table.ordering.fields": names.position,
        "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
    }
    if hard:
        ours["hoodie.payload.delete.field"] = names.deleted
        ours["hoodie.payload.delete.marker"] = "true"
    files = {**WRITING, **_OWN_FILES, **folder_names(partition), **settings.given}
    of_index = _OF_BUCKETS if files["hoodie.index.type"].upper() == "BUCKET" else {}
    return {**of_index, **files, **ours}


def commit_options(note: CommitNote) -> dict[str, str]:
    """Return the options that put a note into the commit."""
    return {METADATA_KEY: note.to_json(), "hoodie.datasource.write.operation": "upsert"}


def removed_for_good(collection: str) -> ConfigError:
    """Return the error of a pipeline that would mark deleted rows where Hudi removes them.

    It does so in every table that was made with ``hard`` deletes, whatever a write says of it, and
    their positions would be nowhere.
    """
    return ConfigError(
        f"Hudi table '{collection}' was made with lakeingest.deletes=hard, and Hudi goes on to "
        "remove its deleted rows. Nothing was written. Set lakeingest.deletes=hard again, or load "
        "the table anew under another lakeingest.target.path."
    )
