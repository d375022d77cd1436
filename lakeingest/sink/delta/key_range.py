"""Find the data files that may have rows with a changeset's keys, by their statistics.

A table that grows by numbers from a sequence is changed mostly at its end, and its new keys are
outside of the range of every file. That is proof, and no row is read. Where keys are spread, every
file may have some, and the statistics exclude none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType, StructType

from lakeingest.engine.delta.files import DataFile
from lakeingest.named import named
from lakeingest.sink.contract import Changeset


@dataclass(frozen=True)
class KeyRange:
    """Lowest and highest value of each key column that is an integer.

    Attributes:
        columns: Lowest and highest value by column.
    """

    columns: dict[str, tuple[int, int]]

    def files(self, files: Sequence[DataFile]) -> tuple[DataFile, ...]:
        """Return those of ``files`` whose statistics do not exclude a row in the range."""
        return tuple(file for file in files if self._may_have_rows(file))

    def rows(self, rows: DataFrame) -> DataFrame:
        """Return the rows in the range, which statistics within a file find."""
        conditions = [named(name).between(*ends) for name, ends in self.columns.items()]
        return rows.where(reduce(and_, conditions)) if conditions else rows

    def _may_have_rows(self, file: DataFile) -> bool:
        for name, (low, high) in self.columns.items():
            span = file.span(name)
            if span is not None and (low > span[1] or high < span[0]):
                return False
        return True


def key_range(changeset: Changeset, schema: StructType) -> KeyRange:
    """Return the range of a changeset's keys; one job, if some key column is an integer.

    Args:
        changeset: The payloads.
        schema: The table's schema after the merge.
    """
    names = [name for name in changeset.key if isinstance(schema[name].dataType, IntegralType)]
    if not names:
        return KeyRange({})
    ends: list[Column] = [end(named(name)) for name in names for end in (F.min, F.max)]
    row = changeset.frame.agg(*ends).first()
    if row is None or any(end is None for end in row):
        return KeyRange({})
    return KeyRange(dict(zip(names, zip(row[::2], row[1::2], strict=True), strict=True)))
