"""What planning needs to know of a pipeline, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

from lakeingest.decode.columns import Encodings, SourceColumn
from lakeingest.decode.json_format import JsonFormat
from lakeingest.decode.json_rows import JsonRows
from lakeingest.decode.placeholder import can_be_unavailable
from lakeingest.decode.wire import RowReader, WireFormat
from lakeingest.position.epochs import Epoch
from lakeingest.shape import MetadataColumns


@dataclass(frozen=True)
class PipelineSpec:
    """Settings of the source and of the merge payload.

    Attributes:
        connector: One of ``envelope.change.FAMILIES``.
        encodings: Wire settings of the connector.
        names: Names of the metadata columns.
        epoch: Epoch of the initial snapshot, and of all that no later one holds.
        epochs: Those that the transaction topic has told of, by number.
        uncounted: Collections whose rows a transform drops after Debezium counted them.
        format: How the records are written.
    """

    connector: str
    encodings: Encodings
    names: MetadataColumns = field(default_factory=MetadataColumns)
    epoch: int = 0
    epochs: tuple[Epoch, ...] = ()
    uncounted: tuple[str, ...] = ()
    format: WireFormat = JsonFormat()


@dataclass(frozen=True)
class TableSpec:
    """Columns and key of one collection, as its events show them now.

    Attributes:
        collection: Named as in Debezium's transaction metadata.
        columns: Source columns in order.
        key: Names of the key columns.
        key_in_value: The key is read from the row, not from the record key.
        reader: Reads its records.
        partition: Columns that the lake's table is partitioned by.
    """

    collection: str
    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...]
    key_in_value: bool = False
    reader: RowReader = JsonRows()
    partition: tuple[str, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def key_columns(self) -> tuple[SourceColumn, ...]:
        """The key columns, in key order."""
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in self.key)

    def fillable(self, encodings: Encodings) -> tuple[str, ...]:
        """Names of the columns that can be unavailable; a key never is."""
        return tuple(
            column.name
            for column in self.columns
            if column.name not in self.key and can_be_unavailable(column, encodings)
        )
