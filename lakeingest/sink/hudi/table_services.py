"""Hudi's table services beside publications: what they may throw away, and what cannot be changed.

A publication points to a commit of each table, and a cleaner that passed it makes the newest
published snapshot unreadable (``Cleaner cleaned up the timestamp of interest``; a savepoint does
not help, measured). A cleaner counts commits and knows nothing of publications: the commits that
only shut out older writers count for it, and so do compactions, so a run that is started again and
again would use up any number of them; so would a table whose part of a batch lands each time while
another table's fails. So the number that the user gives is taken for batches, and what it counts
besides is added before each write. Cleaning by hours or by versions of files has no such number and
is refused (``config/config/hudi_services.py``): a table may rest for days while a publication
points to it. (Hudi infers these policies from their numbers alone; with ours beside them it would
clean by commits, without a word.)

Clustering writes rows into other files, and until it is done Hudi accepts no change of the old
ones. Where a run clusters with its own commits and is killed over it, the next one would wait for a
clustering that nobody does: there it is taken back, and done again with a later commit. One that
is done elsewhere is left alone, and waited for.

Rejected: cleaning by a call of our own after a publication. It would be exact, but a second way to
do what users of Hudi configure, schedule and watch by other means.

Services elsewhere (a compactor or cleaner of its own) work under Hudi's locks; what they may clean
is theirs to say.

What cannot be changed is the index by buckets: with another number of them Hudi looks for a row in
another file, does not find it and writes it a second time (measured), without any error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakeingest.engine.commit import Commit
from lakeingest.errors import ConfigError
from lakeingest.sink.contract import CommitNote
from lakeingest.sink.hudi.unfinished_commits import is_alone

_CLEAN = "hoodie.clean.automatic"
_ARCHIVE = "hoodie.archive.automatic"
_RETAINED = ("hoodie.clean.commits.retained", "hoodie.cleaner.commits.retained")
_KEEP_LEAST, _KEEP_MOST = "hoodie.keep.min.commits", "hoodie.keep.max.commits"

_CLUSTERS = "hoodie.clustering.inline"
_UPDATES = "hoodie.clustering.updates.strategy"
_TAKEN_BACK = {
    _UPDATES: "org.apache.hudi.client.clustering.update.strategy.SparkAllowUpdateStrategy",
    "hoodie.clustering.rollback.pending.replacecommit.on.conflict": "true",
}
"""A clustering that was begun gives way to a write. The strategy alone would lose the write."""

_HUDIS_RETAINED = 10
_HUDIS_KEPT = 10
"""Hudi's defaults; its timeline keeps so many commits more than the cleaner does."""

HUDIS_BUCKETS = "256"
"""Hudi's default."""

LEAST_RETAINED = 3
"""Batches: the published one, and the two by which a table may be ahead of the ledger."""


def retention(given: Mapping[str, str], found: Iterable[Commit]) -> dict[str, str]:
    """Return options that let the next write clean nothing that a publication points to.

    Args:
        given: The user's options.
        found: The table's commits, newest first; read as far as needed, not at all where nothing
            is cleaned and archived.
    """
    options: dict[str, str] = {}
    cleans = _is_on(given, _CLEAN)
    if not cleans and not _is_on(given, _ARCHIVE):
        return options
    wanted = max(_number(given, _RETAINED, _HUDIS_RETAINED), LEAST_RETAINED)
    # One more is the commit that is about to be made.
    retained = _commits_down_to(wanted, found) + 1
    if cleans:
        options[_RETAINED[0]] = str(retained)
    least = max(_number(given, (_KEEP_LEAST,), 0), retained + _HUDIS_KEPT)
    most = max(_number(given, (_KEEP_MOST,), 0), least + _HUDIS_KEPT)
    return {**options, _KEEP_LEAST: str(least), _KEEP_MOST: str(most)}


def unfinished_clustering(given: Mapping[str, str]) -> Mapping[str, str]:
    """Return options that let a write take back what a killed run of ours began to cluster.

    Args:
        given: The user's options.
    """
    ours = _is_on(given, _CLUSTERS) and is_alone(given)
    # An index by consistent hashing has a strategy of its own, which writes to both files.
    return _TAKEN_BACK if ours and not _is_by_bucket(given) and _UPDATES not in given else {}


def _is_by_bucket(options: Mapping[str, str]) -> bool:
    return options.get("hoodie.index.type", "").upper() == "BUCKET"


def layout(options: Mapping[str, str]) -> str:
    """Return what of index and folders decides where a row lies, for the commit's note."""
    return ", ".join(part for part in (_index(options), _folders(options)) if part)


def _folders(options: Mapping[str, str]) -> str:
    if not options.get("hoodie.datasource.write.partitionpath.field"):
        return ""
    hive = _is_on(options, "hoodie.datasource.write.hive_style_partitioning")
    return "folders name=value" if hive else "folders value"


def _index(options: Mapping[str, str]) -> str:
    if not _is_by_bucket(options):
        return "found by looking"
    engine = options.get("hoodie.index.bucket.engine", "SIMPLE").upper()
    # Consistent hashing changes its number of buckets by itself.
    buckets = options.get("hoodie.bucket.index.num.buckets", HUDIS_BUCKETS)
    buckets = "" if engine != "SIMPLE" else buckets
    fields = options.get("hoodie.bucket.index.hash.field", "")
    # Numbers of buckets for some partitions, and how these are told.
    some = options.get("hoodie.bucket.index.partition.expressions", "")
    told = options.get("hoodie.bucket.index.partition.rule.type", "") if some else ""
    return " ".join(part for part in ("bucket", engine, buckets, fields, told, some) if part)


def refuse_other_layout(collection: str, was: str, wanted: str) -> None:
    """Stop where the index was another one when the table was made.

    Raises:
        ConfigError: It was.
    """
    if was and was != wanted:
        message = (
            f"The index of Hudi table '{collection}' is '{was}'; the configuration (hoodie.index.*,"
            " hoodie.bucket.index.*, of a partitioned table also "
            f"hoodie.datasource.write.hive_style_partitioning) says '{wanted}'. It is fixed when a "
            "table is made, otherwise rows would be there twice. Nothing was written. Set it back, "
            "or have the table made anew under another lakeingest.target.path."
        )
        raise ConfigError(message)


def _commits_down_to(batches: int, found: Iterable[Commit]) -> int:
    """Return how many commits there are from the newest one to the n-th newest batch's last."""
    number = 0
    seen: set[int] = set()
    for commit in found:
        number += 1
        note = CommitNote.from_json(commit.metadata)
        if note is not None and not note.fences:
            seen.add(note.batch)
        if len(seen) == batches:
            break
    # A young table has fewer; what it lacks is added, as commits to come.
    return number + batches - len(seen)


def _is_on(given: Mapping[str, str], key: str) -> bool:
    return given.get(key, "false").lower() == "true"


def _number(given: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    """Return a number of commits.

    Raises:
        ConfigError: It is none.
    """
    for name in names:
        if name in given:
            try:
                return int(given[name])
            except ValueError:
                message = f"{name} must be a whole number."
                raise ConfigError(message) from None
    return default
