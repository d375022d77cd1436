"""Maintain one Delta table: its tombstones, values of deleted rows, small files and old files.

A deleted row is no row for readers of a snapshot, so to remove it, or its values, changes no
snapshot. The note of such a commit (``maintenance_note``) tells the next run that no other writer
changed rows.

VACUUM takes an age, and knows no publications. A file that a publication's version has was removed,
if at all, by a later commit. So everything is kept that the table had when the version behind the
oldest published one was committed. Delta dates a removal before its commit, by the clock of the
driver, and a commit may take hours: hence the margin. Delta forgets removed files after a while
(``kept_since``). If the oldest version was followed earlier, for example by an OPTIMIZE of a table
that no batch has changed since, nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from functools import partial

from pyspark.sql import functions as F

from lakeingest.commit_note import CommitNote, maintenance_note
from lakeingest.engine.delta.files import (
    HIDES_ROWS,
    listed_sizes,
    may_hide_rows,
    plain_size,
    takes_only_appends,
)
from lakeingest.engine.delta.log import commit_time, created_at, oldest_file_time
from lakeingest.engine.delta.maintenance import SMALL_BYTES, DeltaMaintenance
from lakeingest.errors import ConfigError
from lakeingest.sink.contract import Upkeep
from lakeingest.sink.delta.commit import DeltaLakeTable
from lakeingest.sink.settings import SinkSettings

_MARGIN = timedelta(days=1)

_OLD_LOG = timedelta(days=7)
"""Age of the oldest file in a log up to which no log retention needs a look."""

MANY_FILES = 32
"""Number of small files from which a table is crowded.

Delta joins two files or more, and no two that are more than half full: smaller ones are small.
"""


def is_crowded(table: DeltaLakeTable) -> bool:
    """Return whether a table has many small files; see ``Sink``.

    Each batch adds one to a table that only grows, and Delta lists no more than a hundred. The
    files of different partitions cannot be joined; a partitioned table waits for its turn.
    """
    size = plain_size(table.spark, table.path)
    if size is None or size.files - size.octets // SMALL_BYTES < MANY_FILES:
        return False
    half = SMALL_BYTES // 2
    sizes = listed_sizes(table.spark, table.path)
    # Each file that is not small fills a half or more.
    small = size.files - size.octets // half if sizes is None else sum(n < half for n in sizes)
    return small >= MANY_FILES


def ready_for_versions(table: DeltaLakeTable, note: CommitNote, settings: SinkSettings) -> None:
    """Let a table have deletion vectors, and join its small files where they are many.

    Each batch of versions adds a file or more. The first look brings the newest version to hand.

    Args:
        table: The table.
        note: Note of the first version to be made.
        settings: Settings of the pipeline.

    Raises:
        FencedError: A later writer has claimed the table.
    """
    if is_crowded(table):
        table.refuse_fenced(note)
        _maintenance_of(table, settings).join_small_files()
    may_hide = partial(may_hide_rows, table.spark, table.path)
    if not may_hide(begin=False) and may_hide(begin=True):
        table.refuse_fenced(note)
        _maintenance_of(table, settings).set_missing({HIDES_ROWS: "true"})


def keep_newest(table: DeltaLakeTable, note: CommitNote, settings: SinkSettings) -> None:
    """Have a table that seldom changes keep its newest version, which publications name.

    Args:
        table: The table.
        note: Note of the next version.
        settings: Settings of the pipeline.

    Raises:
        FencedError: A later writer has claimed the table.
    """
    made = oldest_file_time(table.spark, table.path)
    age = datetime.now(timezone.utc) - made if made else timedelta(0)
    if age > _OLD_LOG:
        table.refuse_fenced(note)
        with table.conflicts_explained(note):
            _maintenance_of(table, settings).keep_log(age)


def kept_since(table: DeltaLakeTable, settings: SinkSettings) -> datetime:
    """Return since when a table has kept what its older versions need; see ``Sink``.

    A table that was made later has lost nothing, and must not shorten what the others keep.
    """
    since = _maintenance_of(table, settings).kept_since() + _MARGIN
    made = created_at(table.spark, table.path)
    return datetime.min.replace(tzinfo=timezone.utc) if made and made >= since else since


def tidy(table: DeltaLakeTable, note: CommitNote, upkeep: Upkeep, settings: SinkSettings) -> None:
    """Remove old tombstones and values of deleted rows, then join small files.

    Args:
        table: The table.
        note: Progress of the table.
        upkeep: What to keep and to remove.
        settings: Settings of the pipeline.

    Raises:
        ConfigError: A value cannot be erased, because its column is NOT NULL.
    """
    names, maintenance = settings.names, _maintenance_of(table, settings)
    maintenance.keep_for(upkeep.keeps + _MARGIN, upkeep.oldest)
    if takes_only_appends(table.spark, table.path):
        # Delta refuses a DELETE or an UPDATE of it, even of no row.
        maintenance.join_small_files()
        return
    deleted = F.col(names.deleted)
    if upkeep.tombstones_below:
        maintenance.delete(deleted & (F.col(names.position) < F.lit(upkeep.tombstones_below)))
    if upkeep.erases_values:
        stays = {*note.key, *note.partition, *names.names, *names.keyless, *names.event}
        columns = [item for item in table.read().schema if item.name not in stays]
        if any(not item.nullable for item in columns):
            raise _not_null_error(note.collection, [c.name for c in columns if not c.nullable])
        maintenance.erase([item.name for item in columns], deleted)
    maintenance.join_small_files()
    if upkeep.erases_values:
        # A hidden row is still in its file.
        maintenance.purge_hidden_rows()


def tidy_tombstones(side_table: DeltaLakeTable, upkeep: Upkeep, settings: SinkSettings) -> None:
    """Remove old tombstones from a side table, then join its small files."""
    maintenance = _maintenance_of(side_table, settings)
    if upkeep.tombstones_below:
        maintenance.delete(F.col(settings.names.position) < F.lit(upkeep.tombstones_below))
    maintenance.join_small_files()


def expire(
    table: DeltaLakeTable, settings: SinkSettings, age: timedelta, oldest: int | None = None
) -> None:
    """Delete the files that no version from ``oldest`` on needs.

    Args:
        table: The table.
        settings: Settings of the pipeline.
        age: Keep what the table had in this time.
        oldest: Oldest version that must stay readable; None: no publication has the table.
    """
    maintenance = _maintenance_of(table, settings)
    newest = next((commit.version for commit in table.commits()), -1)
    if oldest is not None and oldest < newest:
        followed = commit_time(table.spark, table.path, oldest + 1)
        if followed is None or followed - _MARGIN < maintenance.kept_since():
            # VACUUM no longer knows which files the oldest version has.
            return
        age = max(age, datetime.now(timezone.utc) - followed)
    maintenance.vacuum(age + _MARGIN)


def _maintenance_of(table: DeltaLakeTable, settings: SinkSettings) -> DeltaMaintenance:
    """Return the maintenance of a table, whose commits carry the pipeline's note."""
    return DeltaMaintenance(table.spark, table.path, maintenance_note(settings.pipeline))


def _not_null_error(collection: str, columns: Iterable[str]) -> ConfigError:
    return ConfigError(
        f"Columns of table '{collection}' were declared NOT NULL, so the values of deleted rows "
        f"cannot be erased: {', '.join(columns)}. Drop the constraint (ALTER COLUMN … "
        "DROP NOT NULL), or remove lakeingest.deletes.values=null."
    )
