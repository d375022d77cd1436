"""What a record format must be able to do: the one wall between JSON, Avro and all that follows.

A record's bytes go on as they are (``shape.CHANGE``), because most changes of a hot key are never
decoded; what is in them only the format knows. So a format does three things: it reads the header
fields of every record, it says what the records of a table look like, and it reads rows and keys of
those that won. The rejected way, to turn Avro into JSON text at the door, keeps one decoder, and
pays for writing and parsing text that nobody asked for: 2.3 times the processor time, measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from lakeingest.decode.columns import Encodings, SourceColumn
from lakeingest.shape import SOURCE


class RowReader(Protocol):
    """Reads rows and keys of one table's records."""

    @property
    def bare_keys(self) -> bool:
        """Whether equal keys are equal bytes, so that records can be told apart undecoded."""

    def sides(self, value: Column, columns: Sequence[SourceColumn], names: Sequence[str]) -> Column:
        """Read sides of an envelope.

        Args:
            value: A record's bytes.
            columns: What a row has; a column that the record lacks is null.
            names: Of ``after`` and ``before``, those that are wanted.

        Returns:
            A struct with a field per name: a struct of the columns' ``type.wire``, null where the
            envelope has no such side. A record that cannot be read fails the job.
        """

    def key(self, key: Column, columns: Sequence[SourceColumn]) -> Column:
        """Read a record key: a struct of the columns' ``type.wire``; null where there is none."""

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
    """

    columns: tuple[SourceColumn, ...]
    fields: tuple[str, ...]
    key: tuple[str, ...]
    reader: RowReader


@dataclass(frozen=True)
class Samples:
    """Records of one table and batch, by which its shape is known.

    Attributes:
        values: The newest record of each partition.
        keys: Keys of some records.
        value_tags: Every ``schema_tag`` of the batch's values.
        key_tags: Every ``key_tag`` of its keys.
    """

    values: tuple[bytes, ...] = ()
    keys: tuple[bytes, ...] = ()
    value_tags: frozenset[bytes] = frozenset()
    key_tags: frozenset[bytes] = frozenset()


class WireFormat(Protocol):
    """How a pipeline's records are written."""

    def envelopes(
        self, records: DataFrame, *, event: bool = False, source: StructType = SOURCE
    ) -> DataFrame:
        """Decode data records (``shape.RECORD``) to ``shape.ENVELOPE``.

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

    def marks(self, encodings: Encodings) -> tuple[bytes, ...]:
        """Return octets one of which a record with an unavailable value contains."""

    def key_body(self, key: Column) -> Column:
        """Return the part of a record key that is equal whenever the key is."""

    def schema_tag(self, value: Column, /) -> Column:
        """Return what names the schema of a value (binary); null where nothing does."""

    def key_tag(self, key: Column, /) -> Column:
        """Return what names the schema of a record key (binary); null where nothing does."""

    def shown(self, samples: Samples) -> Shown:
        """Say what a table looks like, by its records."""
