"""What planning needs to know of a pipeline, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lakeingest.decode.columns import Encodings, SourceColumn
from lakeingest.decode.defaults import Default
from lakeingest.decode.json_format import JsonFormat
from lakeingest.decode.json_rows import JsonRows
from lakeingest.decode.placeholder import ambiguous, can_be_unavailable
from lakeingest.decode.row import NONE_ABSENT, Absences
from lakeingest.decode.wire import RowReader, WireFormat
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.position.epochs import Epoch


@dataclass(frozen=True)
class Ordering:
    """Columns that order the changes of a row, most significant first; none: the source's log.

    Attributes:
        columns: Of all tables.
        tables: Of a collection, in place of those.
    """

    columns: tuple[str, ...] = ()
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, collection: str) -> tuple[str, ...]:
        """Return those of a collection."""
        return self.tables.get(collection, self.columns)

    def __bool__(self) -> bool:
        """Tell whether there is any."""
        return bool(self.columns or self.tables)


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
        whole: Whether transactions are applied whole; else each event is on its own.
        ordering: What the changes of a row are ordered by where it is not the source's log.
        skipped: Unreadable records that are no changes: ``topic:partition:offset``.
    """

    connector: str
    encodings: Encodings
    names: MetadataColumns = field(default_factory=MetadataColumns)
    epoch: int = 0
    epochs: tuple[Epoch, ...] = ()
    uncounted: tuple[str, ...] = ()
    format: WireFormat = JsonFormat()
    whole: bool = True
    ordering: Ordering = Ordering()
    skipped: frozenset[str] = frozenset()


class Keyless(Enum):
    """What a row of a table without a key is; see ``plan/keyless.py``."""

    FULL_ROW = "full-row"
    APPEND = "append"


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
        keyless: What a row is where the source has no key; ``key`` is the row key's name then.
        absences: Columns that not all of the batch's records have.
        fills: Columns that this batch adds to the lake's table, with the default that the rows have
            which are there already.
        source: What the source's table looks like (``evolution.SourceSchema.to_json``); empty: the
            batch does not tell.
        encodings: The connector's settings with the table's own policies; null: the pipeline's.
    """

    collection: str
    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...]
    key_in_value: bool = False
    reader: RowReader = JsonRows()
    partition: tuple[str, ...] = ()
    keyless: Keyless | None = None
    absences: Absences = NONE_ABSENT
    fills: Mapping[str, Default] = field(default_factory=dict)
    source: str = ""
    encodings: Encodings | None = None

    def encodings_in(self, spec: PipelineSpec) -> Encodings:
        """Return the settings by which its values are read."""
        return self.encodings or spec.encodings

    @property
    def partial(self) -> bool:
        """Whether some records of the batch may leave a column out because they do not have it."""
        return bool(self.absences.dropped)

    def names(self) -> tuple[str, ...]:
        """Names of the columns, a row key that is ours behind them."""
        ours = self.key if self.keyless is not None else ()
        return (*(column.name for column in self.columns), *ours)

    def key_columns(self) -> tuple[SourceColumn, ...]:
        """The key columns, in key order."""
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in self.key)

    def doubtful(self, encodings: Encodings) -> bool:
        """Whether some NULL may stand for an unchanged value, and the policy minds it."""
        if self.reader.cells:
            return False
        return any(ambiguous(column, encodings) for column in self.columns)

    def fillable(self, encodings: Encodings) -> tuple[str, ...]:
        """Names of the columns that a change can leave out; a key never is."""
        if self.keyless is not None:
            return ()
        return tuple(
            column.name
            for column in self.columns
            if column.name not in self.key
            and (
                self.reader.cells
                or column.name in self.absences.dropped
                or can_be_unavailable(column, encodings)
            )
        )
