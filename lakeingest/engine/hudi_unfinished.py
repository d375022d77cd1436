"""Commits of a Hudi table that were begun and are not finished, and how Hudi rolls them back.

Adapter, with internal names as ``hudi_table`` has them; besides ``TimelineUtils`` (what bars a read
at an instant: ``validateTimestampAsOf``), ``ClusteringUtils`` and ``DataSourceUtils``, whose write
client rolls back (Hudi 1.2). A call of SQL would do the same, but takes tables of the catalog only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from lakeingest.engine.hudi_table import java, load_table

_NO_SCHEMA = '{"type":"record","name":"none","fields":[]}'


def unfinished(spark: SparkSession, path: str) -> list[str]:
    """Return the instants of commits that bar the reading of later ones, oldest first.

    Clustering is none of them, nor is compaction before it is finished.
    """
    jvm, _ = java(spark)
    table = load_table(spark, path)
    pending = table.getCommitsTimeline().filterInflightsAndRequested()
    instants = pending.getInstantsAsStream().collect(jvm.java.util.stream.Collectors.toList())
    clustering = jvm.org.apache.hudi.common.util.ClusteringUtils.isClusteringInstant
    timeline, maker = table.getActiveTimeline(), table.getInstantGenerator()
    each = (instants.get(index) for index in range(instants.size()))
    return [str(one.requestedTime()) for one in each if not clustering(timeline, one, maker)]


def roll_back_failed(spark: SparkSession, path: str, options: Mapping[str, str]) -> None:
    """Have Hudi roll back commits whose writers give no sign of life any more.

    Args:
        spark: Session with Hudi's extension.
        path: The table.
        options: Those of its writes, with its name.
    """
    jvm, _ = java(spark)
    session: Any = spark
    given = jvm.java.util.HashMap()
    for name, value in options.items():
        given.put(name, value)
    context = jvm.org.apache.spark.api.java.JavaSparkContext(
        session._jsparkSession.sparkContext()  # noqa: SLF001 - this is the adapter
    )
    client = jvm.org.apache.hudi.DataSourceUtils.createHoodieClient(
        context, _NO_SCHEMA, path, options["hoodie.table.name"], given
    )
    try:
        client.rollbackFailedWrites(load_table(spark, path))
    finally:
        client.close()
