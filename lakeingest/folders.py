"""Where the tables of a lake lie: by their collections' names, or where the configuration says.

Writer and readers ask the same object, so they cannot disagree. A folder is kept as it was
configured, relative to the lake where it can be: a lake that is copied elsewhere stays readable.
Rejected: to keep only resolved paths, which would name the old place in every publication.

One folder inside another is refused. Each format takes what it finds below its own folder for its
own: Delta's VACUUM removes it, Hudi may list it. The ledger alone may lie inside a table, below
``_lakeingest``, for both pass over folders of such names that hold no partition of theirs.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakeingest.errors import ConfigError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LOCAL = re.compile(r"file:/+")
_OWN = "_lakeingest"


@dataclass(frozen=True)
class LakeFolders:
    """The folders of one lake.

    Attributes:
        root: The lake's folder (path or URI), without a slash at its end.
        paths: Collection to folder, where it is not the collection's name: relative to ``root``
            (``.`` is ``root`` itself), or absolute, or a URI.
    """

    root: str
    paths: Mapping[str, str] = field(default_factory=dict)

    def table(self, collection: str) -> str:
        """Return the folder of a collection's table.

        Raises:
            ConfigError: Another table's configured folder is the same, holds it or lies in it.
        """
        if collection in self.paths:
            return self._resolved(self.paths[collection])
        folder = f"{self.root}/{collection}"
        for other, path in self.paths.items():
            if overlap(folder, self._resolved(path)):
                raise ConfigError(_clash(collection, other))
        return folder

    def problems(self) -> list[str]:
        """Say which configured folders cannot be used, and why."""
        found = []
        folders = {name: self._resolved(path) for name, path in self.paths.items()}
        names = sorted(folders)
        for index, name in enumerate(names):
            if inside(folders[name], f"{self.root}/{_OWN}"):
                found.append(
                    f"lakeingest.table.{name}.path lies in {_OWN}, where the lake's ledger is: "
                    "choose another folder"
                )
            found.extend(
                _clash(name, other)
                for other in names[index + 1 :]
                if overlap(folders[name], folders[other])
            )
        return found

    def _resolved(self, path: str) -> str:
        if path.startswith("/") or _SCHEME.match(path):
            return path
        plain = posixpath.normpath(path)
        return self.root if plain == "." else f"{self.root}/{plain}"


def overlap(one: str, other: str) -> bool:
    """Tell whether two folders are the same, or one lies in the other."""
    return inside(one, other) or inside(other, one)


def inside(folder: str, outer: str) -> bool:
    """Tell whether ``folder`` is ``outer`` or lies in it."""
    return f"{_plain(folder)}/".startswith(f"{_plain(outer)}/")


def _plain(folder: str) -> str:
    """Return one form of a folder that can be written in several."""
    local = _LOCAL.sub("/", folder)
    scheme = _SCHEME.match(local)
    if scheme:
        return scheme[0].lower() + posixpath.normpath(local[scheme.end() :])
    return posixpath.abspath(local).rstrip("/")


def _clash(one: str, other: str) -> str:
    return (
        f"tables {one} and {other} would lie in one folder, or one inside the other: give each a "
        f"folder of its own by lakeingest.table.{one}.path and lakeingest.table.{other}.path"
    )
