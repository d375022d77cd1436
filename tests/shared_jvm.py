"""One JVM for all workers of pytest-xdist: Java compiles Spark once, and not once per worker.

A JVM runs Spark several times faster after ten minutes than in its first one, because Java compiles
what is called often. With a JVM each, two workers paid for that twice. So the process that hands
out the tests starts Spark, and each worker attaches to it, by the port and the secret of PySpark's
gateway, and has a session of its own there: its settings and temporary views are not seen by the
others. The workers share what belongs to Spark's context: its two cores, Delta's cache of logs and
the number of jobs. A test that looks at those, or changes them, has Spark for itself (marker
``alone``).

Rejected: ``PYSPARK_GATEWAY_PORT`` in the environment of the workers, because the commands that
tests start would attach, too; threads instead of workers, because tests patch modules.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession


class SharedJvm(NamedTuple):
    """Where a worker finds Spark; a tuple of what xdist can send.

    Attributes:
        port: Port of PySpark's gateway.
        secret: Secret of the gateway.
        folder: Folder where workers meet.
    """

    port: int
    secret: str
    folder: str

    @classmethod
    def of(cls, spark: SparkSession, folder: Path) -> SharedJvm:
        """Return how other processes reach the JVM of a session."""
        client: Any = spark.sparkContext._gateway
        return cls(client.java_parameters.port, client.java_parameters.auth_token, str(folder))

    def attached(self) -> SparkSession:
        """Return a new session there."""
        place = {"PYSPARK_GATEWAY_PORT": str(self.port), "PYSPARK_GATEWAY_SECRET": self.secret}
        with patch.dict(os.environ, place):
            client: Any = launch_gateway()  # type: ignore[no-untyped-call]
        java: Any = client.jvm
        java_context = java.JavaSparkContext(java.org.apache.spark.SparkContext.getOrCreate())
        conf = SparkConf(_jconf=java_context.getConf())
        context = SparkContext(gateway=client, jsc=java_context, conf=conf)
        shared = java.SparkSession.builder().getOrCreate()
        session = SparkSession(context, shared.newSession())
        # PySpark made it the default of all threads, also of other processes' tests.
        java.SparkSession.setDefaultSession(shared)
        return session

    @contextmanager
    def turn(self, *, alone: bool) -> Iterator[None]:
        """Let no test of another process run beside one that is alone."""
        folder = Path(self.folder)
        with (folder / "gate").open("w") as gate, (folder / "room").open("w") as room:
            # Who waits for an empty room closes the gate: otherwise it might never be empty.
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            if not alone:
                fcntl.flock(gate, fcntl.LOCK_UN)
            yield
