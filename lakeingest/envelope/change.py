"""Turn envelopes into changes: the kind of a record, its place in the log, its transaction.

Every record gets a kind, and none is filtered here: a later stage must also count the records that
it does not apply. Rows are not matched by ``total_order``. A connector that is killed in
mid-transaction may count again from 1 (Debezium before 3.7; recorded run ``mariadb-kill``), and
later versions' numbers are used only where nothing else gives the order (``compressed.py``). A
row's identity is a hash of its place in the source log instead. If two rows collide in 64 bits,
their transaction looks incomplete and is held back. That is safe, and happens in one of 10^9
transactions of a million rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakeingest.cast import cast_to
from lakeingest.connectors import CONNECTORS
from lakeingest.engine.known_columns import Addition, Selection, Steps
from lakeingest.envelope.binlog import MARIADB, MYSQL
from lakeingest.envelope.commit_lsn import DB2, SQLSERVER
from lakeingest.envelope.epoch import row_epoch
from lakeingest.envelope.family import Family, is_streamed
from lakeingest.envelope.headers import NEW_KEY_HEADER, OLD_KEY_HEADER, RUN_HEADER, header
from lakeingest.envelope.oracle import ORACLE
from lakeingest.envelope.ordering_columns import ordered_position
from lakeingest.envelope.postgresql import POSTGRESQL
from lakeingest.envelope.yugabytedb import YUGABYTEDB, YUGABYTEDB_GRPC
from lakeingest.errors import InvariantError
from lakeingest.event_columns import BY_SOURCE, EVENT
from lakeingest.frame_schemas import CHANGE, INSIDE, MOVES_ON, ROW_PLACE, WRITTEN_AT, Kind
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


def _kind(position: Column, foreign: Column | None) -> Column:
    op = F.col("op")
    is_initial = (op == "r") & ~is_streamed()
    has_place = position.isNotNull() & (F.col("collection") != "")
    return (
        F.when(F.col("value").isNull(), Kind.NULL_RECORD)
        .when(F.col("malformed"), Kind.MALFORMED)
        .when(op == "m", Kind.MESSAGE)
        .when(op.isin("c", "u", "d", "r", "t") & ~has_place, Kind.MALFORMED)
        .when(is_initial, Kind.SNAPSHOT)
        .when(op == "t", Kind.TRUNCATE)
        .when(op.isin("c", "u", "d", "r"), Kind.ROW)
        .when(op.isNull() & (F.lit(False) if foreign is None else foreign), Kind.FOREIGN)
        .otherwise(Kind.UNKNOWN)
    )


@dataclass(frozen=True)
class ChangeSpec:
    """How to read the changes of a connector.

    Attributes:
        connector: One of ``FAMILIES``.
        epoch: The epoch of the initial snapshot, and of all rows that no later epoch holds.
        epochs: The epochs that the transaction topic shows so far, by number.
        marks: Octets; a record with an unavailable value must contain one of them. A cheap hint:
            the column decoder decides.
        key_body: The part of a record key that is equal for equal keys; None: the whole key.
        may_omit: Condition: an update may omit columns without a mark; None: no update does.
        is_foreign: Condition over a record without an operation: it is another message of
            Debezium's; None: no record is.
        ordering: The user's order of rows (``ordering_columns.ordered_position``), over an envelope
            with ``collection``; NULL where the source's log decides.
        event: Whether to add RFC-39's columns.
        halves: Whether to add ``MOVES_ON``.
        by_rows: Whether the rows alone show their transactions; adds ``WRITTEN_AT``.
    """

    connector: str
    epoch: int = 0
    epochs: Sequence[Epoch] = ()
    marks: tuple[bytes, ...] = ()
    key_body: Column | None = None
    may_omit: Column | None = None
    is_foreign: Column | None = None
    ordering: Column | None = None
    event: bool = False
    halves: bool = False
    by_rows: bool = False


def changes(envelopes: DataFrame, spec: ChangeSpec) -> DataFrame:
    """Turn envelopes (``ENVELOPE``: header fields with the record's text) into ``CHANGE``."""
    return change_steps(spec).of(envelopes)


def change_steps(spec: ChangeSpec) -> Steps:
    """Return the steps of ``changes``."""
    family = FAMILIES[spec.connector]
    names = {
        "collection": family.collection(),
        "incarnation": header(RUN_HEADER),
        "moved_from": F.when(F.col("op") == "c", header(OLD_KEY_HEADER)),
    }
    marks = (F.contains(F.col("value"), F.lit(mark)) for mark in spec.marks)
    has_mark = reduce(or_, marks, F.lit(False))
    may_omit = F.lit(False) if spec.may_omit is None else spec.may_omit
    keyless = F.when(
        F.col("key").isNull() & (F.col("op") != "t"),
        F.concat_ws("/", F.col("incarnation"), F.col("transaction.total_order").cast("string")),
    )
    key = F.col("key") if spec.key_body is None else spec.key_body
    may_be_masked = (
        F.when(F.col("op") == "u", has_mark | may_omit)
        .when(F.col("op") == "c", has_mark)
        .otherwise(F.lit(False))
    )
    place = {
        "position": _position(family, spec),
        "transaction_key": _transaction(family, by_rows=spec.by_rows),
        "nth": F.col("transaction.total_order"),
        "snapshot": F.col("source.snapshot"),
        "source_ms": F.col("source.ts_ms"),
        "may_be_masked": may_be_masked,
    }
    identity = {
        "kind": _kind(F.col("position"), spec.is_foreign),
        "identity": F.xxhash64(*ROW_PLACE, key, keyless),
    }
    columns = Selection(
        *CHANGE.fieldNames(),
        *([family.inside().alias(INSIDE)] if family.inside else []),
        *([_event(spec.connector)] if spec.event else []),
        *([_moves_on()] if spec.halves else []),
        *([F.col("timestamp").alias(WRITTEN_AT)] if spec.by_rows else []),
    )
    if spec.ordering is None:
        # Only the user's ordering columns differ between collections.
        return Steps(Addition({**names, **place}), Addition(identity), columns)
    return Steps(Addition(names), Addition(place), Addition(identity), columns)


def _transaction(family: Family, *, by_rows: bool) -> Column:
    """Return what the rows of one transaction share; NULL: the row is of none."""
    if not by_rows:
        return family.transaction_key(F.col("transaction.id"))
    if family.row_transaction is None:
        message = "the connector's rows do not show their transactions"
        raise InvariantError(message)
    is_incremental = F.col("source.snapshot") == "incremental"
    is_of_one = is_streamed() & ~F.coalesce(is_incremental, F.lit(False))
    return F.when(is_of_one, family.row_transaction())


def _moves_on() -> Column:
    is_half = (F.col("op") == "d") & header(NEW_KEY_HEADER).isNotNull()
    return F.coalesce(is_half, F.lit(False)).alias(MOVES_ON)


def _position(family: Family, spec: ChangeSpec) -> Column:
    epoch = row_epoch(family, spec.epoch, spec.epochs)
    of_source = family.position(epoch)
    in_file_order = [each.number for each in spec.epochs if each.in_file_order]
    if in_file_order and family.in_file is not None:
        in_file = is_streamed() & epoch.isin(*in_file_order)
        of_source = F.when(in_file, family.in_file(epoch)).otherwise(of_source)
    if spec.ordering is None:
        return of_source
    by_user = ordered_position(epoch, spec.ordering)
    return F.when(spec.ordering.isNull(), of_source).otherwise(by_user)


def _event(connector: str) -> Column:
    of_family = FAMILIES[connector].event
    if of_family is None:
        message = f"Hudi's streamer has no tables of a {connector} connector"
        raise InvariantError(message)
    values = zip(of_family(), BY_SOURCE[CONNECTORS[connector].streamer_source], strict=True)
    fields = (cast_to(value, item.dataType).alias(item.name) for value, item in values)
    return F.struct(*fields).alias(EVENT)
