"""One file from a Maven repository, by Ivy itself, which lies in pyspark.

For what Spark's resolver cannot bring: a ``scala-library``, which it leaves out because Spark has
one, and files that are not jars. Mirror and proxies are those that Spark's resolver uses.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from lakeingest.session.java import ensure_java

__all__ = ["Artifact", "retrieve"]

_RESOLVE_SECONDS = 600.0
# Without its description: a parent of it may be missing from a mirror, and no dependency is wanted.
_SETTINGS = """\
<ivysettings>
  <settings defaultResolver="mirror"/>
  <resolvers><ibiblio name="mirror" m2compatible="true" usepoms="false"{root}/></resolvers>
</ivysettings>
"""
_MODULE = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="lakeingest" module="rig"/>
  <dependencies>
    <dependency org="{group}" name="{name}" rev="{version}" transitive="false">
      <artifact name="{name}" type="{extension}" ext="{extension}"{classifier}/>
    </dependency>
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True)
class Artifact:
    """A file in a Maven repository, and how many bytes it has."""

    group: str
    name: str
    version: str
    size: int
    extension: str = "jar"
    classifier: str = ""

    @property
    def file(self) -> str:
        """The name that the file gets."""
        return f"{self.name}-{self.version}.{self.extension}"


def retrieve(artifact: Artifact, work: Path) -> Path:
    """Bring a file into a folder of the caller's, and check that it came whole.

    Raises:
        RuntimeError: It did not; the message ends with what Ivy said.
    """
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    (ivy,) = (Path(spec.origin).parent / "jars").glob("ivy-*.jar")
    mirror = os.environ.get("DEFAULT_ARTIFACT_REPOSITORY")
    settings, module = work / "settings.xml", work / "ivy.xml"
    settings.write_text(
        _SETTINGS.format(root=f' root="{mirror}"' if mirror else ""), encoding="utf-8"
    )
    module.write_text(
        _MODULE.format(
            group=artifact.group,
            name=artifact.name,
            version=artifact.version,
            extension=artifact.extension,
            classifier=f' m:classifier="{artifact.classifier}"' if artifact.classifier else "",
        ),
        encoding="utf-8",
    )
    command = [str(ensure_java() / "bin" / "java")]
    command += shlex.split(os.environ.get("SPARK_SUBMIT_OPTS", ""))
    command += ["-jar", str(ivy), "-settings", str(settings), "-cache", str(work / "cache")]
    command += ["-ivy", str(module), "-retrieve", f"{work}/[artifact]-[revision].[ext]"]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=_RESOLVE_SECONDS, check=False
    )
    found = work / artifact.file
    if not found.is_file() or found.stat().st_size != artifact.size:
        message = f"Ivy did not bring {found.name} whole: {run.stdout[-2000:]}{run.stderr[-500:]}"
        raise RuntimeError(message)
    return found
