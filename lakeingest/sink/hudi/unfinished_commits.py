"""Commits of killed writers, where Hudi does not roll them back before the next one.

A writer that is alone rolls back what was left unfinished before it writes. Under a concurrency
mode for several writers (``hoodie.write.concurrency.mode``) Hudi leaves that to its cleaner, which
is off unless the user says otherwise. Until then the unfinished commit bars every read at a later
instant (``Time travel's timestamp … must be earlier than the first incomplete commit``, measured):
whatever is published after a kill could not be read. So it is rolled back before we write.

Whether its writer is dead is Hudi's to tell, by a heartbeat file that is renewed every minute; so
after a kill the first write waits for up to two. Rejected: to take every unfinished commit for a
dead one's, as a writer does that is alone: the mode is chosen because there are others. And to let
Hudi's cleaner run with a retention that removes nothing: it rolls back behind a commit, so what is
published with that commit would be unreadable until the next one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyspark.sql import SparkSession

from lakeingest.engine.hudi_unfinished import roll_back_failed, unfinished
from lakeingest.errors import TransientError

_MODE = "hoodie.write.concurrency.mode"
_POLICY = ("hoodie.clean.failed.writes.policy", "hoodie.cleaner.policy.failed.writes")
_BEAT = ("hoodie.client.heartbeat.interval_in_ms", 60_000)
_MISSES = ("hoodie.client.heartbeat.tolerable.misses", 2)
"""Hudi's names and defaults."""

_MARGIN_SECONDS = 10.0
_PAUSE_SECONDS = 1.0


def is_alone(given: Mapping[str, str]) -> bool:
    """Tell whether nobody else is said to write to the tables."""
    return given.get(_MODE, "SINGLE_WRITER").upper() == "SINGLE_WRITER"


def is_left_unfinished(given: Mapping[str, str]) -> bool:
    """Tell whether Hudi leaves a killed writer's commit when the next one writes."""
    return not is_alone(given) or any(given.get(key, "EAGER").upper() != "EAGER" for key in _POLICY)


def settle(spark: SparkSession, path: str, collection: str, options: Mapping[str, str]) -> None:
    """Have the commits of killed writers rolled back, and wait for those of living ones.

    Args:
        spark: Session with Hudi's extension.
        path: The table, which is there.
        collection: Its source table, for people.
        options: Those of its writes.

    Raises:
        TransientError: A living one takes long.
    """
    began = time.monotonic()
    beat, misses = (int(options.get(name, default)) for name, default in (_BEAT, _MISSES))
    patience = beat * misses / 1000 + _MARGIN_SECONDS
    while unfinished(spark, path):
        roll_back_failed(spark, path, options)
        left = unfinished(spark, path)
        if not left:
            return
        if time.monotonic() - began > patience:
            message = (
                f"Another writer's commit ({left[0]}) to Hudi table '{collection}' has been going "
                f"on for more than {patience:.0f} s. What is published before it is over could not "
                "be read. Nothing was written; run again when it is."
            )
            raise TransientError(message)
        time.sleep(_PAUSE_SECONDS)
