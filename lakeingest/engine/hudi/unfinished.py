"""Find unfinished commits of a Hudi table, and have Hudi roll them back.

Adapter, with the internal names of ``hudi_table`` and, in Hudi 1.2: ``TimelineUtils``
(``validateTimestampAsOf`` decides which commits block a read at an instant) and
``ClusteringUtils``.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from lakeingest.engine.hudi.client import write_client
from lakeingest.engine.hudi.table import java, load_table


def unfinished(spark: SparkSession, path: str) -> list[str]:
    """Return the instants of unfinished commits that block reads of later commits, oldest first.

    Clustering does not block reads, nor does compaction before it completes.
    """
    jvm, _ = java(spark)
    table = load_table(spark, path)
    pending = table.getCommitsTimeline().filterInflightsAndRequested()
    instants = pending.getInstantsAsStream().collect(jvm.java.util.stream.Collectors.toList())
    clustering = jvm.org.apache.hudi.common.util.ClusteringUtils.isClusteringInstant
    timeline, generator = table.getActiveTimeline(), table.getInstantGenerator()
    pending_instants = (instants.get(index) for index in range(instants.size()))
    return [
        str(instant.requestedTime())
        for instant in pending_instants
        if not clustering(timeline, instant, generator)
    ]


def roll_back_failed(spark: SparkSession, path: str, options: Mapping[str, str]) -> None:
    """Have Hudi roll back unfinished commits whose writers send no heartbeat any more.

    Args:
        spark: Session with Hudi's extension.
        path: Path of the table.
        options: See ``write_client``.
    """
    with write_client(spark, path, options) as client:
        client.rollbackFailedWrites(load_table(spark, path))
