"""Programs out of Debian packages: those installed, or unpacked into the user's cache.

A package is not installed: that needs root, starts a service of its own on the usual port, and
changes the machine for a test. It is fetched by ``apt-get download`` with what it depends on and
the machine has not, unpacked by ``dpkg-deb -x`` into a folder, complete or not at all, and run from
there with ``LD_LIBRARY_PATH``. A database in a wheel or a jar would spare Debian, and would be
another database than the one people run.

Where this cannot be done ``DebianPackageError`` says what is missing; the rig's fixtures turn
exactly that into a skipped test.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

__all__ = ["DebianPackageError", "Programs", "programs"]

CACHE = Path.home() / ".cache" / "lakeingest" / "rig" / "debian"

_APT_SECONDS = 600.0
_INST = re.compile(r"^Inst (\S+) \((\S+)", re.MULTILINE)
# Where Debian's packages put programs; PostgreSQL's version is a folder.
_FOLDERS = ("usr/bin", "usr/sbin", "usr/lib/postgresql/*/bin")


class DebianPackageError(Exception):
    """A program is not installed and its package cannot be had here."""


class Programs:
    """The programs of some packages, and what they need to run.

    Args:
        root: Where the packages are unpacked; ``/`` for installed ones.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, program: str) -> Path | None:
        """Return the path of a program, the newest version if there are several."""
        found = [path for folder in _FOLDERS for path in self.root.glob(f"{folder}/{program}")]
        return max(found, key=_version, default=None)

    def path(self, program: str) -> Path:
        """Return the path of a program that these packages have."""
        found = self.find(program)
        assert found is not None, f"{program} is not among the programs in {self.root}"
        return found

    def environment(self) -> dict[str, str]:
        """Return the variables with which a program finds its libraries and the other programs."""
        if self.root == Path("/"):
            return dict(os.environ)
        libraries = {path.parent for path in self.root.glob("**/*.so.*")}
        folders = {path for folder in _FOLDERS for path in self.root.glob(folder)}
        return {
            **os.environ,
            "LD_LIBRARY_PATH": _joined(libraries, os.environ.get("LD_LIBRARY_PATH")),
            "PATH": _joined(folders, os.environ.get("PATH")),
        }


def programs(packages: tuple[str, ...], needed: tuple[str, ...]) -> Programs:
    """Return programs, installed ones if all are, else fetched ones.

    Args:
        packages: The Debian packages that hold them.
        needed: The programs.

    Raises:
        DebianPackageError: They are not installed and the packages cannot be had.
    """
    for candidate in (Programs(Path("/")), Programs(CACHE / "+".join(packages))):
        if all(candidate.find(program) for program in needed):
            return candidate
    return _fetched(packages, needed, CACHE / "+".join(packages))


def _fetched(packages: tuple[str, ...], needed: tuple[str, ...], folder: Path) -> Programs:
    wanted = ", ".join(packages)
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            message = (
                f"{', '.join(needed)}: not installed, and without {tool} no Debian package can be "
                f"fetched. Install what Debian calls {wanted}"
            )
            raise DebianPackageError(message)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as work:
        tree = Path(work) / "tree"
        tree.mkdir()
        _download(packages, Path(work))
        for package in sorted(Path(work).glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), str(tree)], packages, Path(work))
        absent = [program for program in needed if Programs(tree).find(program) is None]
        if absent:
            message = f"the Debian packages {wanted} of this release hold no {', '.join(absent)}"
            raise DebianPackageError(message)
        # One rename: the folder is there complete or not at all. Somebody else's is as good.
        if folder.exists():
            shutil.rmtree(folder)
        tree.rename(folder)
    return Programs(folder)


def _download(packages: tuple[str, ...], folder: Path) -> None:
    """Bring the packages and what they need that is not installed."""
    root = os.geteuid() == 0
    try:
        _run(["apt-get", "download", "-q", *_missing(packages)], packages, folder)
    except DebianPackageError as error:
        if not root:
            message = f"{error}. Its lists may be old or missing: apt-get update"
            raise DebianPackageError(message) from error
        _run(["apt-get", "update", "-q"], packages, folder)
        _run(["apt-get", "download", "-q", *_missing(packages)], packages, folder)


def _missing(packages: tuple[str, ...]) -> list[str]:
    """Return the packages and all others that installing them would bring, with versions."""
    simulate = ["apt-get", "install", "--simulate", "--no-install-recommends", *packages]
    found = dict(_INST.findall(_run(simulate, packages, Path("/"))))
    # A package that is installed is fetched all the same: not all of its programs were found.
    return [
        *(f"{name}={version}" for name, version in found.items()),
        *(name for name in packages if name not in found),
    ]


def _run(command: list[str], packages: tuple[str, ...], folder: Path) -> str:
    try:
        run = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_APT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DebianPackageError(_failure(packages, f"no answer to {command[0]}")) from error
    if run.returncode:
        raise DebianPackageError(_failure(packages, run.stderr))
    return run.stdout


def _failure(packages: Iterable[str], said: str) -> str:
    names = " ".join(packages)
    return (
        f"the Debian package {names} cannot be had ({' '.join(said.split())[-500:]}). "
        f"Install it: apt-get install --no-install-recommends {names}"
    )


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", str(path.parent)))


def _joined(folders: set[Path], rest: str | None) -> str:
    return os.pathsep.join([*sorted(str(folder) for folder in folders), *([rest] if rest else [])])
