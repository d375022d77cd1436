"""How a row holds the values of its columns: bare, or each in a cell (``cells.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from lakeingest.decode.cells import cell_type, is_omitted, value_in
from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.placeholder import unavailable


@dataclass(frozen=True)
class RowLayout:
    """The layout of a table's rows and keys on the wire.

    Attributes:
        cells: Whether each column of a row and of a key comes in a cell.
    """

    cells: bool = field(default=False, kw_only=True)

    @property
    def partial(self) -> bool:
        """Whether an update may lack any column."""
        return self.cells

    def row_type(self, columns: Sequence[SourceColumn]) -> StructType:
        """Return the type of a row or key of these columns on the wire."""
        kinds = ((column.name, self.field_type(column.type.wire)) for column in columns)
        return StructType([StructField(name, kind) for name, kind in kinds])

    def field_type(self, kind: DataType) -> DataType:
        """Return the type of a row's field, for values of this wire type."""
        return cell_type(kind) if self.cells else kind

    def value(self, wire: Column) -> Column:
        """Return the value in a row's field."""
        return value_in(wire) if self.cells else wire

    def omission(self, row: Column, column: SourceColumn, encodings: Encodings) -> Column | None:
        """Return the condition that a change's row omits a column; None: it never does.

        Args:
            row: The row on the wire, in a frame with the change's ``op``.
            column: The column.
            encodings: Wire settings of the connector.
        """
        wire = row.getField(column.name)
        if self.cells:
            return row.isNotNull() & is_omitted(wire, F.col("op"))
        return unavailable(wire, column, encodings)


BARE = RowLayout()
"""The layout of every connector but YugabyteDB's."""
