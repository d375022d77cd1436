"""What Hudi's table services cannot be told, because a publication would be lost or rows would be.

Compaction, cleaning, archiving and clustering are the user's to switch on, and their settings are
handed on. Refused is what was found to do harm with Hudi 1.2, without an error of Hudi's or long
after the cause:

* cleaning by anything but a number of commits: publications point to commits;
* failed commits that stay: one of them bars the reading of every later commit;
* clustering where the index is a fixed number of buckets: Hudi plans it, cannot do it, and from
  then on accepts no change of the files in the plan;
* changes of files that are being clustered: the clustered files win, and the changes are gone;
* other writers, and a lock that they do not see.

Rejected: to tell them when the table is opened. Spark has started by then, and what is wrong
besides was told before.
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
"""What Hudi cleans by where no policy is named."""

_FAILED_WRITES = ("hoodie.clean.failed.writes.policy", "hoodie.cleaner.policy.failed.writes")

_CLUSTERING = ("hoodie.clustering.inline", "hoodie.clustering.schedule.inline")
_INDEX, _ENGINE = "hoodie.index.type", "hoodie.index.bucket.engine"
_UPDATES = "hoodie.clustering.updates.strategy"
_LOSING = "SparkAllowUpdateStrategy"
_TAKEN_BACK = "hoodie.clustering.rollback.pending.replacecommit.on.conflict"

_MODE, _LOCK = "hoodie.write.concurrency.mode", "hoodie.write.lock.provider"
_OF_ONE_PROCESS = ("InProcessLockProvider", "NoopLockProvider")

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


def service_problems(given: Mapping[str, str], table_type: str) -> Iterator[str]:
    """Find what a run could not write with, or what it publishes could not be read with.

    Args:
        given: The user's settings of Hudi's writer.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
    """
    for key in _WHOLE_NUMBERS:
        if not given.get(key, "0").isdecimal():
            yield f"{key}: write a whole number"
    yield from _cleaning(given)
    yield from _clustering(given)
    several = given.get(_MODE, "SINGLE_WRITER").upper() != "SINGLE_WRITER"
    if several and given.get(_LOCK, "").rpartition(".")[2] in _OF_ONE_PROCESS:
        yield (
            f"{_MODE} says that others write to the tables, and {_LOCK} is a lock within this "
            "process: name one that all of them share (ZooKeeper's, DynamoDB's, the storage's)"
        )
    if _engine(given) == "CONSISTENT_HASHING" and table_type == "COPY_ON_WRITE":
        yield (
            f"{_ENGINE}=CONSISTENT_HASHING is for MERGE_ON_READ alone: set "
            "lakeingest.hudi.table.type, or leave the engine at SIMPLE"
        )


def is_on(given: Mapping[str, str], key: str) -> bool:
    """Tell whether a switch is set to true."""
    return given.get(key, "").lower() == "true"


def _cleaning(given: Mapping[str, str]) -> Iterator[str]:
    for key in _POLICY:
        if given.get(key, _BY_COMMITS) != _BY_COMMITS:
            yield (
                f"{key} can only be {_BY_COMMITS}, because publications point to commits: set it, "
                "and hoodie.clean.commits.retained to the number of commits that readers may still "
                "need"
            )
    if not any(key in given for key in _POLICY):
        for key in _CLEANED_OTHERWISE:
            if key in given:
                yield (
                    f"{key}: files are cleaned by commits alone, because publications point to "
                    "commits: remove it, and set hoodie.clean.commits.retained"
                )
    for key in _FAILED_WRITES:
        if given.get(key, "").upper() == "NEVER":
            yield (
                f"{key} cannot be NEVER: an unfinished commit bars the reading of later ones; "
                "remove it"
            )


def _clustering(given: Mapping[str, str]) -> Iterator[str]:
    for key in _CLUSTERING:
        if is_on(given, key) and _engine(given) == "SIMPLE":
            yield (
                f"{key}: Hudi cannot cluster files that are a fixed number of buckets, and accepts "
                f"no change of them once it has planned to; remove it, or set {_INDEX} (SIMPLE, "
                "BLOOM, RECORD_INDEX) before tables are made"
            )
    lossy = given.get(_UPDATES, "").rpartition(".")[2] == _LOSING
    if lossy and not is_on(given, _TAKEN_BACK):
        yield (
            f"{_UPDATES}={_LOSING}: changes of rows that are being clustered would be lost; remove "
            f"it, or set {_TAKEN_BACK}=true"
        )


def _engine(given: Mapping[str, str]) -> str:
    """Return the kind of an index by buckets, which is our default; empty: another index."""
    if given.get(_INDEX, "BUCKET").upper() != "BUCKET":
        return ""
    return given.get(_ENGINE, "SIMPLE").upper()
