"""Say what configuration and lake know of a table before a batch resolves its columns and key."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql.types import StructType

from lakeingest.plan.evolution import DEFAULTS, Policies, SourceSchema
from lakeingest.plan.spec import Keyless


@dataclass(frozen=True)
class TableSettings:
    """What the configuration declares of a table.

    Attributes:
        collection: The source table.
        ddl: Declared schema, if any.
        key: Declared key columns; empty: the record key's fields.
        policies: Policy for each kind of schema change.
        keyless: What identifies a row of a table without a key; None: such a table is refused.
        too_large: Policy for the table's decimals that are too large; None: the pipeline's.
        adopted: Whether Hudi Streamer made the lake's table.
    """

    collection: str
    ddl: StructType | None = None
    key: tuple[str, ...] = ()
    policies: Policies = field(default_factory=lambda: DEFAULTS)
    keyless: Keyless | None = None
    too_large: str | None = None
    adopted: bool = False


@dataclass(frozen=True)
class TableBefore:
    """What is known of a table before a batch; of a new table nothing is.

    Attributes:
        lake: Schema of the target table, if it exists.
        source: Schema of the source's table after the last batch; None: unknown.
        partition: Columns that the lake's table is partitioned by.
        key: Columns that the lake's table is kept by.
        high: Highest position that was ever applied to it: rows up to there came before, and do not
            show what the source has now.
    """

    lake: StructType | None = None
    source: SourceSchema | None = None
    partition: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    high: str = ""

    def is_below(self, position: str) -> bool:
        """Return whether a row at a position is newer than all of the table."""
        return not self.high or position > self.high
