"""What a record format must be able to do: the one wall between JSON, Avro and all that follows.

A record's bytes go on as they are (``CHANGE``), because most changes of a hot key are never
decoded; what is in them only the format knows. So a format does three things: it reads the header
fields of every record, it says what the records of a table look like, and it reads rows and keys of
those that won. The rejected way, to turn Avro into JSON text at the door, keeps one decoder, and
pays for writing and parsing text that nobody asked for: 2.3 times the processor time, measured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from lakeingest.decode.columns import Encodings, SourceColumn
from lakeingest.frame_schemas import SOURCE


class RowReader(Protocol):
    """Reads rows and keys of one table's records."""

    @property
    def bare_keys(self) -> bool:
        """Whether equal keys are equal bytes, so that records can be told apart undecoded."""

    @property
    def cells(self) -> bool:
        """Whether each column of a row and of a key comes in a cell (``cell.py``)."""

    def sides(self, value: Column, columns: Sequence[SourceColumn], names: Sequence[str]) -> Column:
        """Read sides of an envelope.

        Args:
            value: A record's bytes.
            columns: What a row has; a column that the record lacks is null.
            names: Of ``after`` and ``before``, those that are wanted.

        Returns:
            A struct with a field per name: a struct of the columns' ``type.wire``, or of cells of
            it, null where the envelope has no such side. A record that cannot be read fails the
            job.
        """

    def lacks(self, value: Column, name: str, tags: Collection[bytes], /) -> Column:
        """Tell whether a record's row has no field of that name (boolean; null: it cannot be told).

        Args:
            value: A record's bytes.
            name: Of a column.
            tags: ``schema_tag`` of the schemas without it; none: the record itself is looked into.
        """

    def schema_of(self, value: Column, /) -> Column:
        """Return what names the schema of a record's value (binary); null where nothing does."""

    def key_schema(self, key: Column, value: Column, /) -> Column:
        """Return what names the schema of a record key (binary), by the whole record."""

    def key(self, key: Column, columns: Sequence[SourceColumn]) -> Column:
        """Read a record key: a struct like a row's; null where there is none."""

    def header_columns(self, columns: Sequence[SourceColumn]) -> tuple[SourceColumn, ...]:
        """Return key columns as a header shows them; Debezium writes those as JSON always."""


@dataclass(frozen=True)
class Shown:
    """What the records of a table show of it.

    Attributes:
        columns: Its columns, where records say so; else empty.
        fields: Names of the fields of its rows, in order.
        key: Names of the record key's fields; empty: there is no key.
        reader: Reads these records.
        everywhere: Those fields that every sample with a row has.
        rows: Whether some sample has a row after its change: a delete's may lack any field.
        versions: Columns of each schema among the batch's records, by ``schema_tag``, in the order
            in which the schemas were made; empty where records come without.
        mixed: Whether some of the records come in cells and some do not: no reader reads both.
        keys: Names of the fields of all record keys that were looked at, each set once.
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
    """Records of one table and batch, by which its shape is known.

    Attributes:
        values: The newest record of each partition.
        keys: Keys of some records.
        value_tags: Every ``schema_tag`` of the batch's values.
        key_tags: Every ``key_tag`` of its keys.
        too_large: What becomes of decimals that are too large (``logical.Form``); null: as the
            format has it.
    """

    values: tuple[bytes, ...] = ()
    keys: tuple[bytes, ...] = ()
    value_tags: frozenset[bytes] = frozenset()
    key_tags: frozenset[bytes] = frozenset()
    too_large: str | None = None


class WireFormat(Protocol):
    """How a pipeline's records are written."""

    def envelopes(
        self, records: DataFrame, *, event: bool = False, source: StructType = SOURCE
    ) -> DataFrame:
        """Decode data records (``RECORD``) to ``ENVELOPE``.

        Args:
            records: As they lie in the log.
            event: Whether RFC-39's columns are wanted; what only they need is not read else.
            source: What is read of the source block; connectors differ in it.
        """

    def transaction_metadata(self, records: DataFrame) -> DataFrame:
        """Decode records of the transaction topic.

        Returns:
            ``partition``, ``offset``, ``timestamp``, ``status`` (``BEGIN``, ``END`` or null for a
            foreign message), ``id``, ``event_count``, ``data_collections``
            (array<struct<data_collection, event_count>>), ``ts_ms`` (long, milliseconds; commit
            time on PostgreSQL's END), ``malformed``.
        """

    def foreign(self, value: Column, /) -> Column:
        """Condition over a value without an operation: another message of Debezium's.

        Heartbeats, BEGIN and END, schema changes, notifications (``foreign.py``); anything else
        without an operation may be a row of a table and is not passed over.
        """

    def marks(self, encodings: Encodings) -> tuple[bytes, ...]:
        """Return octets one of which a record with an unavailable value contains."""

    def ordering(self, value: Column, names: Sequence[str]) -> Column:
        """Read columns of a row by which a user orders its changes.

        Args:
            value: As ``envelopes`` gives it.
            names: Of the columns.

        Returns:
            An array with the text of each, of the row after the change or else of the row before
            it; null where it has none, or the record cannot be read.
        """

    def may_leave_out(self, value: Column, /) -> Column:
        """Tell whether an update in cells may lack one (boolean): a cheap hint, like marks.

        Args:
            value: A record's bytes, as ``envelopes`` gives them.
        """

    def key_body(self, key: Column) -> Column:
        """Return the part of a record key that is equal whenever the key is."""

    def schema_tag(self, value: Column, /) -> Column:
        """Return what names the schema of a value (binary); null where nothing does."""

    def key_tag(self, key: Column, /) -> Column:
        """Return what names the schema of a record key (binary); null where nothing does."""

    def defaulted(self, tags: Collection[bytes]) -> tuple[str, ...]:
        """Return columns whose NULLs may have been replaced, by the schemas with these tags."""

    def shown(self, samples: Samples) -> Shown:
        """Say what a table looks like, by its records."""
