"""The contract of a record format: the one wall between JSON, Avro and the later stages.

A record's bytes stay as they are (``CHANGE``), because most changes of a hot key are never decoded,
and only the format knows their content. So a format does three things: it reads the header fields
of every record, it says what the records of a table look like, and it reads the rows and keys of
the latest changes. Rejected: to turn Avro into JSON text at the entry. That needs only one decoder,
but writes and parses text without need: 2.3 times the processor time, measured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from lakeingest.decode.columns import SourceColumn
from lakeingest.decode.encodings import Encodings
from lakeingest.frame_schemas import SOURCE


class RowReader(Protocol):
    """Reads rows and keys of one table's records."""

    @property
    def bare_keys(self) -> bool:
        """Return whether equal keys have equal bytes, so that undecoded keys can be compared."""

    @property
    def cells(self) -> bool:
        """Return whether each column of a row and of a key comes in a cell (``cells.py``)."""

    @property
    def partial(self) -> bool:
        """Return whether an update may lack any column."""

    def value(self, wire: Column) -> Column:
        """Return the value in a field of a row or key."""

    def omission(self, row: Column, column: SourceColumn, encodings: Encodings) -> Column | None:
        """Return the condition that a change's row omits a column; see ``RowLayout``."""

    def sides(self, value: Column, columns: Sequence[SourceColumn], names: Sequence[str]) -> Column:
        """Read sides of an envelope.

        Args:
            value: A record's bytes.
            columns: The columns of a row; a column that the record lacks is NULL.
            names: The sides to read: ``after``, ``before`` or both.

        Returns:
            A struct with a field per name: a struct of the columns' ``type.wire``, or of cells of
            it, NULL where the envelope has no such side. A record that cannot be read fails the
            job.
        """

    def lacks(self, value: Column, name: str, tags: Collection[bytes], /) -> Column:
        """Return whether a record's row has no field of that name (boolean; NULL: not known).

        Args:
            value: A record's bytes.
            name: Name of a column.
            tags: ``schema_tag`` of the schemas without it; empty: look into the record itself.
        """

    def schema_of(self, value: Column, /) -> Column:
        """Return the schema tag of a record's value (binary); NULL where there is none."""

    def key_schema(self, key: Column, value: Column, /) -> Column:
        """Return the schema tag of a record key (binary), from the whole record."""

    def key(self, key: Column, columns: Sequence[SourceColumn]) -> Column:
        """Read a record key: a struct like a row's; NULL where there is no key."""

    def header_columns(self, columns: Sequence[SourceColumn]) -> tuple[SourceColumn, ...]:
        """Return key columns as a header shows them; Debezium always writes headers as JSON."""


@dataclass(frozen=True)
class TableShape:
    """The shape of a table, as its records show it.

    Attributes:
        columns: Its columns, where records have a schema; else empty.
        fields: Names of the fields of its rows, in order.
        key: Names of the record key's fields; empty: there is no key.
        reader: Reads these records.
        everywhere: The fields that every sample with a row has.
        rows: Whether some sample has a row after its change: a delete's row may lack any field.
        versions: Columns of each schema among the batch's records, by ``schema_tag``, in the order
            in which the schemas were made; empty where records have no schema.
        mixed: Whether only some of the records come in cells: no reader reads both.
        keys: Names of the fields of all sampled record keys, each set once.
    """

    columns: tuple[SourceColumn, ...]
    fields: tuple[str, ...]
    key: tuple[str, ...]
    reader: RowReader
    everywhere: frozenset[str] = frozenset()
    rows: bool = True
    versions: Mapping[bytes, tuple[SourceColumn, ...]] = field(default_factory=dict)
    mixed: bool = False
    keys: frozenset[frozenset[str]] = frozenset()


@dataclass(frozen=True)
class Samples:
    """Records of one table and batch that show the table's shape.

    Attributes:
        values: The newest record of each partition.
        keys: Keys of some records.
        value_tags: Every ``schema_tag`` of the batch's values.
        key_tags: Every ``key_tag`` of its keys.
        too_large: Policy for decimals that are too large (``logical.Form``); None: the format's.
    """

    values: tuple[bytes, ...] = ()
    keys: tuple[bytes, ...] = ()
    value_tags: frozenset[bytes] = frozenset()
    key_tags: frozenset[bytes] = frozenset()
    too_large: str | None = None


class WireFormat(Protocol):
    """The form in which a pipeline's records are written."""

    def envelopes(
        self, records: DataFrame, *, event: bool = False, source: StructType = SOURCE
    ) -> DataFrame:
        """Decode data records (``RECORD``) to ``ENVELOPE``.

        Args:
            records: Records as they are in the log.
            event: Whether to read RFC-39's columns; fields that only these need are else not read.
            source: The fields of the source block to read; they differ between connectors.
        """

    def transaction_metadata(self, records: DataFrame) -> DataFrame:
        """Decode records of the transaction topic.

        Returns:
            ``partition``, ``offset``, ``timestamp``, ``status`` (``BEGIN``, ``END`` or NULL for a
            foreign message), ``id``, ``event_count``, ``data_collections``
            (array<struct<data_collection, event_count>>), ``ts_ms`` (long, milliseconds; commit
            time on PostgreSQL's END), ``malformed``.
        """

    def is_foreign(self, value: Column, /) -> Column:
        """Return a condition over a value without operation: it is another message of Debezium.

        Heartbeats, BEGIN and END, schema changes, notifications (``foreign.py``). Any other value
        without an operation may be a row of a table, and is not skipped.
        """

    def marks(self, encodings: Encodings) -> tuple[bytes, ...]:
        """Return the marks: a record with an unavailable value contains one of these octets."""

    def ordering(self, value: Column, names: Sequence[str]) -> Column:
        """Read the columns of a row by which a user orders its changes.

        Args:
            value: As ``envelopes`` gives it.
            names: Names of the columns.

        Returns:
            An array with the text of each column, from the row after the change or else from the
            row before it; NULL where it has none, or the record cannot be read.
        """

    def may_omit(self, value: Column, /) -> Column:
        """Return whether an update in cells may lack a cell (boolean): a cheap hint, like marks.

        Args:
            value: A record's bytes, as ``envelopes`` gives them.
        """

    def key_body(self, key: Column) -> Column:
        """Return the part of a record key that is equal for equal keys."""

    def schema_tag(self, value: Column, /) -> Column:
        """Return the schema tag of a value (binary); NULL where there is none."""

    def key_tag(self, key: Column, /) -> Column:
        """Return the schema tag of a record key (binary); NULL where there is none."""

    def nullable_defaults(self, tags: Collection[bytes]) -> tuple[str, ...]:
        """Return the columns with possibly replaced NULLs, by the schemas with these tags."""

    def table_shape(self, samples: Samples) -> TableShape:
        """Return the shape of a table, from samples of its records."""
