"""Names of the temporary views over a snapshot's tables.

Dots become underscores, so ``app.log_x`` and ``app_log.x`` would be one view, and so would
``orders`` and ``Orders``, for Spark does not tell case apart. Each of such tables gets a view whose
name ends in eight digits made from the table's own name: it is the same in each snapshot, whatever
tables there are besides. None keeps the plain name; a query must not show another table's rows once
a second one arrives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import sha256

_DIGITS = 8


class Views(list[str]):
    """Names of views, in the order of their tables.

    Attributes:
        tables: View to the table that it shows.
    """

    def __init__(self, tables: Mapping[str, str]) -> None:
        """List the views of ``tables``."""
        super().__init__(tables)
        self.tables = dict(tables)


def view_names(tables: Iterable[str], prefix: str = "") -> dict[str, str]:
    """Return a view's name for each table: view to table, in the tables' order.

    Args:
        tables: Their names.
        prefix: What each view's name begins with.
    """
    names = list(tables)
    alike: dict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[_plain(name).casefold()].append(name)
    taken = {key for key, found in alike.items() if len(found) == 1}
    views = {}
    for name in names:
        view = _plain(name)
        if len(alike[view.casefold()]) > 1:
            view = _apart(name, taken)
        views[f"{prefix}{view}"] = name
    return views


def _plain(name: str) -> str:
    return name.replace(".", "_")


def _apart(name: str, taken: set[str]) -> str:
    """Return a name of a table's own that no view has; add it to ``taken``."""
    digits = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    view, end = f"{_plain(name)}_{digits[:_DIGITS]}", _DIGITS
    while view.casefold() in taken:
        end += 1
        view = f"{_plain(name)}_{digits[:end]}"
    taken.add(view.casefold())
    return view
