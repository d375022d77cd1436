"""MySQL and MariaDB: positions from the GTID's number (or the binlog file), offset and row.

MariaDB's GTID is ``domain-server-sequence``: the sequence orders one domain across servers (not
the server first, as Debezium's own ``MariaDbGtid.compareTo`` does). MySQL's is ``uuid:n`` or
``uuid:tag:n``, else the transaction id is ``file=<name>.<number>,pos=<n>``. File numbers are
compared as numbers: ``999999`` comes before ``1000000``. Numbers of different domains or uuids
cannot be compared; ``order_domain`` names them so that the buffer can refuse a mix rather than
guess.

MariaDB writes a BEGIN without END for each TRUNCATE and DDL statement (recorded: 33 of 33), so a
BEGIN is over when a later transaction begins. Later matters: after a restart the connector goes
back (recorded: BEGIN 8274 is followed by BEGIN 8074), and then the first one is *not* over.
Sources: ``BinlogSourceInfo``, the recorded runs.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakeingest.envelope.family import Family
from lakeingest.position import component, position


def _number(transaction_id: Column) -> Column:
    """Number of a transaction within its domain: GTID sequence, GTID n, or file and offset.

    File and offset become ``file * 2^40 + pos``: a binlog file is at most 1 GiB plus one event.
    """
    file = F.nullif(F.regexp_extract(transaction_id, r"^file=.*\.(\d+),pos=(\d+)", 1), F.lit(""))
    offset = F.regexp_extract(transaction_id, r"^file=.*\.(\d+),pos=(\d+)", 2)
    number = F.regexp_extract(transaction_id, r"[-:](\d+)$", 1)
    in_file = F.shiftleft(file.cast("bigint"), 40) + offset.cast("bigint")
    return F.coalesce(in_file, F.nullif(number, F.lit("")).cast("bigint"))


def _row_number() -> Column:
    file = F.regexp_extract(F.col("source.file"), r"\.(\d+)$", 1)
    in_file = F.shiftleft(F.nullif(file, F.lit("")).cast("bigint"), 40) + F.col("source.pos")
    return F.coalesce(_number(F.col("source.gtid")), _number(F.col("transaction.id")), in_file)


def _position(epoch: Column) -> Column:
    snapshot = F.coalesce(F.col("source.snapshot"), F.lit("false"))
    streaming = snapshot.isin("false", "incremental")
    return position(
        epoch,
        streaming,
        component(_row_number()),
        component(F.col("source.pos")),
        component(F.coalesce(F.col("source.row"), F.lit(0))),
    )


def _event() -> tuple[Column, ...]:
    file, pos = F.col("source.file"), F.col("source.pos")
    # Hudi's order key: it stops at what has no place in the binlog, where this is null.
    sequence = F.concat(F.substring_index(file, ".", -1), F.lit("."), pos.cast("string"))
    return (
        F.col("op"),
        F.col("ts_ms"),
        F.col("source.name"),
        F.col("source.ts_ms"),
        file,
        pos,
        F.col("source.row"),
        sequence,
    )


BINLOG = Family(
    position=_position,
    collection=lambda: F.concat_ws(".", F.col("source.db"), F.col("source.table")),
    transaction_key=lambda id_: id_,
    end_position=lambda epoch, id_: position(
        epoch,
        F.lit(True),
        component(_number(id_) + 1),
        component(F.lit(0)),
        component(F.lit(0)),
    ),
    order=_number,
    implied_end=True,
    order_domain=lambda id_: F.regexp_replace(id_, r"(-\d+-\d+$)|(:\d+$)|(\.\d+,pos=\d+$)", ""),
    event=_event,
)
