"""Find the folder of each table: from its collection's name, or from the configuration.

Collection names come from the source block, and a database allows any name: ``../x`` would lie
outside the lake, ``a/b`` inside another table. So ``folder_name`` encodes every character except
ASCII letters, digits, ``.``, ``_`` and ``-``: ``Order Items`` lies in ``Order_x0020_Items``
(UTF-16, as XML encodes names). Other names stay as they are. Rejected: ``%20``; Hadoop, object
stores and the other readers of a lake do not agree on who decodes it.

If a table's folder differs from the table's name, the publication names the folder, and readers use
the publication. So lakes of earlier versions, which encoded nothing, stay readable.

The writer and the readers use the same class, so they cannot disagree. A path stays as the
configuration gives it, relative to the lake if possible: a copy of the lake elsewhere stays
readable. Rejected: to publish only resolved paths; every publication would name the old place.

A table that is loaded anew (``lakeingest reload``) gets a folder beside its earlier one, named by
the number of the publication that began it: ``orders__load_12``. Older publications name the
earlier folder, whose versions they mean.

A folder inside another table's folder is refused. Each format treats everything below its folder as
its own: Delta's VACUUM removes it, Hudi may list it. The ledger alone may lie inside a table, below
``_lakeingest``: both formats skip such a folder name unless it is one of their partitions.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakeingest.errors import ConfigError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LOCAL = re.compile(r"^file:/+")
_OWN = "_lakeingest"
LEDGER_FOLDER = f"{_OWN}/ledger"
"""The ledger's folder, relative to the target path: a reader needs only the lake."""

TOMBSTONES = "__tombstones"
"""Suffix of a table's folder name: the side table of tombstones always lies beside the table."""

_LOAD = re.compile(r"__load_([1-9][0-9]*)$")
"""End of the name of a folder into which a table was loaded anew."""

_PLAIN = re.compile(r"(?!\.)[A-Za-z0-9._-]+")
_ENCODED = re.compile(r"[^A-Za-z0-9._-]|^\.|_(?=x[0-9A-F]{4}[^A-Za-z0-9.-])")
_LONGEST = 240
"""Most characters of a folder's name. File systems allow 255; the tombstones' folder beside the
table adds an ending to the name."""


def without_file_scheme(path: str) -> str:
    """Return a path of this machine without ``file:``; other texts as they are."""
    return _LOCAL.sub("/", path)


@dataclass(frozen=True)
class LakeFolders:
    """The folders of one lake.

    Attributes:
        root: The lake's folder (path or URI), without a slash at its end.
        paths: Map from collection to folder, for each folder that is not the collection's name:
            relative to ``root`` (``.`` is ``root`` itself), absolute, or a URI.
        loads: Map from collection to the publication that began to load it anew, if one did.
    """

    root: str
    paths: Mapping[str, str] = field(default_factory=dict)
    loads: Mapping[str, int] = field(default_factory=dict)

    @property
    def ledger(self) -> str:
        """The ledger's folder."""
        return f"{self.root}/{LEDGER_FOLDER}"

    def table(self, collection: str) -> str:
        """Return the folder of a collection's table.

        Raises:
            ConfigError: The name is too long for a folder, or another table's configured folder
                is the same, contains this folder or lies in it.
        """
        if collection in self.paths:
            return self._resolved(self.paths[collection]) + self._ending(collection)
        own_name = folder_name(collection)
        if len(own_name) > _LONGEST:
            message = (
                f"The name of table '{collection}' is too long for a folder. Set "
                f"lakeingest.table.{collection}.path to a folder for it."
            )
            raise ConfigError(message)
        folder = f"{self.root}/{own_name}{self._ending(collection)}"
        for other, path in self.paths.items():
            if overlap(folder, self._resolved(path)):
                raise ConfigError(_clash(collection, other))
        return folder

    def named(self, collections: Iterable[str]) -> dict[str, str]:
        """Return the folders that differ from their table's name, as a publication stores them."""
        folders = {
            name: self.paths.get(name, folder_name(name)) + self._ending(name)
            for name in collections
        }
        return {name: path for name, path in folders.items() if path != name}

    def problems(self) -> list[str]:
        """Return one message per configured folder that cannot be used, with the reason."""
        messages = []
        folders = {name: self._resolved(path) for name, path in self.paths.items()}
        names = sorted(folders)
        for index, name in enumerate(names):
            if inside(folders[name], f"{self.root}/{_OWN}"):
                messages.append(
                    f"lakeingest.table.{name}.path lies in {_OWN}, where the lake's ledger is: "
                    "choose another folder"
                )
            if load_of(folders[name]):
                messages.append(
                    f"lakeingest.table.{name}.path ends like the folder of a table that was loaded "
                    "anew: give the path without that ending"
                )
            messages.extend(
                _clash(name, other)
                for other in names[index + 1 :]
                if overlap(folders[name], folders[other])
            )
        return messages

    def _ending(self, collection: str) -> str:
        load = self.loads.get(collection)
        return f"__load_{load}" if load else ""

    def _resolved(self, path: str) -> str:
        if path.startswith("/") or _SCHEME.match(path):
            return path
        plain = posixpath.normpath(path)
        return self.root if plain == "." else f"{self.root}/{plain}"


def folder_name(collection: str) -> str:
    """Return the name of a table's folder: the table's own name, encoded where necessary."""
    name = collection
    if not _PLAIN.fullmatch(name):
        name = _ENCODED.sub(lambda match: _code(match[0]), name)
    if name == _OWN or name.endswith(TOMBSTONES) or load_of(name):
        # These names are taken: by the ledger's folder, and by the folders of tombstones and of
        # later loads of the table whose name lacks the ending.
        name = name[:-1] + _code(name[-1])
    return name


def load_of(path: str) -> int:
    """Return the publication that began to load a table into this folder; 0: the first load."""
    ending = _LOAD.search(path)
    return int(ending[1]) if ending else 0


def _code(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"_x{units[at : at + 4]}_" for at in range(0, len(units), 4))


def overlap(one: str, other: str) -> bool:
    """Return whether two folders are the same or one lies in the other."""
    return inside(one, other) or inside(other, one)


def inside(folder: str, outer: str) -> bool:
    """Return whether ``folder`` is ``outer`` or lies in it."""
    return f"{_plain(folder)}/".startswith(f"{_plain(outer)}/")


def _plain(folder: str) -> str:
    """Return the normal form of a folder's path, which several spellings share."""
    local = without_file_scheme(folder)
    scheme = _SCHEME.match(local)
    if scheme:
        return scheme[0].lower() + posixpath.normpath(local[scheme.end() :])
    return posixpath.abspath(local).rstrip("/")


def _clash(one: str, other: str) -> str:
    return (
        f"tables {one} and {other} would lie in one folder, or one inside the other: give each a "
        f"folder of its own by lakeingest.table.{one}.path and lakeingest.table.{other}.path"
    )
