"""Maven packages to local files, by Spark's own package resolver.

``spark-submit --packages`` comes with every pyspark, knows the user's mirrors, proxies and local
repositories (``SPARK_SUBMIT_OPTS``, ``DEFAULT_ARTIFACT_REPOSITORY``, ``~/.m2``), checks what it
receives and resolves transitively. The rejected ways: a download of our own by URL, which would
need all of that again and name a host in our code; Maven, which is one more program to install;
and ``spark.jars.packages`` in the session, which ties every start to the network.

Each resolution works in a fresh folder beside its destination and moves finished files with one
atomic rename each. Two processes that resolve the same at once both succeed, the work being done
twice; a lock file would save that work and add the case of a lock left by a killed process.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lakeingest.errors import ConfigError, UnavailableError
from lakeingest.session.java import ensure_java

_RESOLVE_SECONDS = 1200.0
"""A hundred megabytes over a slow line; a resolver that hangs is ended."""

_MANIFEST = "resolved.json"


def resolve_packages(
    coordinates: Sequence[str], folder: Path, excludes: Sequence[str] = ()
) -> list[Path]:
    """Bring Maven packages and all they depend on into a folder.

    What was resolved is remembered in the folder, so a second call with the same arguments
    downloads nothing. Safe to call from several processes at once. Spark's resolver leaves out
    what every Spark has: its own modules and any ``scala-library``.

    Args:
        coordinates: Full coordinates, ``group:artifact:version``.
        folder: Where the jars go; made if missing. One folder holds one set of packages.
        excludes: ``group:artifact`` patterns (``*`` matches) to leave out with what they bring.

    Returns:
        The jars, named ``group_artifact-version.jar``, sorted.

    Raises:
        UnavailableError: A package was not found or no repository answered.
        ConfigError: pyspark is not installed.
    """
    wanted = {"coordinates": sorted(coordinates), "excludes": sorted(excludes)}
    remembered = _remembered(folder, wanted)
    if remembered is not None:
        return remembered
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".resolving-", dir=folder) as work:
        sizes: dict[str, int] = {}
        for jar in _submit(coordinates, Path(work), excludes):
            sizes[jar.name] = jar.stat().st_size
            jar.replace(folder / jar.name)
        manifest = Path(work) / _MANIFEST
        manifest.write_text(json.dumps({**wanted, "bytes": sizes}, indent=2), encoding="utf-8")
        # Last, so that a manifest never speaks of a file that is not there yet.
        manifest.replace(folder / _MANIFEST)
    return sorted(folder / name for name in sizes)


def _remembered(folder: Path, wanted: dict[str, list[str]]) -> list[Path] | None:
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        sizes = {folder / name: size for name, size in manifest.pop("bytes").items()}
        complete = all(path.stat().st_size == size for path, size in sizes.items())
    except (OSError, ValueError, KeyError):
        return None
    return sorted(sizes) if manifest == wanted and complete else None


def _submit(coordinates: Sequence[str], work: Path, excludes: Sequence[str]) -> list[Path]:
    """Run the resolver with an Ivy folder of its own and return the jars that it retrieved."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        message = "pyspark is not installed: pip install 'lakeingest[local]'"
        raise ConfigError(message)
    home = Path(spec.origin).parent
    program = home / "bin" / ("spark-submit.cmd" if os.name == "nt" else "spark-submit")
    nothing = work / "nothing.py"
    nothing.write_text("", encoding="utf-8")
    command = [str(program), "--master", "local[1]", "--conf", f"spark.jars.ivy={work / 'ivy'}"]
    command += ["--conf", "spark.ui.enabled=false", "--packages", ",".join(coordinates)]
    if excludes:
        command += ["--exclude-packages", ",".join(excludes)]
    environment = {
        **os.environ,
        "JAVA_HOME": str(ensure_java()),
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
    }
    # Set where spark-submit started us; its resolver must not take that JVM for its own.
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    try:
        run = subprocess.run(
            [*command, str(nothing)],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_RESOLVE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = f"no answer in {_RESOLVE_SECONDS:.0f} s for {', '.join(coordinates)}"
        raise UnavailableError(message) from error
    jars = sorted((work / "ivy" / "jars").glob("*.jar"))
    if run.returncode != 0 or not jars:
        raise UnavailableError(_failure(coordinates, run.stderr))
    return jars


def _failure(coordinates: Sequence[str], log: str) -> str:
    """Say what the resolver complained about, and what to do."""
    message = f"Spark's package resolver could not bring {', '.join(coordinates)}"
    cause = re.search(r"\[(unresolved dependency: .*)\]", log)
    if cause:
        message += f": {cause.group(1)[:500]}"
    if "PKIX" in log:
        return message + (
            ". Java does not trust the repository's certificate: set SPARK_SUBMIT_OPTS="
            "-Djavax.net.ssl.trustStore=FILE to a trust store of this network"
        )
    return message + (
        ". Check the network (mirror: DEFAULT_ARTIFACT_REPOSITORY; proxy: SPARK_SUBMIT_OPTS), or "
        "put the jars of jars/lock.json into a folder and name it in LAKEINGEST_JARS"
    )
