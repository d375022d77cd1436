"""Download Maven packages as local files with Spark's own package resolver.

``spark-submit --packages`` comes with every pyspark. It knows the user's mirrors, proxies and local
repositories (``SPARK_SUBMIT_OPTS``, ``DEFAULT_ARTIFACT_REPOSITORY``, ``~/.m2``), checks its
downloads and resolves transitively. The rejected ways: an own download by URL, which would need all
of that again and name a host in lakeingest's code; Maven, which is one more program to install; and
``spark.jars.packages`` in the session, which ties every start to the network.

Each resolution works in a new folder beside its destination and moves each finished file with one
atomic rename. If two processes resolve the same packages at once, both succeed and the work happens
twice. A lock file would save that work, but a killed process could leave the lock behind.
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
"""Enough for a hundred megabytes over a slow line; after it, ``_submit`` ends the resolver."""

_MANIFEST = "resolved.json"


def resolve_packages(
    coordinates: Sequence[str], folder: Path, excludes: Sequence[str] = ()
) -> list[Path]:
    """Download Maven packages and all their dependencies into a folder.

    A manifest in the folder records the result, so a second call with the same arguments downloads
    nothing. Safe to call from several processes at once. Spark's resolver leaves out the packages
    of every Spark: its own modules and any ``scala-library``.

    Args:
        coordinates: Full coordinates, ``group:artifact:version``.
        folder: The jars' folder; created if missing. One folder holds one set of packages.
        excludes: ``group:artifact`` patterns (``*`` matches) of packages to leave out, together
            with their dependencies.

    Returns:
        The jars, named ``group_artifact-version.jar``, sorted.

    Raises:
        UnavailableError: A package does not exist or no repository answers.
        ConfigError: pyspark is not installed.
    """
    request = {"coordinates": sorted(coordinates), "excludes": sorted(excludes)}
    cached = _cached_jars(folder, request)
    if cached is not None:
        return cached
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".resolving-", dir=folder) as work:
        sizes: dict[str, int] = {}
        for jar in _submit(coordinates, Path(work), excludes):
            sizes[jar.name] = jar.stat().st_size
            jar.replace(folder / jar.name)
        manifest = Path(work) / _MANIFEST
        manifest.write_text(json.dumps({**request, "bytes": sizes}, indent=2), encoding="utf-8")
        # Move the manifest last, so that it never names a file that is not there yet.
        manifest.replace(folder / _MANIFEST)
    return sorted(folder / name for name in sizes)


def _cached_jars(folder: Path, request: dict[str, list[str]]) -> list[Path] | None:
    try:
        manifest = json.loads((folder / _MANIFEST).read_text(encoding="utf-8"))
        sizes = {folder / name: size for name, size in manifest.pop("bytes").items()}
        complete = all(path.stat().st_size == size for path, size in sizes.items())
    except (OSError, ValueError, KeyError):
        return None
    return sorted(sizes) if manifest == request and complete else None


def _submit(coordinates: Sequence[str], work: Path, excludes: Sequence[str]) -> list[Path]:
    """Run the resolver with its own Ivy folder and return the downloaded jars."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        message = "pyspark is not installed: pip install 'lakeingest[local]'"
        raise ConfigError(message)
    spark_home = Path(spec.origin).parent
    program = spark_home / "bin" / ("spark-submit.cmd" if os.name == "nt" else "spark-submit")
    empty_script = work / "nothing.py"
    empty_script.write_text("", encoding="utf-8")
    command = [str(program), "--master", "local[1]", "--conf", f"spark.jars.ivy={work / 'ivy'}"]
    command += ["--conf", "spark.ui.enabled=false", "--packages", ",".join(coordinates)]
    if excludes:
        command += ["--exclude-packages", ",".join(excludes)]
    environment = {
        **os.environ,
        "JAVA_HOME": str(ensure_java()),
        "SPARK_HOME": str(spark_home),
        "PYSPARK_PYTHON": sys.executable,
    }
    # Set if spark-submit started this process; the resolver must not connect to that JVM.
    environment.pop("PYSPARK_GATEWAY_PORT", None)
    try:
        run = subprocess.run(
            [*command, str(empty_script)],
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
    """Return a message with the resolver's error and the remedy."""
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
