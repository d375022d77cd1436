"""Cells: how YugabyteDB's connectors tell a NULL from a column that an event leaves out.

With ``plugin.name=yboutput``, the default, and in the gRPC connector each column of a row and of a
key is ``{"value": x, "set": true}``, and ``{"value": null, "set": true}`` is a NULL. No cell at all
is a column that an update does not change (REPLICA IDENTITY CHANGE, the default, and the record
types CHANGE, CHANGE_OLD_NEW and MODIFIED_COLUMNS_OLD_AND_NEW_IMAGES). It is filled like any
unavailable value. A create has the whole row: what it has no cell of is NULL.

Cells are opened where a record is read (``row.py``), so that columns, types and declarations are
those of the values. The rejected way is a logical type of a cell: every place that asks for a type
would have to look into it. Whether a table comes in cells is seen, not set: a schema says it, and
without schemas a row does, because Debezium writes no other JSON object with just these two fields,
and the cells of a key are always there. A setting would have to be right per topic and per time.

Sources: ``PGTableSchemaBuilder`` and ``PostgresChangeRecordEmitter`` of ``yugabyte/debezium``,
``YBTableSchemaBuilder`` of ``yugabyte/debezium-connector-yugabytedb``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, StructField, StructType

_VALUE, _SET = "value", "set"
_BEFORE = r'^\{(?:"schema":"[^"]*",)?\s*"before":\s*null,'
_NULL_CELL = r'\{"value":\s*null,\s*"set":\s*true\}'
_SOME_CELL = r'"set":\s*true\s*\}'
_NULL = r":\s*null"


def opened(fields: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]] | None:
    """Return the fields of a Connect struct without their cells; null where they are no cells.

    Args:
        fields: Field schemas as ``columns.from_connect`` takes them.
    """
    values: list[Mapping[str, Any]] = []
    for item in fields:
        parts = {part["field"]: part for part in item.get("fields") or ()}
        if set(parts) != {_VALUE, _SET} or parts[_SET]["type"] != "boolean":
            return None
        values.append({**parts[_VALUE], "field": item["field"]})
    return values or None


def are_cells(row: Mapping[str, Any], names: Sequence[str]) -> bool | None:
    """Tell whether the columns of a JSON row are cells; null where there is no value to tell by."""
    found = [row[name] for name in names if row.get(name) is not None]
    if not found:
        return None
    return all(
        isinstance(value, Mapping)
        and set(value) == {_VALUE, _SET}
        and isinstance(value[_SET], bool)
        for value in found
    )


def wrapped(kind: DataType) -> StructType:
    """Return what a cell of values of this wire type is on the wire."""
    return StructType([StructField(_VALUE, kind), StructField(_SET, BooleanType())])


def value_in(cell: Column) -> Column:
    """Return the value in a cell; null where there is no cell."""
    return cell.getField(_VALUE)


def left_out(cell: Column, op: Column) -> Column:
    """Return a condition: the change says nothing about this column."""
    is_there = cell.isNotNull() & F.coalesce(cell.getField(_SET), F.lit(True))
    return (op == "u") & ~is_there


def may_leave_out(text: Column) -> Column:
    """Return a cheap condition: a JSON envelope in cells may lack one.

    True for each that does; true for some others, whose text has a null elsewhere. A null that is
    neither ``before`` nor in a cell is what is looked for.
    """
    rest = F.regexp_replace(F.regexp_replace(text, _BEFORE, ""), _NULL_CELL, "")
    return F.rlike(text, F.lit(_SOME_CELL)) & F.rlike(rest, F.lit(_NULL))
