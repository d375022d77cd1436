"""Whether a file system tells names apart that differ only by case.

Object stores and Hadoop do; disks of macOS and Windows, and their shares, do not. Nothing is
written to find out: a name that exists is looked for with its case swapped.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_LOOKED_AT = 20


def tells_case_apart(folder: str) -> bool:
    """Return whether ``Orders`` and ``orders`` are two names in a folder.

    Args:
        folder: Path or URI; it need not exist.
    """
    local = re.sub("^file:/+", "/", folder)
    if _SCHEME.match(local):
        return True
    path = Path(local).absolute()
    there = next(place for place in (path, *path.parents) if place.is_dir())
    for name in (*islice(there.iterdir(), _LOOKED_AT), there):
        other = name.with_name(name.name.swapcase()) if name.name else name
        if other.name != name.name:
            return not (other.exists() and other.samefile(name))
    return True
