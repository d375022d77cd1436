"""Read and write ``jars/lock.json``, the lock that pins each jar of lakeingest by its checksum.

The rejected way is ``spark.jars.packages`` at session start, as in most examples. Then each start
queries a repository, gets whatever the repository serves that day, and fails on a machine without
network. With a lock the same bytes run everywhere, and reviewers see each change of the engine in
one file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from lakeingest.errors import InvariantError, UnavailableError

GROUPS = ("delta", "kafka", "avro", "hudi", "jdbc")
"""The groups of jars that a session can need: a table format, a source, a record format or
databases, each."""


@dataclass(frozen=True)
class Jar:
    """One pinned jar.

    Attributes:
        group: The entry of ``GROUPS`` that needs the jar.
        coordinate: Maven group and artifact, such as ``io.delta:delta-storage``.
        version: Maven version.
        file: File name, without folder.
        bytes: Size in bytes.
        sha256: Checksum in lower-case hexadecimal.
        why: What fails without the jar, or the reason for this version.
    """

    group: str
    coordinate: str
    version: str
    file: str
    bytes: int
    sha256: str
    why: str

    @property
    def package(self) -> str:
        """The full Maven coordinate, ``group:artifact:version``."""
        return f"{self.coordinate}:{self.version}"

    def check(self, path: Path) -> None:
        """Compare a file with the pinned size and checksum.

        Raises:
            UnavailableError: The file differs. It stays in its place; do not use it.
        """
        size = path.stat().st_size
        if size != self.bytes:
            message = f"{path} has {size} bytes where the lock pins {self.bytes}: {_REMEDY}"
            raise UnavailableError(message)
        digest = checksum(path)
        if digest != self.sha256:
            message = f"{path} has sha256 {digest} where the lock pins {self.sha256}: {_REMEDY}"
            raise UnavailableError(message)


_REMEDY = "it was not used. Delete it and run again"


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file in lower-case hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def lock_path() -> Path:
    """Return the lock's path: inside an installed package, else at the top of the repository.

    Raises:
        InvariantError: Neither place has the lock; the build of the package left it out.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_jars", package.parent / "jars"):
        if (folder / "lock.json").is_file():
            return folder / "lock.json"
    message = "this build of lakeingest carries no jars/lock.json. Install it again"
    raise InvariantError(message)


def read_lock(path: Path | None = None) -> tuple[Jar, ...]:
    """Return the pinned jars in the order of the file (default: the lock of this package)."""
    entries = json.loads((path or lock_path()).read_text(encoding="utf-8"))
    return tuple(Jar(**entry) for entry in entries)


def write_lock(path: Path, jars: Iterable[Jar]) -> None:
    """Write a lock that ``read_lock`` reads back unchanged."""
    text = json.dumps([asdict(jar) for jar in jars], indent=2) + "\n"
    path.write_text(text, encoding="utf-8")


def fingerprint(jars: Sequence[Jar]) -> str:
    """Return a short hash of the pinned jars, so that each lock has its own cache folder."""
    pins = "\n".join(sorted(f"{jar.file} {jar.sha256}" for jar in jars))
    return hashlib.sha256(pins.encode()).hexdigest()[:12]
