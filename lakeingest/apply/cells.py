"""Refuse rows whose columns are cells of ``value`` and ``set``, as YugabyteDB's plugin sends them.

``yboutput`` wraps every column, key columns too, to tell a NULL from a column that the event leaves
out. Read as it is, a cell would pass for a struct, or as text for a value. With
``plugin.name=pgoutput`` the same connector sends plain rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pyspark.sql.types import StructType

from lakeingest.errors import ConfigError
from lakeingest.plan.spec import TableSpec

_CELL = {"value", "set"}


def refuse_cells(table: TableSpec, samples: Iterable[bytes | None]) -> None:
    """Stop at a table whose rows are cells.

    Args:
        table: Its columns as they would be read.
        samples: Some of its records, as they came.

    Raises:
        ConfigError: The connector has another plugin.
    """
    typed = any(
        isinstance(column.type.spark, StructType) and set(column.type.spark.names) == _CELL
        for column in table.columns
    )
    if typed or any(_has_cells(sample) for sample in samples if sample):
        message = (
            f"The columns of table '{table.collection}' come wrapped as value and set: the "
            "connector uses YugabyteDB's plugin yboutput. Set plugin.name=pgoutput in the "
            "connector, with REPLICA IDENTITY FULL or DEFAULT, and start it over. Nothing of this "
            "batch was published."
        )
        raise ConfigError(message)


def _has_cells(sample: bytes) -> bool:
    try:
        row = json.loads(sample).get("after")
    except (ValueError, AttributeError):
        return False  # Avro, or broken: told elsewhere.
    values = list(row.values()) if isinstance(row, Mapping) else []
    cells = [value for value in values if isinstance(value, Mapping) and set(value) == _CELL]
    return bool(cells) and len(cells) + values.count(None) == len(values)
