"""Where the tables of a lake lie: by their collections' names, or where the configuration says.

Names come from the source block, and a database takes any: ``../x`` lies outside the lake, ``a/b``
inside another table. So a name with anything but ASCII letters, digits, ``.``, ``_`` and ``-`` is
encoded for its folder: ``Order Items`` lies in ``Order_x0020_Items`` (UTF-16, as XML encodes
names). Other names are kept as they are. Rejected: ``%20``; Hadoop, object stores and the other
readers of a lake do not agree on who decodes it.

A publication names the folder of a table where that is not the table's name, and readers go by
that: lakes of earlier versions, which encoded nothing, stay readable.

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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakeingest.errors import ConfigError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LOCAL = re.compile(r"file:/+")
_OWN = "_lakeingest"
_TOMBSTONES = "__tombstones"

_PLAIN = re.compile(r"(?!\.)[A-Za-z0-9._-]+")
_ENCODED = re.compile(r"[^A-Za-z0-9._-]|^\.|_(?=x[0-9A-F]{4}[^A-Za-z0-9.-])")
_LONGEST = 240
"""Characters of a folder: file systems take 255, and tombstones lie beside it."""


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
        own = folder_name(collection)
        if len(own) > _LONGEST:
            message = (
                f"The name of table '{collection}' is too long for a folder. Set "
                f"lakeingest.table.{collection}.path to a folder for it."
            )
            raise ConfigError(message)
        folder = f"{self.root}/{own}"
        for other, path in self.paths.items():
            if overlap(folder, self._resolved(path)):
                raise ConfigError(_clash(collection, other))
        return folder

    def named(self, collections: Iterable[str]) -> dict[str, str]:
        """Return the folders of these tables that are not their names, as they are published."""
        found = {name: self.paths.get(name, folder_name(name)) for name in collections}
        return {name: path for name, path in found.items() if path != name}

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


def folder_name(collection: str) -> str:
    """Return the name of a table's folder: that of the table, unless a folder cannot have it."""
    name = collection
    if not _PLAIN.fullmatch(name):
        name = _ENCODED.sub(lambda found: _code(found[0]), name)
    if name == _OWN or name.endswith(_TOMBSTONES):
        # The ledger's, and that of the deleted rows' positions of the table without the ending.
        name = name[:-1] + _code(name[-1])
    return name


def _code(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"_x{units[at : at + 4]}_" for at in range(0, len(units), 4))


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
