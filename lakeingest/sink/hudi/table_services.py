"""Configure Hudi's table services: what they may remove, and which settings must not change.

A publication points to a commit of each table. When the cleaner has cleaned beyond that commit,
the newest published snapshot is unreadable (``Cleaner cleaned up the timestamp of interest``; a
savepoint does not help, measured). The cleaner counts commits and does not know publications. It
also counts fences and compactions, so a run that restarts again and again would use up any number
of commits. So would a table whose commit succeeds each time while another table's commit of the
same batch fails. So the user's number counts batches, and before each write the sink adds the
number of other commits. Cleaning by hours or by file versions has no such number, and the
configuration refuses it (``config/hudi/table_services.py``): a table may have no commit for days
while a publication points to it. (Hudi infers these policies from their numbers alone; with the
sink's number beside them it would silently clean by commits.)

Clustering writes rows into other files, and until it completes, Hudi accepts no change of the old
files. When a run clusters with its own commits and is killed meanwhile, the next run would wait for
a clustering that nobody completes. So the next write rolls it back, and a later commit clusters
again. A clustering of another process is left alone, and the run waits for it.

``lakeingest maintain`` cleans, too, but knows which publications are kept, and so the commit down
to which everything must stay (``retention_down_to``). Rejected: to do so after each publication. It
would be a second way to do what users of Hudi configure, schedule and monitor by other means.

Services in other processes (a separate compactor or cleaner) work under Hudi's locks. Their own
configuration decides what they may clean.

The bucket index must not change. With another number of buckets, Hudi looks for a row in another
file, does not find it and writes it a second time (measured), without any error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile

from lakeingest.commit_note import CommitNote
from lakeingest.engine.commit import Commit
from lakeingest.errors import ConfigError
from lakeingest.sink.hudi.unfinished_commits import is_alone

_CLEAN = "hoodie.clean.automatic"
_ARCHIVE = "hoodie.archive.automatic"
_RETAINED = ("hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained")
_KEEP_LEAST, _KEEP_MOST = "hoodie.keep.min.commits", "hoodie.keep.max.commits"

_CLUSTERS = "hoodie.clustering.inline"
_UPDATES = "hoodie.clustering.updates.strategy"
_ROLLBACK_OPTIONS = {
    _UPDATES: "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}
"""Options with which a write rolls back a pending clustering. The strategy alone would lose the
write."""

_DEFAULT_RETAINED = 10
_DEFAULT_MARGIN = 10
"""Hudi's defaults: commits that the cleaner keeps, and how many more the timeline keeps."""

HUDIS_BUCKETS = "256"
"""Hudi's default number of buckets."""

LEAST_RETAINED = 3
"""Batches to retain: the published one, and the two that a table may be ahead of the ledger."""


def retention(user_options: Mapping[str, str], commits: Iterable[Commit]) -> dict[str, str]:
    """Return options that keep the next write from cleaning what a publication points to.

    Args:
        user_options: The user's options.
        commits: The table's commits, newest first; read as far as needed, and not at all when
            cleaning and archiving are off.
    """
    options: dict[str, str] = {}
    cleans = _is_on(user_options, _CLEAN)
    if not cleans and not _is_on(user_options, _ARCHIVE):
        return options
    batches = max(_number(user_options, _RETAINED, _DEFAULT_RETAINED), LEAST_RETAINED)
    # Add one for the commit of the next write.
    retained = _commits_down_to(batches, commits) + 1
    if cleans:
        options[_RETAINED[0]] = str(retained)
    min_commits = max(_number(user_options, (_KEEP_LEAST,), 0), retained + _DEFAULT_MARGIN)
    max_commits = max(_number(user_options, (_KEEP_MOST,), 0), min_commits + _DEFAULT_MARGIN)
    return {**options, _KEEP_LEAST: str(min_commits), _KEEP_MOST: str(max_commits)}


def retention_down_to(version: int, commits: Iterable[Commit]) -> dict[str, str]:
    """Return options that let Hudi clean and archive only what is older than a version.

    Args:
        version: Version that must stay readable.
        commits: The table's commits, newest first; read down to ``version``.
    """
    retained = sum(1 for _ in takewhile(lambda commit: commit.version >= version, commits))
    least = retained + _DEFAULT_MARGIN
    return {
        _RETAINED[0]: str(retained),
        _KEEP_LEAST: str(least),
        _KEEP_MOST: str(least + _DEFAULT_MARGIN),
    }


def unfinished_clustering(options: Mapping[str, str]) -> Mapping[str, str]:
    """Return options that let a write roll back the clustering of a killed lakeingest run.

    Args:
        options: Options of the write.
    """
    own_clustering = _is_on(options, _CLUSTERS) and is_alone(options)
    # A bucket index by consistent hashing has its own strategy, which writes to both files.
    return (
        _ROLLBACK_OPTIONS
        if own_clustering and bucket_engine(options) is None and _UPDATES not in options
        else {}
    )


def bucket_engine(options: Mapping[str, str]) -> str | None:
    """Return the engine of the bucket index, in upper case; None: the index is another one."""
    if options.get("hoodie.index.type", "").upper() != "BUCKET":
        return None
    return options.get("hoodie.index.bucket.engine", "SIMPLE").upper()


def layout(options: Mapping[str, str]) -> str:
    """Return the settings of index and folders that assign rows to files, for the note."""
    return ", ".join(part for part in (_index(options), _folders(options)) if part)


def _folders(options: Mapping[str, str]) -> str:
    if not options.get("hoodie.datasource.write.partitionpath.field"):
        return ""
    hive = _is_on(options, "hoodie.datasource.write.hive_style_partitioning")
    return "folders name=value" if hive else "folders value"


def _index(options: Mapping[str, str]) -> str:
    engine = bucket_engine(options)
    if engine is None:
        return "found by looking"
    # With consistent hashing, Hudi itself changes the number of buckets.
    number = options.get("hoodie.bucket.index.num.buckets", HUDIS_BUCKETS)
    buckets = number if engine == "SIMPLE" else ""
    fields = options.get("hoodie.bucket.index.hash.field", "")
    # Bucket numbers for some partitions, and the rule type that matches these partitions.
    partition_buckets = options.get("hoodie.bucket.index.partition.expressions", "")
    rule_type = (
        options.get("hoodie.bucket.index.partition.rule.type", "") if partition_buckets else ""
    )
    return " ".join(
        part for part in ("bucket", engine, buckets, fields, rule_type, partition_buckets) if part
    )


def refuse_other_layout(collection: str, old: str, target: str) -> None:
    """Raise an error if the table was created with another layout.

    Args:
        collection: The source table.
        old: Layout in the table's note; empty: unknown or not fixed.
        target: Layout of the next write's options.

    Raises:
        ConfigError: The layouts differ.
    """
    if old and old != target:
        message = (
            f"The index of Hudi table '{collection}' is '{old}'; the configuration (hoodie.index.*,"
            " hoodie.bucket.index.*, of a partitioned table also "
            f"hoodie.datasource.write.hive_style_partitioning) says '{target}'. It is fixed when a "
            "table is made, otherwise rows would be there twice. Nothing was written. Set it back, "
            "or have the table made anew under another lakeingest.target.path."
        )
        raise ConfigError(message)


def _commits_down_to(batches: int, commits: Iterable[Commit]) -> int:
    """Return the number of commits from the newest one down to the n-th newest batch's last one."""
    number = 0
    batch_numbers: set[int] = set()
    for commit in commits:
        number += 1
        note = CommitNote.of_rows(commit.metadata)
        if note is not None:
            batch_numbers.add(note.batch)
        if len(batch_numbers) == batches:
            break
    # A young table has fewer batches. Count each absent batch as one future commit.
    return number + batches - len(batch_numbers)


def _is_on(options: Mapping[str, str], key: str) -> bool:
    return options.get(key, "false").lower() == "true"


def _number(options: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    """Return the first number that the options have under one of ``names``.

    Raises:
        ConfigError: The value is not an integer.
    """
    for name in names:
        if name in options:
            try:
                return int(options[name])
            except ValueError:
                message = f"{name} must be a whole number."
                raise ConfigError(message) from None
    return default
