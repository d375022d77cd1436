r"""Row by row: what ``lakeingest show --output csv`` prints against the source's own CSV.

Both are text, written by different programs, so values are brought to one form by the column's
declared type, and by nothing else: a comparison that guessed types from the values would accept a
string ``1`` for a boolean, or a decimal that lost its scale.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from tests.recordings.oracle import NULL, Rows

SHOWN = 48
"""Longest part of a value that a message shows: enough to recognise it, not a whole document."""

TIMESTAMP = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d:\d\d)(?:\.(?P<micros>\d{1,6}))?(?P<zone>.*)"
)


@dataclass(frozen=True)
class Accepted:
    """A difference that the events themselves cannot avoid, with its reason.

    Attributes:
        table: Bare table name.
        column: The column.
        source: What the source's CSV says.
        lake: What the lake says instead.
        reason: Why no consumer of these events can know better.
    """

    table: str
    column: str
    source: str
    lake: str
    reason: str


@dataclass(frozen=True)
class Comparison:
    """Outcome for one table.

    Attributes:
        table: Bare table name.
        rows: Rows at the source.
        accepted: Values that differ for a reason known beforehand.
        differences: Short descriptions, the first few of each sort; empty means equal.
    """

    table: str
    rows: int
    accepted: int
    differences: tuple[str, ...]


def _boolean(value: str) -> str:
    return {"t": "true", "f": "false", "1": "true", "0": "false"}.get(value, value)


def _decimal(value: str) -> str:
    try:
        return str(Decimal(value).normalize())
    except InvalidOperation:
        return value


def _timestamp(utc: Sequence[str]) -> Callable[[str], str]:
    def normal(value: str) -> str:
        match = TIMESTAMP.fullmatch(value)
        if match is None or match["zone"] not in utc:
            return value
        micros = (match["micros"] or "").ljust(6, "0")
        return f"{match['day']} {match['time']}.{micros}"

    return normal


def _floating(value: str) -> str:
    try:
        return repr(float(value))
    except ValueError:
        return value


def _json(value: str) -> str:
    try:
        return json.dumps(json.loads(value))
    except ValueError:
        return value


_FORMS: Mapping[str, Callable[[str], str]] = {
    "BOOLEAN": _boolean,
    # MariaDB's CSV prints a `timestamp` in the session's zone, which was UTC, without saying so.
    "TIMESTAMP": _timestamp(["", "Z", "+00", "+00:00"]),
    "TIMESTAMP_NTZ": _timestamp([""]),
    "FLOAT": _floating,
    "DOUBLE": _floating,
}


def normaliser(kind: str) -> Callable[[str], str]:
    """Return the function that brings text of the Spark DDL type ``kind`` to one form."""
    if kind.startswith("DECIMAL"):
        return _decimal
    # Both sides print arrays as JSON, with and without spaces.
    return _json if kind.startswith("ARRAY") else _FORMS.get(kind, str)


def compare_table(
    table: str,
    source: Rows,
    lake: Rows,
    *,
    schema: Mapping[str, str],
    key: Sequence[str],
    accepted: Sequence[Accepted] = (),
) -> Comparison:
    """Compare ``lake`` with ``source``: columns, keys, every value, and the order of the rows."""
    if set(source.header) != set(lake.header):
        said = f"columns {_names(lake.header)} where the source has {_names(source.header)}"
        return Comparison(table, len(source.rows), 0, (said,))
    expected = _by_key(source, source.header, schema, key)
    lake_rows = _by_key(lake, source.header, schema, key)
    differences = _keys_twice(lake, key)
    missing = [name for name in expected if name not in lake_rows]
    extra = [name for name in lake_rows if name not in expected]
    if missing:
        differences.append(f"{len(missing)} rows missing, first {_shown_key(key, missing[0])}")
    if extra:
        differences.append(
            f"{len(extra)} rows the source does not have, first {_shown_key(key, extra[0])}"
        )
    allowed = {(a.column, a.source, a.lake) for a in accepted if a.table == table}
    granted = 0
    wrong: Counter[str] = Counter()
    first: dict[str, str] = {}
    for name, row in expected.items():
        for column, want, got in zip(source.header, row, lake_rows.get(name, row), strict=True):
            if want == got:
                continue
            if (column, want, got) in allowed:
                granted += 1
                continue
            wrong[column] += 1
            first.setdefault(
                column, f"{_shown_key(key, name)}: lake {_shown(got)}, source {_shown(want)}"
            )
    differences += [
        f"column {column} wrong in {n} rows, first {first[column]}" for column, n in wrong.items()
    ]
    if not differences and list(expected) != list(lake_rows):
        differences.append(f"rows are equal but not ordered by {_names(key)}")
    return Comparison(table, len(source.rows), granted, tuple(differences))


def _by_key(
    rows: Rows, header: Sequence[str], schema: Mapping[str, str], key: Sequence[str]
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return normalised rows by key, columns in the order of ``header``."""
    order = [rows.header.index(column) for column in header]
    normal = [normaliser(schema[column]) for column in header]
    keys = [rows.header.index(column) for column in key]
    return {
        tuple(row[at] for at in keys): tuple(
            NULL if row[at] == NULL else form(row[at])
            for at, form in zip(order, normal, strict=True)
        )
        for row in rows.rows
    }


def _keys_twice(rows: Rows, key: Sequence[str]) -> list[str]:
    at = [rows.header.index(column) for column in key]
    counts = Counter(tuple(row[i] for i in at) for row in rows.rows)
    twice = [name for name, n in counts.items() if n > 1]
    if not twice:
        return []
    return [f"{len(twice)} keys more than once in the lake, first {_shown_key(key, twice[0])}"]


def _shown(value: str) -> str:
    if value == NULL:
        return "NULL"
    if len(value) <= SHOWN:
        return repr(value)
    return f"{value[:SHOWN]!r}… ({len(value)} characters)"


def _shown_key(key: Sequence[str], values: Sequence[str]) -> str:
    return ", ".join(f"{column}={value}" for column, value in zip(key, values, strict=True))


def _names(columns: Sequence[str]) -> str:
    return ", ".join(columns)
