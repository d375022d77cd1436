"""Return the platform's Spark session if there is one, else a local one with the pinned jars.

On Databricks, EMR or in a notebook the session belongs to the platform. lakeingest checks that the
session has Delta, and uses it unchanged. Rejected: to build a second session there, or to change
the settings of the first. A running session ignores half of new settings and applies the other half
to other people's work. lakeingest starts a session only if there is none.

The functions import Spark inside, so that ``import lakeingest`` and ``lakeingest --help`` neither
need pyspark nor wait for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lakeingest.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LAUNCHED_BY_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"
_DATABRICKS = "DATABRICKS_RUNTIME_VERSION"


def session(
    app_name: str = "lakeingest",
    master: str | None = None,
    cores: int | None = None,
    extra: Mapping[str, str] | None = None,
    *,
    kafka: bool = True,
    hudi: bool = False,
    jdbc: bool = False,
    brief: bool = False,
) -> SparkSession:
    """Return the Spark session to work with.

    Return an active session, or the session of a platform or ``spark-submit``, unchanged; the
    arguments then have no effect. Otherwise start a session on this machine.

    Args:
        app_name: Name of the new session.
        master: Spark master of the new session; default ``local[cores]``.
        cores: Tasks at the same time, and shuffle partitions; default all cores, at least 2.
        extra: Settings of the new session that override lakeingest's own.
        kafka: Whether the new session can read Kafka.
        hudi: Whether the new session can read and write Hudi tables.
        jdbc: Whether the new session can query PostgreSQL, MySQL and MariaDB.
        brief: Whether the new session lives only for seconds; Java then compiles its code quickly.

    Returns:
        A session with Delta, and with Hudi if ``hudi`` is true.

    Raises:
        ConfigError: pyspark is not installed, or the provided session lacks Delta (or Hudi).
        UnavailableError: No Java 17, or a jar that is missing or damaged.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        message = f"Spark is not installed ({error}): pip install 'lakeingest[local]'"
        raise ConfigError(message) from error
    active = SparkSession.getActiveSession()
    if active is None and (_DATABRICKS in os.environ or _LAUNCHED_BY_SPARK_SUBMIT in os.environ):
        active = SparkSession.builder.appName(app_name).getOrCreate()
    if active is not None:
        if hudi:
            require_hudi(active, write=True)
        return _with_delta(active)
    core_count = cores or max(2, os.cpu_count() or 2)
    master = master or f"local[{core_count}]"
    groups = {"delta": True, "avro": True, "kafka": kafka, "hudi": hudi, "jdbc": jdbc}
    needed = [group for group, is_needed in groups.items() if is_needed]
    configuration = _configuration(master, core_count, needed, brief=brief)
    builder = SparkSession.builder.appName(app_name).master(master)
    for key, value in {**configuration, **(extra or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if hudi and master.startswith("local"):
        _let_jol_speak(spark)
    return spark


def _with_delta(spark: SparkSession) -> SparkSession:
    """Refuse a session without Delta now; otherwise its first MERGE would fail within a batch."""
    # Databricks builds Delta into its runtime and names no extension for it.
    if _DATABRICKS in os.environ:
        return spark
    extensions = spark.conf.get("spark.sql.extensions", None) or ""
    if "DeltaSparkSessionExtension" not in extensions:
        message = (
            "the running Spark session has no Delta Lake: start it with "
            "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension, "
            "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog and "
            "the Delta jars on its class path, or stop it and let lakeingest start one"
        )
        raise ConfigError(message)
    return spark


def require_hudi(spark: SparkSession, *, write: bool) -> None:
    """Refuse a session that cannot read Hudi tables, or cannot write them or some of their rows.

    Args:
        spark: The session.
        write: Whether the session must write. To read, it needs only Hudi's jar (measured, Hudi
            1.2).

    Raises:
        ConfigError: A setting or the jar is missing. The message names each missing one.
    """
    from lakeingest.session.settings import HUDI

    missing = [
        f"{setting.key}={setting.value}"
        for setting in (HUDI if write else ())
        if setting.value.rpartition(",")[2] not in (spark.conf.get(setting.key, None) or "")
    ]
    if not _has_class(spark, "org.apache.hudi.DefaultSource"):
        missing.append("the Hudi bundle on its class path")
    if missing:
        message = (
            f"the running Spark session is not made for Hudi tables; it lacks "
            f"{', '.join(missing)}. Start it with these, or stop it and open one by "
            "lakeingest.session(hudi=True). A command of lakeingest opens one where a table of its "
            "file is a Hudi table; for a table that was one, add --set "
            "lakeingest.table.<collection>.format=hudi to the command"
        )
        raise ConfigError(message)


def _has_class(spark: SparkSession, name: str) -> bool:
    """Return whether the driver can load a class; true without a JVM to ask (Spark Connect)."""
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        return True
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    return loader.getResource(f"{name.replace('.', '/')}.class") is not None


def _configuration(
    master: str, cores: int, groups: Sequence[str], *, brief: bool
) -> dict[str, str]:
    """Return the settings of a new session; find Java and the jars of some groups for it."""
    # Not at the top: `python -m lakeingest.session.jars` must find its module not yet loaded.
    from lakeingest.session.jars import ensure_jars
    from lakeingest.session.java import ensure_java
    from lakeingest.session.settings import settings

    jars = ensure_jars(groups)
    hudi = "hudi" in groups
    ensure_java()
    if master.startswith("local"):
        # Spark's Python workers run on this machine and must be of the driver's version.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    configuration = {
        setting.key: setting.value for setting in settings(master, cores, hudi=hudi, brief=brief)
    }
    configuration["spark.jars"] = ",".join(str(path) for path in jars)
    if hudi and master.startswith("local"):
        # Spark's own class loader would load Hudi apart from Parquet. Hudi then has no access to
        # Parquet's package-private members: it would write an array of timestamps without zone
        # that nobody can read.
        configuration["spark.driver.extraClassPath"] = str(
            next(p for p in jars if "hudi" in p.name)
        )
    return configuration


def _let_jol_speak(spark: SparkSession) -> None:
    """Make JOL, with which Hudi measures objects, print its first message now, to nowhere.

    On its first use JOL prints to Java's stdout that it cannot attach. Java's stdout is also the
    command's stdout, so the message would stand in the middle of a table's rows. Rejected: to close
    Java's stdout for good, because a console sink in a notebook writes to it.
    """
    from py4j.protocol import Py4JError

    jvm: Any = spark._jvm  # noqa: SLF001 - this is the adapter
    system, stream = jvm.java.lang.System, jvm.java.io.OutputStream.nullOutputStream()
    out = system.out
    system.setOut(jvm.java.io.PrintStream(stream))
    try:
        # On a Java other than OpenJDK, JOL fails and does not print this message.
        with suppress(Py4JError):
            jvm.org.apache.hudi.org.openjdk.jol.vm.VM.current()
    finally:
        system.setOut(out)
