"""Define the schemas of the frames that one stage passes to the next, in the order of the stages.

Stages never import each other. The output type of a stage is the input type of the next one, and
this module defines it once for both. Column names are the field's standard terms.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

OURS = "__lakeingest_"
"""Prefix of lakeingest's own columns beside a source's columns, which may have any other name."""

FIRST_OP = f"{OURS}first_op"
"""payload/ -> sink/: operation of a key's first change in the batch."""

LINK = f"{OURS}link"
"""payload/: where to look for a merge payload's missing columns."""

END = f"{OURS}end"
"""plan/ -> sink/: offset of the END of a change's transaction; of a merge payload, of the last
transaction that it holds. Only where each transaction becomes a version of its own: a key then has
a payload for each transaction that changes it."""

HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

RECORD = StructType(
    [
        StructField("topic", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("offset", LongType(), nullable=False),
        StructField("timestamp", TimestampType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("headers", ArrayType(HEADER)),
    ]
)
"""source/ -> decode/: a Kafka record as Spark's Kafka reader returns it (headers included)."""

SOURCE = StructType(
    [
        StructField("ts_ms", LongType()),
        StructField("snapshot", StringType()),
        StructField("db", StringType()),
        StructField("schema", StringType()),
        StructField("table", StringType()),
        StructField("sequence", StringType()),
        StructField("lsn", LongType()),
        StructField("commit_lsn", LongType()),
        StructField("gtid", StringType()),
        StructField("file", StringType()),
        StructField("pos", LongType()),
        StructField("row", LongType()),
    ]
)
"""The fields of Debezium's ``source`` block that positions and routing need (PostgreSQL, MySQL)."""

EVENT_SOURCE = StructType(
    [
        *SOURCE,
        StructField("name", StringType()),
        StructField("txId", LongType()),
        StructField("xmin", LongType()),
    ]
)
"""``SOURCE`` with the fields that only RFC-39's columns need (``event_columns.py``)."""

TRANSACTION = StructType([StructField("id", StringType()), StructField("total_order", LongType())])
"""Debezium's ``transaction`` block of a row (``event.block``)."""

ENVELOPE = StructType(
    [
        *(field for field in RECORD if field.name not in ("key", "value")),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("op", StringType()),
        StructField("source", SOURCE),
        StructField("transaction", TRANSACTION),
        StructField("malformed", BooleanType(), nullable=False),
    ]
)
"""decode/ -> envelope/: the envelope's header fields; ``value`` has the rows, in their format.

``source`` has the fields that the connector's family reads (``Family.source``); for most families
these are ``SOURCE``. If the configuration chooses RFC-39's columns, ``source`` is ``EVENT_SOURCE``
and the frame also has ``ts_ms`` (bigint).
"""

CHANGE = StructType(
    [
        StructField("topic", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("offset", LongType(), nullable=False),
        StructField("kind", StringType(), nullable=False),
        StructField("collection", StringType()),
        StructField("op", StringType()),
        StructField("position", StringType()),
        StructField("transaction_key", StringType()),
        StructField("incarnation", StringType()),
        StructField("nth", LongType()),
        StructField("identity", LongType()),
        StructField("snapshot", StringType()),
        StructField("source_ms", LongType()),
        StructField("moved_from", StringType()),
        StructField("may_be_masked", BooleanType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
    ]
)
"""envelope/ -> transaction/ -> payload/: one change, with its place in the source's log.

``kind`` is one of ``Kind``. ``collection`` has the name of Debezium's transaction metadata.
``identity`` is a 64-bit hash of the row's place in the source log; for a row without a key it
identifies the row only within one ``incarnation``, the connector's ``runId``. ``nth`` is
``transaction.total_order``. ``source_ms`` is ``source.ts_ms`` (milliseconds). ``moved_from`` is the
old key of a primary-key change, as JSON. ``key`` and ``value`` are still in the records' format.

MySQL's changes have ``INSIDE`` after these columns. If the configuration chooses RFC-39's columns,
a struct of them follows (``event_columns.EVENT``).
"""

ROW_PLACE = ("transaction_key", "position", "collection", "op")
"""Columns of ``CHANGE``: the place of a row in the source's log, which is the same when the row
comes again. Only rows without a key may share it."""

INSIDE = "inside"
"""Name of a struct after ``CHANGE``'s columns, only of MySQL: a row's place in its transaction.

Its fields are ``place`` (bigint: a hash of file and offset), ``row`` and ``nth``
(``transaction.total_order``). The struct is NULL if the position does not depend on ``row``. See
``transaction/compressed_detection.py``.
"""

MOVES_ON = "moves_on"
"""Boolean column after a change's columns: true for a delete that is one half of a primary-key
change. The create of the new key is the other half. The column exists only if no transaction keeps
the two halves together."""

WRITTEN_AT = f"{OURS}written_at"
"""Timestamp column after a change's columns: Kafka's, of the record. The column exists only where
rows alone show which transactions are over (``plan/row_boundaries.py``)."""

MOVED_UNNAMED = f"{OURS}moved_unnamed"
"""Boolean column after a change's columns: true for the create of a key change that no header
names."""

BOUNDARY = StructType(
    [
        StructField("end_offset", LongType(), nullable=False),
        StructField("id", StringType(), nullable=False),
        StructField("transaction_key", StringType(), nullable=False),
        StructField("end_position", StringType(), nullable=False),
        StructField("begins", LongType(), nullable=False),
        StructField("begun", LongType()),
        StructField("implied", BooleanType(), nullable=False),
        StructField("open", BooleanType(), nullable=False),
        StructField("event_count", LongType(), nullable=False),
        StructField(
            "collections",
            ArrayType(
                StructType(
                    [
                        StructField("data_collection", StringType()),
                        StructField("event_count", LongType()),
                    ]
                )
            ),
        ),
        StructField("committed_at", TimestampType()),
        StructField("written_at", TimestampType()),
    ]
)
"""transaction/: one END (or an implied one), or the BEGIN of a transaction that is ``open``.

``begins`` counts the transaction's BEGINs; ``begun`` is the offset of the first one.
``end_position`` is above every row up to this END. ``committed_at`` is the source's clock;
``written_at`` is the record's Kafka timestamp.
"""


class Kind:
    """The kind of a record (column ``kind``).

    ``FOREIGN`` is a message of Debezium that is no change (heartbeat, BEGIN and END, schema
    change, notification). ``UNKNOWN`` is a record without an operation, or with an operation that
    Debezium does not write.
    """

    ROW = "row"
    SNAPSHOT = "snapshot"
    SUPERSEDED = "superseded"
    TRUNCATE = "truncate"
    NULL_RECORD = "null_record"
    MESSAGE = "message"
    FOREIGN = "foreign"
    UNKNOWN = "unknown"
    MALFORMED = "malformed"


class MetadataColumns:
    """The columns that lakeingest adds to a target table, in one place.

    Attributes:
        position: Position of the change that last decided the row (string, never NULL).
        deleted: Whether the row is a tombstone (boolean, never NULL).
        column_positions: Positions of the columns that are older than the row (map from column to
            position; NULL if every column has the row's position).
        record_key: Only in Hudi tables whose key columns cannot be a record key; readers of the
            lake do not see it.
        row_key: Only in tables whose source has no key: a hash of the row's content; readers of
            the lake do not see it.
        row_place: Like ``row_key``, for tables that identify a row by its place in the log. It has
            another name, so that no run continues a table in the other mode.
        event: RFC-39's columns, if the configuration chooses them; readers see them like the
            source's columns.
    """

    def __init__(self, prefix: str = "_", event: Iterable[str] = ()) -> None:
        """Name the columns with ``prefix`` (``lakeingest.metadata.prefix``).

        Args:
            prefix: Prefix of lakeingest's own columns.
            event: Names of RFC-39's columns; empty: the tables have none.
        """
        self.position = f"{prefix}position"
        self.deleted = f"{prefix}deleted"
        self.column_positions = f"{prefix}column_positions"
        self.record_key = f"{prefix}record_key"
        self.row_key = f"{prefix}row_key"
        self.row_place = f"{prefix}row_place"
        self.event = tuple(event)

    def __eq__(self, other: object) -> bool:
        """Return whether the other object has the same names."""
        return isinstance(other, MetadataColumns) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """Hash some of the names."""
        return hash((self.position, self.event))

    @property
    def keyless(self) -> tuple[str, str]:
        """The key columns that lakeingest adds to tables whose source has no key."""
        return (self.row_key, self.row_place)

    @property
    def names(self) -> tuple[str, str, str]:
        """The own columns of lakeingest, in the table's order, after all other columns."""
        return (self.position, self.deleted, self.column_positions)


LEDGER = StructType(
    [
        StructField("kind", StringType(), nullable=False),
        StructField("batch", LongType(), nullable=False),
        StructField("token", LongType(), nullable=False),
        StructField("run", StringType(), nullable=False),
        StructField("at", TimestampType(), nullable=False),
        StructField("transactions", LongType()),
        StructField("events", LongType()),
        StructField("tables", MapType(StringType(), LongType())),
        StructField("end_offset", LongType()),
        StructField("end_position", StringType()),
        StructField("offsets", MapType(StringType(), MapType(StringType(), LongType()))),
        StructField("transaction_id", StringType()),
        StructField("events_by_table", MapType(StringType(), LongType())),
        StructField("paths", MapType(StringType(), StringType())),
        StructField("schemas", MapType(StringType(), StringType())),
        StructField("notes", MapType(StringType(), StringType())),
        StructField("missing_by_table", MapType(StringType(), LongType())),
    ]
)
"""ledger/ -> reader/: rows of kind ``publication``, ``transaction``, ``epoch`` and ``kept``.

Older versions also wrote rows of kind ``writer``; a claim writes no row any more.

``at`` is the time of publication; for a transaction, its commit time at the source. ``tables`` maps
a collection to its Delta version. ``offsets`` maps topic and partition to the lowest offset that
the next batch must read. ``end_offset`` and ``end_position`` are the frontier (of a transaction:
its END). ``paths`` maps a collection to its folder, if the folder is not the collection's name
(NULL: no such collection). ``schemas`` maps a collection to the source's columns, as SQL declares
them, if they differ from the earlier publications (NULL: no difference). ``notes`` maps a changed
table to the note in its commit, in case the table's own log loses the note. ``missing_by_table``
maps a table to the number of rows that a transaction lacked when it was published in part (NULL: it
was whole; no table: nothing counts them). A ledger of an older version gets these columns with the
next append.

An ``epoch`` says where positions start over. ``transaction_id`` names the scope in which they count
(server uuid, binlog base name), ``offsets`` the topic, partition and offset at which the epoch
begins, ``end_position`` the prefix of its positions.

A row of kind ``kept`` says that maintenance keeps the publications from ``batch`` on. Older ones
stay as the lake's history, but their tables' files may be gone.
"""
