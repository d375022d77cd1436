"""Open Hudi's own write client, for what no write option does: rollbacks and table services.

Adapter, with the internal names of ``hudi_table`` and, in Hudi 1.2: ``DataSourceUtils``
(``createHoodieClient``), and of the client ``rollbackFailedWrites``, ``scheduleCompaction``,
``compact``, ``clean`` and ``archive``. Rejected: Hudi's SQL procedures, which do the same but take
only tables of the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession

from lakeingest.engine.hudi.table import java, load_table

_NO_SCHEMA = '{"type":"record","name":"none","fields":[]}'


@contextmanager
def write_client(spark: SparkSession, path: str, options: Mapping[str, str]) -> Iterator[Any]:
    """Open a write client, and close it at the end.

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
        yield client
    finally:
        client.close()


def compact(spark: SparkSession, path: str, options: Mapping[str, str], *, alone: bool) -> None:
    """Compact the log files of a merge-on-read table, where enough commits have written to them.

    Args:
        spark: Session with Hudi's extension.
        path: Path of the table.
        options: See ``write_client``; ``hoodie.compact.inline.max.delta.commits`` says what is
            enough.
        alone: Whether no other process compacts the table: then first complete what a killed one
            has planned.
    """
    jvm, _ = java(spark)
    no_metadata = jvm.org.apache.hudi.common.util.Option.empty()
    with write_client(spark, path, options) as client:
        for instant in _pending(spark, path) if alone else ():
            client.compact(instant, True)
        planned = client.scheduleCompaction(no_metadata)
        if planned.isPresent():
            client.compact(planned.get(), True)


def clean(spark: SparkSession, path: str, options: Mapping[str, str]) -> None:
    """Remove files and archive commits, as the options for cleaning and archiving say."""
    with write_client(spark, path, options) as client:
        client.clean()
        client.archive()


def _pending(spark: SparkSession, path: str) -> list[str]:
    jvm, _ = java(spark)
    timeline = load_table(spark, path).getActiveTimeline().filterPendingCompactionTimeline()
    instants = timeline.getInstantsAsStream().collect(jvm.java.util.stream.Collectors.toList())
    return [str(instants.get(index).requestedTime()) for index in range(instants.size())]
