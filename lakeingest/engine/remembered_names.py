"""Cache the JVM classes that PySpark otherwise resolves by name at every call.

Adapter. ``F.col("x")`` makes py4j resolve the name ``functions`` again, and the JVM searches all
jars for it in each imported package. This takes 0.5 ms of a call's 0.6 ms (measured; a batch makes
some hundreds of calls). py4j resolves ``jvm.org.apache…`` part by part, and tries each part as a
class. But py4j does not resolve a name that is already an attribute of the gateway's view, or of
one of its packages and classes. So ``remember_names`` sets these attributes.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from py4j.java_gateway import JavaPackage
from pyspark.sql import SparkSession

_PYSPARK_NAMES = (
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
"""Names that ``pyspark.sql.functions``, ``column`` and ``session`` resolve most often."""

_DELTA_NAMES = (
    "org.apache.hadoop.fs.Path",
    "org.apache.spark.sql.Dataset",
    "org.apache.spark.sql.SaveMode",
    "org.apache.spark.sql.SparkSession",
    "org.apache.spark.sql.delta.DeltaLog",
    "org.apache.spark.sql.delta.DeltaOperations$Write",
    "org.apache.spark.sql.delta.actions.SetTransaction",
    "scala.Option",
    "scala.collection.mutable.ArrayBuffer",
)
"""Names that the adapters of Delta resolve."""


def remember_names(spark: SparkSession) -> None:
    """Cache the classes; do nothing where there is no JVM gateway (Spark Connect)."""
    if hasattr(spark, "_jsparkSession"):
        session: Any = spark
        for name in (*_PYSPARK_NAMES, *_DELTA_NAMES):
            _remember(session._jvm, name.split("."))  # noqa: SLF001 - this is the adapter


def _remember(view: Any, parts: list[str]) -> None:
    # For a name without a class, the gateway returns a package. Do not cache it: a jar that is
    # added later may bring the class.
    objects = list(accumulate(parts, getattr, initial=view))
    if not isinstance(objects[-1], JavaPackage):
        for owner, part, value in zip(objects, parts, objects[1:], strict=False):
            setattr(owner, part, value)
