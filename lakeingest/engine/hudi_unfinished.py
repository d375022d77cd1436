"""Find unfinished commits of a Hudi table, and have Hudi roll them back.

Adapter, with the internal names of ``hudi_table`` and, in Hudi 1.2: ``TimelineUtils``
(``validateTimestampAsOf`` decides which commits block a read at an instant), ``ClusteringUtils``,
and ``DataSourceUtils``, whose write client rolls back. Rejected: Hudi's SQL procedure, which does
the same but takes only tables of the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from lakeingest.engine.hudi_table import java, load_table

_NO_SCHEMA = '{"type":"record","name":"none","fields":[]}'


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
        options: Write options of the table, with the table's name (``hoodie.table.name``).
    """
    jvm, _ = java(spark)
    session: Any = spark
    java_options = jvm.java.util.HashMap()
    for name, value in options.items():
        java_options.put(name, value)
    context = jvm.org.apache.spark.api.java.JavaSparkContext(
        session._jsparkSession.sparkContext()  # noqa: SLF001 - this is the adapter
    )
    client = jvm.org.apache.hudi.DataSourceUtils.createHoodieClient(
        context, _NO_SCHEMA, path, options["hoodie.table.name"], java_options
    )
    try:
        client.rollbackFailedWrites(load_table(spark, path))
    finally:
        client.close()
