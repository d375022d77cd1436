"""Find out whether a file system is case-sensitive.

Object stores and Hadoop are; disks and network shares of macOS and Windows are not. The check
writes nothing: it swaps the case of a name that exists and looks for the result.
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from lakeingest.folders import without_file_scheme

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_MAX_NAMES = 20


def is_case_sensitive(folder: str) -> bool:
    """Return whether ``Orders`` and ``orders`` are two different names in a folder.

    Args:
        folder: Path or URI; it need not exist.
    """
    local = without_file_scheme(folder)
    if _SCHEME.match(local):
        return True
    path = Path(local).absolute()
    nearest = next(place for place in (path, *path.parents) if place.is_dir())
    for name in (*islice(nearest.iterdir(), _MAX_NAMES), nearest):
        other = name.with_name(name.name.swapcase()) if name.name else name
        if other.name != name.name:
            return not (other.exists() and other.samefile(name))
    return True
