"""Totals of whole tables as they stand in the oracle's CSV: what running totals must end with.

The same measures by the other way: counted once from rows that the database printed, instead of
kept up from every line of its log. An oracle that lost a commit, or read one wrongly, differs.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from tests.oracles.changes import Kind, measured
from tests.oracles.running import RunningTotals
from tests.recordings.oracle import NULL, Oracle, Rows, Totals


def disagreements(oracle: Oracle, running: RunningTotals, added: str | None = None) -> list[str]:
    """Return where the totals after the last commit are not those of the final tables.

    Args:
        oracle: What was written.
        running: What it was written from; it knows which rows were changed since an ALTER.
        added: Default of columns that were added in the middle: rows not changed since have it.
    """
    commits = oracle.commits
    assert commits is not None
    return list(_disagreements(oracle, running, commits[-1], commits[0], added))


def _disagreements(
    oracle: Oracle,
    running: RunningTotals,
    last: Totals,
    first: Totals,
    added: str | None,
) -> Iterator[str]:
    for table in oracle.tables:
        rows = oracle.final(table)
        for measure, value in last[table].items():
            expected = of_rows(rows, measure)
            if added is not None and measure not in first[table]:
                untouched = running.tables[table].rows_without(measure.partition("_")[2])
                expected -= untouched * zlib.crc32(added.encode())
            if value != expected:
                yield f"{table}.{measure} is {value} after the last commit, {expected} in the table"


def of_rows(rows: Rows, measure: str) -> int:
    """Return one measure over all rows."""
    if measure == "count":
        return len(rows.rows)
    kinds: dict[str, Kind] = {"sum": "sum", "crc": "crc", "bool": "bool"}
    kind, _, column = measure.partition("_")
    at = rows.header.index(column)
    return sum(measured(kinds[kind], row[at]) for row in rows.rows if row[at] != NULL)
