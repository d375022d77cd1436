r"""Whole tables as text, row by row and type by type, as the recorded runs keep them.

The database itself writes the text, so that no Python value stands between: a numeric keeps its
scale and a timestamp its microseconds. Where ``lakeingest show`` has a form of its own for a type
(base64 for binary, JSON for arrays) the query asks for that form.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.recordings.oracle import NULL
from tests.workloads.source import Family

_COLUMNS = {
    "postgresql": """
        SELECT a.attname, format_type(a.atttypid, NULL), a.atttypmod
        FROM pg_attribute a WHERE a.attrelid = format('%%I.%%I', %s::text, %s::text)::regclass
        AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum""",
    "mariadb": """
        SELECT column_name, column_type, -1 FROM information_schema.columns
        WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position""",
}
_KEYS = {
    "postgresql": """
        SELECT a.attname FROM pg_index i
        CROSS JOIN LATERAL unnest(i.indkey::int[]) WITH ORDINALITY AS k(attnum, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE i.indrelid = format('%%I.%%I', %s::text, %s::text)::regclass AND i.indisprimary
        ORDER BY k.place""",
    "mariadb": """
        SELECT column_name FROM information_schema.key_column_usage
        WHERE table_schema = %s AND table_name = %s AND constraint_name = 'PRIMARY'
        ORDER BY ordinal_position""",
}


@dataclass(frozen=True)
class TableShape:
    """What a table looks like at the source.

    Attributes:
        name: Bare name.
        types: The source's type per column, in its order.
        key: Primary key columns, in the key's order.
    """

    name: str
    types: Mapping[str, str]
    key: tuple[str, ...]


def table_shape(connection: Any, family: Family, namespace: str, table: str) -> TableShape:
    """Return what ``table`` looks like now."""
    cursor = connection.cursor()
    cursor.execute(_COLUMNS[family], (namespace, table))
    types = {name: _type_name(kind, modifier) for name, kind, modifier in cursor.fetchall()}
    cursor.execute(_KEYS[family], (namespace, table))
    return TableShape(table, types, tuple(row[0] for row in cursor.fetchall()))


def write_table(connection: Any, family: Family, shape: TableShape, folder: Path) -> None:
    """Write all rows of a table, ordered by key, to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{shape.name}.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8", newline="", compresslevel=1) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(shape.types)
        for row in text_rows(connection, family, shape):
            writer.writerow(NULL if value is None else value for value in row)


def text_rows(connection: Any, family: Family, shape: TableShape) -> Iterator[Sequence[str | None]]:
    """Yield the rows of a table as texts, ordered by key, without holding all of them."""
    columns = ", ".join(_as_text(name, kind, family) for name, kind in shape.types.items())
    # With the table's name: a bare one would be the text that is selected, and 10 before 9.
    order = ", ".join(f"{shape.name}.{name}" for name in shape.key)
    query = f"SELECT {columns} FROM {shape.name} ORDER BY {order}"
    if family == "postgresql":
        with connection.cursor(name="whole_table") as cursor:
            cursor.itersize = 2_000
            yield from cursor.execute(query)
    else:
        from pymysql.cursors import SSCursor

        with connection.cursor(SSCursor) as cursor:
            cursor.execute(query)
            yield from cursor


def _as_text(name: str, kind: str, family: Family) -> str:
    if family == "mariadb":
        if kind.startswith("varbinary"):
            return f"REPLACE(TO_BASE64({name}), '\\n', '')"
        # A numeric sum keeps all digits of a double; as text alone it would be rounded.
        return f"CAST({name} AS CHAR CHARACTER SET utf8mb4)"
    if kind == "bytea":
        return f"translate(encode({name}, 'base64'), E'\\n', '')"
    if kind.endswith("[]"):
        return f"array_to_json({name})::text"
    # PostgreSQL's own cast says "true"; the recorded runs have what COPY says.
    return f"left({name}::text, 1)" if kind == "boolean" else f"{name}::text"


def _type_name(kind: str, modifier: int) -> str:
    """Return a type as information_schema has it; of a numeric also its precision and scale."""
    if kind != "numeric" or modifier < 0:
        return kind
    return f"numeric({(modifier - 4) >> 16},{(modifier - 4) & 0xFFFF})"
