"""Cells: how YugabyteDB's connectors separate a NULL from a column that an event omits.

With ``plugin.name=yboutput``, the default, and in the gRPC connector each column of a row and of a
key is ``{"value": x, "set": true}``, and ``{"value": null, "set": true}`` is a NULL. If an update
does not change a column, the column has no cell (REPLICA IDENTITY CHANGE, the default, and the
record types CHANGE, CHANGE_OLD_NEW and MODIFIED_COLUMNS_OLD_AND_NEW_IMAGES). It is filled like any
unavailable value. A create has the whole row: a column without a cell is NULL.

``row_layout.py`` opens the cells where a record is read, so columns, types and declarations are
those of the values. Rejected: a logical type of a cell; every place that needs a type would have to
look into it. The records show whether a table comes in cells: a schema says so, and without schemas
a row does, because Debezium writes no other JSON object with just these two fields, and a key
always has its cells. Rejected: a setting; it would have to be right per topic and per time.

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


def without_cells(fields: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]] | None:
    """Return the fields of a Connect struct without their cells; None if they are not cells.

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
    """Return whether the columns of a JSON row are cells; None if the row has no value."""
    values = [row[name] for name in names if row.get(name) is not None]
    if not values:
        return None
    return all(
        isinstance(value, Mapping)
        and set(value) == {_VALUE, _SET}
        and isinstance(value[_SET], bool)
        for value in values
    )


def cell_type(kind: DataType) -> StructType:
    """Return the type of a cell on the wire, for values of this wire type."""
    return StructType([StructField(_VALUE, kind), StructField(_SET, BooleanType())])


def value_in(cell: Column) -> Column:
    """Return the value in a cell; NULL where there is no cell."""
    return cell.getField(_VALUE)


def is_omitted(cell: Column, op: Column) -> Column:
    """Return a condition: the change omits this column."""
    is_there = cell.isNotNull() & F.coalesce(cell.getField(_SET), F.lit(True))
    return (op == "u") & ~is_there


def may_omit(text: Column) -> Column:
    """Return a cheap condition: a JSON envelope in cells may lack a cell.

    True for each envelope that lacks one, and for some others whose text has a null elsewhere. The
    condition looks for a null that is neither ``before`` nor in a cell.
    """
    rest = F.regexp_replace(F.regexp_replace(text, _BEFORE, ""), _NULL_CELL, "")
    return F.rlike(text, F.lit(_SOME_CELL)) & F.rlike(rest, F.lit(_NULL))
