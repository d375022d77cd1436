"""The broker's class path: resolved once into the user's cache, complete or not at all.

Spark's resolver leaves out every ``scala-library``, because Spark has one; but Spark's is Scala
2.12 and the broker is written in 2.13. So this one jar comes by Ivy itself, which lies in pyspark.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from lakeingest.session.java import ensure_java
from lakeingest.session.resolve import resolve_packages

VERSION = "4.3.1"
COORDINATES = (
    f"org.apache.kafka:kafka_2.13:{VERSION}",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
)
FOLDER = Path.home() / ".cache" / "lakeingest" / "rig" / f"kafka-{VERSION}"

_SCALA = "2.13.18"
_SCALA_BYTES = 5_940_741
_RESOLVE_SECONDS = 600.0
_MIRROR = """\
<ivysettings>
  <settings defaultResolver="mirror"/>
  <resolvers><ibiblio name="mirror" m2compatible="true" root="{root}"/></resolvers>
</ivysettings>
"""


def broker_jars() -> list[Path]:
    """Return the jars of the broker; downloads only what is missing or incomplete."""
    return [*resolve_packages(COORDINATES, FOLDER), _scala_library()]


def _scala_library() -> Path:
    jar = FOLDER / f"scala-library-{_SCALA}.jar"
    if jar.is_file() and jar.stat().st_size == _SCALA_BYTES:
        return jar
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    (ivy,) = (Path(spec.origin).parent / "jars").glob("ivy-*.jar")
    with tempfile.TemporaryDirectory(prefix=".resolving-", dir=FOLDER) as work:
        command = [str(ensure_java() / "bin" / "java")]
        command += shlex.split(os.environ.get("SPARK_SUBMIT_OPTS", ""))
        command += ["-jar", str(ivy), "-cache", f"{work}/cache", "-confs", "default"]
        command += ["-types", "jar", "-dependency", "org.scala-lang", "scala-library", _SCALA]
        command += ["-retrieve", f"{work}/[artifact]-[revision].[ext]"]
        root = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
        if root:
            settings = Path(work) / "settings.xml"
            settings.write_text(_MIRROR.format(root=root), encoding="utf-8")
            command += ["-settings", str(settings)]
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=_RESOLVE_SECONDS, check=False
        )
        found = Path(work) / jar.name
        if not found.is_file() or found.stat().st_size != _SCALA_BYTES:
            message = f"Ivy did not bring {jar.name} whole: {run.stdout[-2000:]}{run.stderr[-500:]}"
            raise RuntimeError(message)
        found.replace(jar)
    return jar
