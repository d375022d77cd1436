"""A schema registry that speaks Confluent's API: Apicurio, for Confluent's own is on no mirror.

Its schemas lie in a file (H2), each written before it is acknowledged. In memory, its default, a
registry that was killed would give the old ids away a second time, while converters and records go
on using them: a failure that no registry in production has.

3.0.9 and not a newer one: since 3.1 it is compiled for Java 21.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.rig.ivy import Artifact, retrieve
from tests.rig.jvm import java
from tests.rig.process import Server

__all__ = ["SchemaRegistry"]

_HEAP_MB = 384
_APP = Artifact(
    "io.apicurio",
    "apicurio-registry-app",
    "3.0.9",
    108_860_403,
    extension="tar.gz",
    classifier="all",
)
_CACHE = Path.home() / ".cache" / "lakeingest" / "rig" / f"{_APP.name}-{_APP.version}"
_RUNNER = _CACHE / f"{_APP.name}-{_APP.version}-runner.jar"


class SchemaRegistry(Server):
    """A registry on loopback."""

    @property
    def url(self) -> str:
        """The address that converters and clients are given."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def get(self, path: str) -> Any:
        """Return what the registry answers to a question, for instance ``/schemas/ids/1``."""
        with urllib.request.urlopen(self.url + path, timeout=10.0) as answer:
            return json.load(answer)

    def schema(self, number: int) -> Any:
        """Return the Avro schema with this id."""
        return json.loads(self.get(f"/schemas/ids/{number}")["schema"])

    def fetch(self) -> None:
        if _RUNNER.is_file():
            return
        _CACHE.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=_CACHE.parent) as work:
            tree = Path(work) / "tree"
            with tarfile.open(retrieve(_APP, Path(work))) as archive:
                archive.extractall(tree, filter="data")
            # One rename: the folder is there complete or not at all.
            if _CACHE.exists():
                shutil.rmtree(_CACHE)
            tree.rename(_CACHE)

    def _prepare(self) -> None:
        """Nothing: the port and the place of the data are given on the command line."""

    def _command(self) -> list[str]:
        return [
            *java(_HEAP_MB),
            "-Dquarkus.http.host=127.0.0.1",
            f"-Dquarkus.http.port={self.port}",
            "-Dquarkus.log.level=WARN",
            f"-Dapicurio.datasource.url=jdbc:h2:file:{self._folder / 'registry'};WRITE_DELAY=0",
            "-jar",
            str(_RUNNER),
        ]

    def _answers(self) -> bool:
        with suppress(urllib.error.URLError, TimeoutError, ConnectionError):
            self.get("/subjects")
            return True
        return False
