"""Envelope to change: the kind of a record, its place in the log, its transaction.

Every record gets a kind and none is filtered here: what a later stage does not apply it must still
count. Rows are not matched by ``total_order``: a connector that was killed in mid-transaction may
count again from 1 (Debezium before 3.7; recorded run ``mariadb-kill``), and one that does not is
believed only where nothing else tells (``compressed.py``). A row's identity is a hash of its place
in the source log instead. Two rows that collide in 64 bits would make a transaction look short,
which holds it back: safe, and one in 10^9 transactions of a million rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.envelope.binlog import MARIADB, MYSQL
from lakeingest.envelope.commit_lsn import DB2, SQLSERVER
from lakeingest.envelope.epoch import row_epoch
from lakeingest.envelope.family import Family, is_streamed
from lakeingest.envelope.headers import NEW_KEY_HEADER, OLD_KEY_HEADER, RUN_HEADER, header
from lakeingest.envelope.oracle import ORACLE
from lakeingest.envelope.ordered import ordered_position
from lakeingest.envelope.postgresql import POSTGRESQL
from lakeingest.envelope.yugabytedb import YUGABYTEDB, YUGABYTEDB_GRPC
from lakeingest.errors import InvariantError
from lakeingest.event_columns import BY_CONNECTOR, EVENT
from lakeingest.frame_schemas import CHANGE, INSIDE, MOVES_ON, Kind
from lakeingest.position.epochs import Epoch

FAMILIES: dict[str, Family] = {
    "postgresql": POSTGRESQL,
    "mysql": MYSQL,
    "mariadb": MARIADB,
    "sqlserver": SQLSERVER,
    "db2": DB2,
    "oracle": ORACLE,
    "yugabytedb": YUGABYTEDB,
    "yugabytedb-grpc": YUGABYTEDB_GRPC,
}

_PLACE = ("transaction_key", "position", "collection", "op")


def _kind(position: Column, foreign: Column | None) -> Column:
    op = F.col("op")
    initial = (op == "r") & ~is_streamed()
    placed = position.isNotNull() & (F.col("collection") != "")
    return (
        F.when(F.col("value").isNull(), Kind.NULL_RECORD)
        .when(F.col("malformed"), Kind.MALFORMED)
        .when(op == "m", Kind.MESSAGE)
        .when(op.isin("c", "u", "d", "r", "t") & ~placed, Kind.MALFORMED)
        .when(initial, Kind.SNAPSHOT)
        .when(op == "t", Kind.TRUNCATE)
        .when(op.isin("c", "u", "d", "r"), Kind.ROW)
        .when(op.isNull() & (F.lit(False) if foreign is None else foreign), Kind.FOREIGN)
        .otherwise(Kind.UNKNOWN)
    )


def changes(
    envelopes: DataFrame,
    connector: str,
    epoch: int,
    marks: tuple[bytes, ...],
    key_body: Column | None = None,
    *,
    event: bool = False,
    epochs: Sequence[Epoch] = (),
    ordered: Column | None = None,
    halves: bool = False,
    left_out: Column | None = None,
    foreign: Column | None = None,
) -> DataFrame:
    """Turn envelopes (``ENVELOPE``) into changes (``CHANGE``).

    Args:
        envelopes: Decoded header fields with the record's text.
        connector: One of ``FAMILIES``.
        epoch: The epoch of the initial snapshot, and of all that no later one holds.
        marks: Octets one of which a record with an unavailable value must contain; a cheap hint,
            the column decoder decides.
        key_body: The part of a record key that is equal whenever the key is; all of it if null.
        event: Whether RFC-39's columns are wanted.
        epochs: Those that the transaction topic has told of, by number.
        ordered: What a user orders rows by (``ordered.ordered_position``), over an envelope with
            ``collection``; null where the source's log decides.
        halves: Whether to add ``MOVES_ON``.
        left_out: Condition: an update may leave columns out without a mark; null: none does.
        foreign: Condition over a record without an operation: it is another message of Debezium's;
            null: none is.
    """
    family = FAMILIES[connector]
    placed = (
        envelopes.withColumn("collection", family.collection())
        .withColumn("position", _position(family, epoch, epochs, ordered))
        .withColumn("incarnation", header(RUN_HEADER))
        .withColumn("moved_from", F.when(F.col("op") == "c", header(OLD_KEY_HEADER)))
    )
    masked = F.lit(False)
    for mark in marks:
        masked = masked | F.contains(F.col("value"), F.lit(mark))
    partial = F.lit(False) if left_out is None else left_out
    keyless = F.when(
        F.col("key").isNull() & (F.col("op") != "t"),
        F.concat_ws("/", F.col("incarnation"), F.col("transaction.total_order").cast("string")),
    )
    return (
        placed.withColumn("kind", _kind(F.col("position"), foreign))
        .withColumn("transaction_key", family.transaction_key(F.col("transaction.id")))
        .withColumn(
            "identity",
            F.xxhash64(*_PLACE, F.col("key") if key_body is None else key_body, keyless),
        )
        .withColumn("nth", F.col("transaction.total_order"))
        .withColumn("snapshot", F.col("source.snapshot"))
        .withColumn("source_ms", F.col("source.ts_ms"))
        .withColumn(
            "may_be_masked",
            F.when(F.col("op") == "u", masked | partial)
            .when(F.col("op") == "c", masked)
            .otherwise(F.lit(False)),
        )
        .select(
            *CHANGE.fieldNames(),
            *([family.inside().alias(INSIDE)] if family.inside else []),
            *([_event(connector)] if event else []),
            *([_moves_on()] if halves else []),
        )
    )


def _moves_on() -> Column:
    found = (F.col("op") == "d") & header(NEW_KEY_HEADER).isNotNull()
    return F.coalesce(found, F.lit(False)).alias(MOVES_ON)


def _position(family: Family, base: int, epochs: Sequence[Epoch], ordered: Column | None) -> Column:
    epoch = row_epoch(family, base, epochs)
    of_source = family.position(epoch)
    in_file_order = [each.number for each in epochs if each.in_file_order]
    if in_file_order and family.in_file is not None:
        in_file = is_streamed() & epoch.isin(*in_file_order)
        of_source = F.when(in_file, family.in_file(epoch)).otherwise(of_source)
    if ordered is None:
        return of_source
    by_user = ordered_position(epoch, ordered)
    return F.when(ordered.isNull(), of_source).otherwise(by_user)


def _event(connector: str) -> Column:
    of_family = FAMILIES[connector].event
    if of_family is None:
        message = f"Hudi's streamer has no tables of a {connector} connector"
        raise InvariantError(message)
    values = zip(of_family(), BY_CONNECTOR[connector], strict=True)
    return F.struct(*(value.cast(item.dataType).alias(item.name) for value, item in values)).alias(
        EVENT
    )
