"""Lakes as an older lakeingest wrote them, packed, and the log that they were written from.

``python -m tests.apply.old_lakes FOLDER`` writes them with the code that is checked out. To add the
lakes of a release, run it there, and name the folder in ``test_old_lakes.py``.
"""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

from lakeingest.session import session
from tests.logs.written import Sent, WrittenLog, place_of

TABLES = ("public.a", "public.b")
LAKES: Mapping[str, Mapping[str, str]] = {
    f"{format_}-{deletes}": {"target_format": format_, "deletes": deletes}
    for format_ in ("delta", "hudi")
    for deletes in ("soft", "hard")
}

Row = tuple[str, int, int | None, str]
"""Table, key, value and operation."""

BEFORE: tuple[tuple[Row, ...], ...] = (
    tuple((name, id_, id_, "c") for name in TABLES for id_ in range(1, 7)),
    (("public.a", 1, 11, "u"), ("public.b", 1, 11, "u")),
    (("public.a", 2, None, "d"), ("public.b", 3, None, "d")),
    (("public.a", 3, 33, "u"),),
)
"""Transactions that are in the lake; the last one is a publication of its own."""

AFTER: tuple[tuple[Row, ...], ...] = (
    (("public.a", 1, 111, "u"), ("public.a", 2, 22, "c"), ("public.b", 4, None, "d")),
    (("public.b", 0, None, "t"), ("public.b", 7, 7, "c"), ("public.a", 7, 7, "c")),
    (("public.a", 3, None, "d"),),
)
"""Transactions that follow."""


def write(log: WrittenLog, transactions: tuple[tuple[Row, ...], ...], first: int) -> None:
    """Write transactions of a PostgreSQL connector; the first one has this number."""
    for number, rows in enumerate(transactions, first):
        commit = str(1_000 * number)
        sent = []
        for index, (name, id_, v, op) in enumerate(rows):
            lsn = 1_000 * number - 500 + index
            sent.append(Sent(name, id_, v, place_of(name, lsn, 1_000 * (number - 1)), op))
        log.transaction(f"{number}:{commit}", *sent)


def source_after(*histories: tuple[tuple[Row, ...], ...]) -> dict[str, dict[int, int]]:
    """Return the source's tables after these transactions: key to value."""
    tables: dict[str, dict[int, int]] = {}
    for name, id_, v, op in (row for history in histories for rows in history for row in rows):
        rows_of_table = tables.setdefault(name, {})
        if op == "t":
            rows_of_table.clear()
        elif v is None:
            del rows_of_table[id_]
        else:
            rows_of_table[id_] = v
    return tables


def main(folder: Path) -> None:
    """Write and pack all lakes."""
    spark = session("old lakes", master="local[2]", hudi=True)
    folder.mkdir(parents=True, exist_ok=True)
    for name, settings in LAKES.items():
        log, lake = WrittenLog(folder / f"log-{name}", "postgresql"), folder / name
        write(log, BEFORE[:-1], 1)
        log.ingest(spark, lake, **settings)
        write(log, BEFORE[-1:], len(BEFORE))
        log.ingest(spark, lake, **settings)
        with tarfile.open(folder / f"{name}.tar.xz", "w:xz") as packed:
            packed.add(lake, "lake")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
