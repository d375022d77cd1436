"""Refuse settings of Hudi's table services that would lose a publication or rows.

Users may switch on compaction, cleaning, archiving and clustering; lakeingest passes their settings
to Hudi. It refuses the settings that did harm in tests with Hudi 1.2, either without an error from
Hudi or with an error long after the cause:

* cleaning by anything but a number of commits: publications point to commits;
* failed commits that stay: one of them prevents the reading of every later commit;
* clustering with an index of a fixed number of buckets: Hudi plans it, cannot do it, and from then
  on accepts no change of the files in the plan;
* changes of files during their clustering: the clustered files win, and the changes are lost;
* other writers, with a lock that they do not see.

Rejected: to report them when a run opens the table. By then Spark has started, and the user has
already corrected the other errors, which were reported earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_POLICY = ("hoodie.clean.policy", "hoodie.cleaner.policy")
_BY_COMMITS = "KEEP_LATEST_COMMITS"
_CLEANED_OTHERWISE = tuple(
    f"hoodie.{service}.{kind}.retained"
    for kind in ("hours", "fileversions")
    for service in ("clean", "cleaner")
)
"""Settings by which Hudi cleans if no policy is set."""

_FAILED_WRITES = ("hoodie.clean.failed.writes.policy", "hoodie.cleaner.policy.failed.writes")

_CLUSTERING = ("hoodie.clustering.inline", "hoodie.clustering.schedule.inline")
_INDEX, _ENGINE = "hoodie.index.type", "hoodie.index.bucket.engine"
_UPDATES = "hoodie.clustering.updates.strategy"
_LOSSY_STRATEGY = "SparkAllowUpdateStrategy"
_ROLLBACK = "hoodie.clustering.rollback.pending.replacecommit.on.conflict"

_MODE, _LOCK = "hoodie.write.concurrency.mode", "hoodie.write.lock.provider"
_PROCESS_LOCKS = ("InProcessLockProvider", "NoopLockProvider")

_WHOLE_NUMBERS = (
    "hoodie.bucket.index.num.buckets",
    "hoodie.clean.commits.retained",
    "hoodie.cleaner.commits.retained",
    "hoodie.keep.min.commits",
    "hoodie.keep.max.commits",
    "hoodie.compact.inline.max.delta.commits",
    "hoodie.client.heartbeat.interval_in_ms",
    "hoodie.client.heartbeat.tolerable.misses",
)


def service_problems(settings: Mapping[str, str], table_type: str) -> Iterator[str]:
    """Yield a message for each setting with which a run cannot write, or readers cannot read.

    Args:
        settings: The user's settings of Hudi's writer.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
    """
    for key in _WHOLE_NUMBERS:
        if not settings.get(key, "0").isdecimal():
            yield f"{key}: write a whole number"
    yield from _cleaning(settings)
    yield from _clustering(settings)
    several = settings.get(_MODE, "SINGLE_WRITER").upper() != "SINGLE_WRITER"
    if several and settings.get(_LOCK, "").rpartition(".")[2] in _PROCESS_LOCKS:
        yield (
            f"{_MODE} says that others write to the tables, and {_LOCK} is a lock within this "
            "process: name one that all of them share (ZooKeeper's, DynamoDB's, the storage's)"
        )
    if _engine(settings) == "CONSISTENT_HASHING" and table_type == "COPY_ON_WRITE":
        yield (
            f"{_ENGINE}=CONSISTENT_HASHING is for MERGE_ON_READ alone: set "
            "lakeingest.hudi.table.type, or leave the engine at SIMPLE"
        )


def is_on(settings: Mapping[str, str], key: str) -> bool:
    """Return whether a switch is set to true."""
    return settings.get(key, "").lower() == "true"


def _cleaning(settings: Mapping[str, str]) -> Iterator[str]:
    for key in _POLICY:
        if settings.get(key, _BY_COMMITS) != _BY_COMMITS:
            yield (
                f"{key} can only be {_BY_COMMITS}, because publications point to commits: set it, "
                "and hoodie.clean.commits.retained to the number of commits that readers may still "
                "need"
            )
    if not any(key in settings for key in _POLICY):
        for key in _CLEANED_OTHERWISE:
            if key in settings:
                yield (
                    f"{key}: files are cleaned by commits alone, because publications point to "
                    "commits: remove it, and set hoodie.clean.commits.retained"
                )
    for key in _FAILED_WRITES:
        if settings.get(key, "").upper() == "NEVER":
            yield (
                f"{key} cannot be NEVER: an unfinished commit bars the reading of later ones; "
                "remove it"
            )


def _clustering(settings: Mapping[str, str]) -> Iterator[str]:
    for key in _CLUSTERING:
        if is_on(settings, key) and _engine(settings) == "SIMPLE":
            yield (
                f"{key}: Hudi cannot cluster files that are a fixed number of buckets, and accepts "
                f"no change of them once it has planned to; remove it, or set {_INDEX} (SIMPLE, "
                "BLOOM, RECORD_INDEX) before tables are made"
            )
    lossy = settings.get(_UPDATES, "").rpartition(".")[2] == _LOSSY_STRATEGY
    if lossy and not is_on(settings, _ROLLBACK):
        yield (
            f"{_UPDATES}={_LOSSY_STRATEGY}: changes of rows that are being clustered would be "
            f"lost; remove it, or set {_ROLLBACK}=true"
        )


def _engine(settings: Mapping[str, str]) -> str:
    """Return the kind of the bucket index, which is lakeingest's default; empty: another index."""
    if settings.get(_INDEX, "BUCKET").upper() != "BUCKET":
        return ""
    return settings.get(_ENGINE, "SIMPLE").upper()
