"""Name the temporary views over a snapshot's tables.

Dots become underscores, so ``app.log_x`` and ``app_log.x`` would be one view. So would ``orders``
and ``Orders``, because Spark ignores case. Each of these tables gets a view whose name ends in
eight digits made from the table's own name. The name is the same in each snapshot, whatever other
tables exist. None of them keeps the plain name: a query must not show another table's rows once a
second table arrives.
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
        prefix: Prefix of each view's name.
    """
    names = list(tables)
    names_by_view: dict[str, list[str]] = defaultdict(list)
    for name in names:
        names_by_view[_plain(name).casefold()].append(name)
    view_keys = {key for key, group in names_by_view.items() if len(group) == 1}
    views = {}
    for name in names:
        view = _plain(name)
        if len(names_by_view[view.casefold()]) > 1:
            view = _unique_view(name, view_keys)
        views[f"{prefix}{view}"] = name
    return views


def _plain(name: str) -> str:
    return name.replace(".", "_")


def _unique_view(name: str, names: set[str]) -> str:
    """Return a view name that only this table can have; add it to ``names``."""
    digits = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    view, end = f"{_plain(name)}_{digits[:_DIGITS]}", _DIGITS
    while view.casefold() in names:
        end += 1
        view = f"{_plain(name)}_{digits[:end]}"
    names.add(view.casefold())
    return view
