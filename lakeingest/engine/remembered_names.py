"""Classes that PySpark asks the JVM for by name at every call, remembered.

Adapter. ``F.col("x")`` makes py4j resolve the name ``functions`` anew, and the JVM looks through
all jars for it in each imported package: 0.5 ms of a call's 0.6 ms (measured; a batch makes some
hundreds). ``jvm.org.apache…`` is looked for part by part, each as a class. What an attribute of the
gateway's view, or of one of its packages and classes, already is is not asked for again.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from py4j.java_gateway import JavaPackage
from pyspark.sql import SparkSession

_OF_PYSPARK = (
    "functions.coalesce",
    "functions.col",
    "functions.from_json",
    "functions.lit",
    "functions.not",
    "functions.struct",
    "functions.when",
    "PythonUtils.toSeq",
    "Column",
    "SparkSession.getActiveSession",
    "SparkSession$",
    "org.apache.spark.sql.catalyst.expressions.LambdaFunction",
    "org.apache.spark.sql.catalyst.expressions.UnresolvedNamedLambdaVariable",
)
"""What ``pyspark.sql.functions``, ``column`` and ``session`` reach most through the view."""

_OF_DELTA = (
    "org.apache.hadoop.fs.Path",
    "org.apache.spark.sql.SaveMode",
    "org.apache.spark.sql.SparkSession",
    "org.apache.spark.sql.delta.DeltaLog",
    "org.apache.spark.sql.delta.DeltaOperations$Write",
    "org.apache.spark.sql.delta.actions.SetTransaction",
    "scala.Option",
    "scala.collection.mutable.ArrayBuffer",
)
"""What the adapters of Delta reach through it."""


def remember_names(spark: SparkSession) -> None:
    """Keep the classes; without effect where there is no JVM gateway (Spark Connect)."""
    if hasattr(spark, "_jsparkSession"):
        session: Any = spark
        for name in (*_OF_PYSPARK, *_OF_DELTA):
            _remember(session._jvm, name.split("."))  # noqa: SLF001 - this is the adapter


def _remember(view: Any, parts: list[str]) -> None:
    # Of a class that is not there the gateway makes a package: it may come with a jar later.
    places = list(accumulate(parts, getattr, initial=view))
    if not isinstance(places[-1], JavaPackage):
        for place, part, known in zip(places, parts, places[1:], strict=False):
            setattr(place, part, known)
