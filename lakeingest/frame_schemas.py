"""The shape of the frames that stages hand to one another, in the order of an event's way.

Stages never import each other; each one's output type is the next one's input type, and both are
written here once. Column names are the field's standard terms.
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
"""Begins the names of columns that stand beside a source's, which may have any other name."""

FIRST_OP = f"{OURS}first_op"
"""payload/ -> sink/: operation of a key's first change in the batch."""

LINK = f"{OURS}link"
"""payload/: where a merge payload's missing columns are to be looked for."""

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
"""source/ -> decode/: a Kafka record as Spark's Kafka reader gives it (headers included)."""

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
"""The same with what only RFC-39's columns need (``event_columns.py``)."""

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

``source`` is what the connector's family reads (``Family.source``), ``SOURCE`` for most. Where
RFC-39's columns are wanted, it is ``EVENT_SOURCE`` and ``ts_ms`` (bigint) is there.
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

``kind`` is one of ``KINDS``; ``collection`` is named as in Debezium's transaction metadata;
``identity`` is a 64-bit hash of the row's place in the source log, and of a row without a key only
within one ``incarnation``, the connector's ``runId``; ``nth`` is ``transaction.total_order``;
``source_ms`` is ``source.ts_ms`` (milliseconds); ``moved_from`` is the old key of a primary-key
change, as JSON. ``key`` and ``value`` are still in the records' format.
MySQL's have ``INSIDE`` behind them, and where RFC-39's columns are wanted, a struct of them comes
last (``event_columns.EVENT``).
"""

INSIDE = "inside"
"""Name of a struct behind ``CHANGE``'s columns, of MySQL: where a row lies within its transaction.

``place`` (bigint: a hash of file and offset), ``row`` and ``nth`` (``transaction.total_order``);
null where the position does not depend on ``row``. See ``transaction/compressed_detection.py``.
"""

MOVES_ON = "moves_on"
"""A boolean behind a change, where transactions do not hold them together: the delete is one half
of a primary-key change, and the create of the new key is the other."""

MOVED_UNNAMED = f"{OURS}moved_unnamed"
"""A boolean behind a change, where headers are missing: it is the create of a key change."""

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

``begins`` counts its BEGINs, the first of them at ``begun``; ``end_position`` is above every row up
to it; ``committed_at`` is the source's clock, ``written_at``
the record's Kafka timestamp.
"""


class Kind:
    """What a record is (column ``kind``).

    ``FOREIGN`` is a message of Debezium's that is no change (heartbeat, BEGIN and END, schema
    change, notification); ``UNKNOWN`` has no operation, or one that Debezium does not write.
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


KINDS = (
    Kind.ROW,
    Kind.SNAPSHOT,
    Kind.SUPERSEDED,
    Kind.TRUNCATE,
    Kind.NULL_RECORD,
    Kind.MESSAGE,
    Kind.FOREIGN,
    Kind.UNKNOWN,
    Kind.MALFORMED,
)


class MetadataColumns:
    """The columns that lakeingest adds to a target table, in one place.

    Attributes:
        position: Position of the change that last decided the row (string, never null).
        deleted: Whether the row is a tombstone (boolean, never null).
        column_positions: Positions of the columns that are older than the row (map from column to
            position; null where every column has the row's position).
        record_key: Only in Hudi tables whose key columns cannot be a record key; readers of the
            lake do not see it.
        row_key: Only in tables whose source has no key: a hash of what is in the row; readers of
            the lake do not see it.
        row_place: The same where a row is its place in the log. Another name, so that a table
            that was begun in one way is not gone on with in the other.
        event: RFC-39's columns, where they are wanted; readers see them like the source's.
    """

    def __init__(self, prefix: str = "_", event: Iterable[str] = ()) -> None:
        """Name the columns with ``prefix`` (``lakeingest.metadata.prefix``).

        Args:
            prefix: Of our own columns.
            event: Names of RFC-39's columns; empty: the tables have none.
        """
        self.position = f"{prefix}position"
        self.deleted = f"{prefix}deleted"
        self.column_positions = f"{prefix}column_positions"
        self.record_key = f"{prefix}record_key"
        self.row_key = f"{prefix}row_key"
        self.row_place = f"{prefix}row_place"
        self.event = tuple(event)

    @property
    def keyless(self) -> tuple[str, str]:
        """Our keys of rows whose source has none."""
        return (self.row_key, self.row_place)

    @property
    def names(self) -> tuple[str, str, str]:
        """Our own, in the order of the table's columns, behind all others."""
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
    ]
)
"""ledger/ -> reader/: rows of kind ``publication``, ``transaction`` and ``epoch``.

Older versions wrote rows of kind ``writer``, too; a claim has none now.

``at`` is the time of publication, for a transaction its commit time at the source. ``tables`` maps
a collection to its Delta version; ``offsets`` maps topic and partition to the lowest offset that
the next batch must read; ``end_offset`` and ``end_position`` are the frontier (of a transaction:
its END). ``paths`` maps a collection to its folder where that is not the collection's name (null:
nowhere), ``schemas`` a collection to the source's columns, as SQL would declare them, where they
are not as the publications before show them (null: nowhere), ``notes`` a changed table to what its
commit says of itself, for when the table's own log has lost it. A ledger that an older version made
gets these columns with the next append. An ``epoch`` tells where positions start over:
``transaction_id`` is what they count within (server uuid, binlog base name), ``offsets`` topic,
partition and offset from which it holds, ``end_position`` what its positions begin with.
"""

LEDGER_FOLDER = "_lakeingest/ledger"
"""Where the ledger lies, below the target path."""
