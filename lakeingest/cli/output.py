r"""Write tables for people, JSON and CSV for programs to stdout, and messages to stderr.

Rich draws only on a terminal. Into a pipe or a file the same table goes as plain aligned text, so
that ``grep`` and a job's log can read it. This module writes the CSV itself, because Python's
``csv`` module cannot distinguish NULL from an empty string. Here NULL is ``\N`` without quotes, an
empty string is ``""``, and a text that is literally ``\N`` is quoted.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import islice

from lakeingest.config.redaction import scrub

NULL = "\\N"
"""NULL in CSV, as in PostgreSQL's COPY and in Hive."""

WIDEST_CELL = 40
"""How many characters of a value a table shows; JSON and CSV always hold the whole value."""

_WHOLE = 10_000

_NEEDS_QUOTES = re.compile(r'[",\r\n]|^\s|\s$')
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}


class OutputFormat(str, Enum):
    """How data is written to stdout."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def message(text: str) -> None:
    """Write a line for a person to stderr; replace every known secret."""
    sys.stderr.write(f"{scrub(text)}\n")
    sys.stderr.flush()


_logged: set[str] = set()
"""What was logged to this process's stderr."""


class LogToMessages(logging.Handler):
    """Write what lakeingest logs as a message: Python's own handler would not replace secrets."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record to stderr."""
        text = record.getMessage()
        _logged.add(text)
        message(f"{record.levelname.lower()}: {text}")


def warn(warnings: Iterable[str]) -> None:
    """Write warnings to stderr, one a line, but for those that a run has logged as they came."""
    for warning in warnings:
        if scrub(warning) not in _logged:
            message(f"warning: {warning}")


def csv_line(cells: Iterable[str | None]) -> str:
    """Return one line of CSV without its line end; ``None`` is NULL."""
    return ",".join(_csv_cell(cell) for cell in cells)


def write_csv(columns: Sequence[str], rows: Iterable[Sequence[str | None]]) -> None:
    """Write a header and rows as CSV (RFC 4180 quoting, lines end in a line feed), streaming."""
    sys.stdout.write(f"{csv_line(columns)}\n")
    for row in rows:
        sys.stdout.write(f"{csv_line(row)}\n")
    sys.stdout.flush()


def write_lines(lines: Iterable[str]) -> None:
    """Write complete lines, such as one JSON object each, streaming."""
    for line in lines:
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def write_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | None]],
    limit: int | None = None,
    widest: int = WIDEST_CELL,
) -> bool:
    """Draw a table of at most ``limit`` rows, in memory, because widths depend on all rows.

    Args:
        columns: Names of the columns.
        rows: The cells of each row; ``None`` is NULL.
        limit: Rows to draw at most; ``None``: all.
        widest: Characters of a cell to show at most.

    Returns:
        Whether there are more rows than the table shows.
    """
    remaining = iter(rows)
    cells = [tuple(_table_cell(cell, widest) for cell in row) for row in islice(remaining, limit)]
    if sys.stdout.isatty():
        _draw_rich(columns, cells)
    else:
        _draw_plain(columns, cells)
    # Flush before any message about the table: both may go to one log.
    sys.stdout.flush()
    return next(remaining, None) is not None


def write_facts(facts: Mapping[str, object], output: OutputFormat) -> None:
    """Write named values: a two-column table, one JSON object, or CSV of ``name,value``.

    A nested mapping stays nested in JSON; the other formats join its names with dots. Known secrets
    are replaced.
    """
    facts = {name: _scrubbed(value) for name, value in facts.items()}
    if output is OutputFormat.JSON:
        write_lines([json.dumps(facts, default=str, ensure_ascii=False)])
        return
    rows = list(_flat(facts))
    if output is OutputFormat.CSV:
        write_csv(("name", "value"), rows)
    else:
        write_table(("name", "value"), rows, widest=_WHOLE)


def _scrubbed(value: object) -> object:
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {scrub(str(name)): _scrubbed(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_scrubbed(item) for item in value]
    return value


def _flat(facts: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, str | None]]:
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _fact_text(value)


def _fact_text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple, set, frozenset)):
        return ", ".join(str(item) for item in value)
    return str(value)


def _csv_cell(cell: str | None) -> str:
    if cell is None:
        return NULL
    if cell in ("", NULL) or _NEEDS_QUOTES.search(cell):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _table_cell(cell: str | None, widest: int) -> str:
    if cell is None:
        return "NULL"
    # Control characters of a stored value must not reach the terminal.
    text = cell[: widest + 1].translate(_CONTROL)
    return text if len(text) <= widest else f"{text[: widest - 1]}…"


def _draw_plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [tuple(columns), *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    rule = tuple("-" * width for width in widths)
    for line in (lines[0], rule, *rows):
        padded = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write(f"{padded.rstrip()}\n")


def _draw_rich(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    for column in columns:
        table.add_column(Text(column))
    for row in rows:
        # Use Text: rich must not read markup in a stored value.
        table.add_row(*(Text(cell) for cell in row))
    Console(file=sys.stdout).print(table)
