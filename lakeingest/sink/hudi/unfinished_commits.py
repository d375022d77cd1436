"""Roll back unfinished commits of killed writers when Hudi does not do so before the next write.

A single writer rolls back unfinished commits before it writes. Under a concurrency mode for several
writers (``hoodie.write.concurrency.mode``), Hudi leaves the rollback to its cleaner, which is off
unless the user turns it on. Until the rollback, the unfinished commit blocks every read at a later
instant (``Time travel's timestamp … must be earlier than the first incomplete commit``, measured).
So nobody could read a publication after a kill. Therefore the sink rolls it back before it writes.

Hudi decides whether the writer is dead, by a heartbeat file that a live writer renews every minute.
So the first write after a kill waits for up to two minutes.

Rejected: to treat the writer of every unfinished commit as dead, as a single writer does. The user
has chosen the mode because there are other writers. Rejected: to run Hudi's cleaner with a
retention that removes nothing. It rolls back after a commit, so the publication with that commit
would be unreadable until the next commit.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyspark.sql import SparkSession

from lakeingest.engine.hudi.unfinished import roll_back_failed, unfinished
from lakeingest.errors import TransientError

_MODE = "hoodie.write.concurrency.mode"
_POLICY = ("hoodie.clean.failed.writes.policy", "hoodie.cleaner.policy.failed.writes")
_BEAT = ("hoodie.client.heartbeat.interval_in_ms", 60_000)
_MISSES = ("hoodie.client.heartbeat.tolerable.misses", 2)
"""Names and defaults of Hudi's settings, in milliseconds and missed heartbeats."""

_MARGIN_SECONDS = 10.0
_PAUSE_SECONDS = 1.0


def is_alone(options: Mapping[str, str]) -> bool:
    """Return whether the options declare a single writer."""
    return options.get(_MODE, "SINGLE_WRITER").upper() == "SINGLE_WRITER"


def leaves_unfinished(options: Mapping[str, str]) -> bool:
    """Return whether a killed writer's commit stays unfinished when the next writer writes."""
    return not is_alone(options) or any(
        options.get(key, "EAGER").upper() != "EAGER" for key in _POLICY
    )


def settle(spark: SparkSession, path: str, collection: str, options: Mapping[str, str]) -> None:
    """Roll back the unfinished commits of killed writers, and wait for those of live writers.

    Args:
        spark: Session with Hudi's extension.
        path: Path of the table, which must exist.
        collection: The source table, for messages.
        options: Options of the table's writes.

    Raises:
        TransientError: A live writer's commit is still unfinished after the heartbeat tolerance
            and a margin.
    """
    start = time.monotonic()
    interval_ms, misses = (int(options.get(name, default)) for name, default in (_BEAT, _MISSES))
    timeout = interval_ms * misses / 1000 + _MARGIN_SECONDS
    while unfinished(spark, path):
        roll_back_failed(spark, path, options)
        rest = unfinished(spark, path)
        if not rest:
            return
        if time.monotonic() - start > timeout:
            message = (
                f"Another writer's commit ({rest[0]}) to Hudi table '{collection}' has been going "
                f"on for more than {timeout:.0f} s. What is published before it is over could not "
                "be read. Nothing was written; run again when it is."
            )
            raise TransientError(message)
        time.sleep(_PAUSE_SECONDS)
