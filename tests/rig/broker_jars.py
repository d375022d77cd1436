"""The broker's class path: resolved once into the user's cache, complete or not at all.

Spark's resolver leaves out every ``scala-library``, because Spark has one; but Spark's is Scala
2.12 and the broker is written in 2.13. So this one jar comes by Ivy itself.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from lakeingest.session.resolve import resolve_packages
from tests.rig.ivy import Artifact, retrieve

VERSION = "4.3.1"
COORDINATES = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
)
FOLDER = Path.home() / ".cache" / "lakeingest" / "rig" / f"kafka-{VERSION}"

_SCALA = Artifact("org.scala-lang", "scala-library", "2.13.18", 5_940_741)


def broker_jars() -> list[Path]:
    """Return the jars of the broker; downloads only what is missing or incomplete."""
    return [*resolve_packages(COORDINATES, FOLDER), _scala_library()]


def _scala_library() -> Path:
    jar = FOLDER / _SCALA.file
    if not jar.is_file() or jar.stat().st_size != _SCALA.size:
        with tempfile.TemporaryDirectory(prefix=".resolving-", dir=FOLDER) as work:
            retrieve(_SCALA, Path(work)).replace(jar)
    return jar
