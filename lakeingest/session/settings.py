"""Define the Spark settings of a local session, each with its reason.

The settings are one frozen table. Rejected: a chain of ``.config(…)`` calls. In the table no
setting lacks a reason, the guide can print it, and a test can compare it with the
settings of a real session. The table omits what Spark's own start script sets (the module openings
of Java 17), and every setting whose default cost nothing. Settings of a single write (idempotence,
commit metadata) belong to the sink that writes, in its own session.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
"""Logs only fatal errors, and to stderr, so that stdout carries only data."""

DRIVER_MEMORY = "4g"
"""Default heap of the driver, which in local mode also does the executors' work."""


@dataclass(frozen=True)
class Setting:
    """One Spark setting.

    Attributes:
        key: Spark's name of the setting.
        value: The value, as text.
        reason: What fails, or is slow, without the setting.
    """

    key: str
    value: str
    reason: str


ANY_MASTER = (
    Setting(
        "spark.sql.extensions",
        "io.delta.sql.DeltaSparkSessionExtension",
        "Delta's SQL commands and optimizer rules; without it MERGE and history fail",
    ),
    Setting(
        "spark.sql.catalog.spark_catalog",
        "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "Delta tables by path and by name; measured to serve Hudi tables as well",
    ),
    Setting(
        "spark.sql.session.timeZone",
        "UTC",
        "source timestamps are instants; a local zone would shift those without a zone",
    ),
    Setting(
        "spark.databricks.delta.snapshotPartitions",
        "1",
        "reading a table's log in 50 tasks costs a small MERGE 1.2 s of its 2.0 s",
    ),
    Setting(
        "spark.sql.codegen.cache.maxEntries",
        "2000",
        "the code of one batch does not fit into Spark's 100; each batch would compile it again",
    ),
    Setting(
        "spark.sql.ui.explainMode",
        "simple",
        "every query's plan is printed for a UI that is off; the default form was 10 % of all work",
    ),
    Setting("spark.ui.enabled", "false", "a web server on a port, which a short run does not need"),
    Setting(
        "spark.ui.showConsoleProgress",
        "false",
        "the bar would be drawn into a person's terminal between our own lines",
    ),
)

HUDI = (
    Setting(
        "spark.sql.extensions",
        "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "both formats in one session; the catalog stays Delta's, which serves Hudi tables as well",
    ),
    Setting(
        "spark.serializer",
        "org.apache.spark.serializer.KryoSerializer",
        "Hudi refuses to write with Java's serializer",
    ),
    Setting(
        "spark.kryo.registrator",
        "org.apache.spark.HoodieSparkKryoRegistrar",
        "how Hudi's own classes are serialized",
    ),
    Setting(
        "spark.hadoop.parquet.avro.write-old-list-structure",
        "false",
        "the old structure has no place for a null in an array: such a row cannot be written",
    ),
)

LOCAL = (
    Setting(
        "spark.driver.bindAddress",
        "127.0.0.1",
        "a local session has no peers: nothing may listen on the network",
    ),
    Setting(
        "spark.driver.host",
        "127.0.0.1",
        "the machine's own name may not resolve, or resolve to a network that is down",
    ),
    Setting(
        "spark.delta.logStore.file.impl",
        "io.delta.storage.LocalLogStore",
        "on a local disk, Delta's default starts ten programs (chmod, readlink) per log file: "
        "45 ms against 12; neither is safe between processes (engine/delta/local_disk.py)",
    ),
    Setting(
        "spark.sql.streaming.checkpointFileManagerClass",
        "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",
        "the same, for the checksum file of each version of a Delta table",
    ),
)


QUICKLY_COMPILED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Without the optimising compiler, Java reserves room for only a fifth of the code. A driver fills
it within a minute; then Java compiles nothing any more, and some calls fail. So the size is set."""


QUIET_HUDI = "-Djol.skipDynamicAttach=true -Djol.skipHotspotSAAttach=true"
"""Hudi measures objects with JOL, which need not attach to the JVM for that. JOL also prints to
stdout that it did not attach (see ``_let_jol_speak``)."""


def settings(
    master: str, cores: int, *, hudi: bool = False, brief: bool = False
) -> tuple[Setting, ...]:
    """Return the settings of a new session.

    Args:
        master: Spark master, such as ``local[2]``.
        cores: Number of tasks that run at the same time.
        hudi: Whether the session can read and write Hudi tables.
        brief: Whether the session lives only for seconds: optimised code would come too late.
    """
    heap = os.environ.get("LAKEINGEST_DRIVER_MEMORY", DRIVER_MEMORY)
    dependent = (
        Setting(
            "spark.sql.shuffle.partitions",
            str(cores),
            "Spark's 200 tasks for a hundred rows cost a MERGE 0.8 s of its 2.9 s",
        ),
        Setting(
            "spark.driver.memory",
            heap,
            "Spark's 1g is for a driver that only coordinates; LAKEINGEST_DRIVER_MEMORY changes it",
        ),
        Setting(
            "spark.driver.extraJavaOptions",
            f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()} -XX:+UseParallelGC"
            + (f" {QUIET_HUDI}" if hudi else "")
            + (f" {QUICKLY_COMPILED}" if brief else ""),
            "Spark's own profile prints warnings that no one can act on; on few cores G1's "
            "concurrent threads take time from the tasks; optimising code is nearly half of what a "
            "JVM does in its first half minute",
        ),
    )
    hudi_settings = HUDI if hudi else ()
    overridden = {setting.key for setting in hudi_settings}
    common = tuple(setting for setting in ANY_MASTER if setting.key not in overridden)
    return common + dependent + hudi_settings + (LOCAL if master.startswith("local") else ())
