"""Define the settings that planning needs of a pipeline and its tables, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.defaults import Default
from lakeingest.decode.encodings import Encodings
from lakeingest.decode.json.format import JsonFormat
from lakeingest.decode.json.rows import JsonRows
from lakeingest.decode.placeholder import ambiguous, can_be_unavailable
from lakeingest.decode.row import NONE_ABSENT, Absences, RowSpec
from lakeingest.decode.wire import RowReader, WireFormat
from lakeingest.frame_schemas import MetadataColumns
from lakeingest.position.epochs import Epoch


@dataclass(frozen=True)
class Ordering:
    """Columns that order the changes of a row, most significant first; none: the source's log.

    Attributes:
        columns: Ordering columns of all tables.
        tables: Collection to the ordering columns that replace ``columns`` there.
    """

    columns: tuple[str, ...] = ()
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __hash__(self) -> int:
        """Hash what has a hash."""
        return hash((self.columns, frozenset(self.tables.items())))

    def of(self, collection: str) -> tuple[str, ...]:
        """Return the ordering columns of a collection."""
        return self.tables.get(collection, self.columns)

    def __bool__(self) -> bool:
        """Return whether any ordering column is set."""
        return bool(self.columns or self.tables)


class Transactions(Enum):
    """What shows which rows are one source transaction (``lakeingest.transaction.mode``)."""

    METADATA = "metadata"
    BOUNDARY = "boundary"
    NONE = "none"


@dataclass(frozen=True)
class PipelineSpec:
    """Settings of the source and of the merge payload.

    Attributes:
        connector: One of ``envelope.change.FAMILIES``.
        encodings: Wire settings of the connector.
        names: Names of the metadata columns.
        epoch: Epoch of the initial snapshot, and of all transactions that no later epoch holds.
        epochs: Epochs that the transaction topic shows, by number.
        format: Wire format of the records.
        transactions: What shows which rows are one transaction.
        ordering: Columns that order the changes of a row, where the source's log does not.
        skipped: Unreadable records that are not changes: ``topic:partition:offset``.
        ends_again: Offsets of ENDs whose transactions have come before, which no row shows.
    """

    connector: str
    encodings: Encodings
    names: MetadataColumns = field(default_factory=MetadataColumns)
    epoch: int = 0
    epochs: tuple[Epoch, ...] = ()
    format: WireFormat = JsonFormat()
    transactions: Transactions = Transactions.METADATA
    ordering: Ordering = Ordering()
    skipped: frozenset[str] = frozenset()
    ends_again: frozenset[int] = frozenset()

    @property
    def whole(self) -> bool:
        """Return whether transactions are applied whole; else each event is applied alone."""
        return self.transactions is not Transactions.NONE

    @property
    def by_rows(self) -> bool:
        """Return whether rows alone show which transactions are over."""
        return self.transactions is Transactions.BOUNDARY


class Keyless(Enum):
    """What identifies a row of a table without a key; see ``plan/keyless.py``."""

    FULL_ROW = "full-row"
    APPEND = "append"


@dataclass(frozen=True)
class TableSpec:
    """Columns and key of one collection, as its events show them now.

    Attributes:
        collection: Named as in Debezium's transaction metadata.
        columns: Source columns in order.
        key: Names of the key columns.
        key_in_value: Whether the key is read from the row, not from the record key.
        reader: Reads the table's records.
        partition: Columns that the lake's table is partitioned by.
        keyless: What identifies a row if the source has no key; ``key`` is then the row key's name.
        absences: Columns that only some of the batch's records have.
        fills: Columns that this batch adds to the lake's table, with the default for the rows that
            the table has already.
        source: Schema of the source's table (``evolution.SourceSchema.to_json``); empty: the batch
            does not show it.
        encodings: The connector's settings with the table's own policies; None: the pipeline's.
        key_is_part: Whether record keys have more columns than the key: several of them are one
            row, and a change of the others is a delete and a create of it.
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
    key_is_part: bool = False

    def encodings_in(self, spec: PipelineSpec) -> Encodings:
        """Return the settings that the table's values are read with."""
        return self.encodings or spec.encodings

    @property
    def folds_by_octets(self) -> bool:
        """Whether changes of one row have equal octets as their key, and others have not."""
        return self.reader.bare_keys and not (self.key_in_value or self.key_is_part)

    def row_spec(self, spec: PipelineSpec) -> RowSpec:
        """Return how to read the table's rows."""
        return RowSpec(self.columns, self.encodings_in(spec), self.reader, self.absences)

    @property
    def partial(self) -> bool:
        """Whether some records of the batch may lack a column that the source dropped."""
        return bool(self.absences.dropped)

    def names(self) -> tuple[str, ...]:
        """Return the names of the columns; the row key of a keyless table comes last."""
        row_key = self.key if self.keyless is not None else ()
        return (*(column.name for column in self.columns), *row_key)

    def key_columns(self) -> tuple[SourceColumn, ...]:
        """Return the key columns, in key order."""
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in self.key)

    def has_ambiguous_nulls(self, encodings: Encodings) -> bool:
        """Return whether a NULL may stand for an unchanged value; False if the policy is null."""
        if self.reader.partial:
            return False
        return any(ambiguous(column, encodings) for column in self.columns)

    def fillable(self, encodings: Encodings) -> tuple[str, ...]:
        """Return the names of the columns that a change can leave out; never a key column."""
        if self.keyless is not None:
            return ()
        return tuple(
            column.name
            for column in self.columns
            if column.name not in self.key
            and (
                self.reader.partial
                or column.name in self.absences.dropped
                or can_be_unavailable(column, encodings)
            )
        )
