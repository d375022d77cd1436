"""SQL Server and Db2: positions from the LSNs of commit and change.

Both connectors read change tables in the order of (commit LSN, change LSN), and the transaction's
id *is* the commit LSN, so END, rows and order need nothing else. LSNs are hexadecimal digits in
groups of fixed width (``8:8:4`` on SQL Server, ``8:8:16`` on Db2, whose documentation shows the
short form). Without the colons they sort as they are. An LSN of another width gives no position,
which stops the run; to pad it would guess which digits are missing. Snapshot rows have no change
LSN: they get the lowest one.

SQL Server writes an update of a key column as delete and insert with the same change LSN;
``event_serial_no`` separates them. Db2's two halves have different keys, so equal positions do no
harm. Rejected: the Kafka offset as the tie-breaker; a repeated event would look new.

An LSN belongs to one database. SQL Server's connector can capture several databases: the second one
stops the run.
Sources: ``TxLogPosition``, ``Lsn`` and ``SourceInfo`` of both connectors.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakeingest.envelope.family import Domains, Family, is_streamed, table_name
from lakeingest.position import COMPONENT_WIDTH, component, position

_COMMON = (
    StructField("ts_ms", LongType()),
    StructField("snapshot", StringType()),
    StructField("db", StringType()),
    StructField("schema", StringType()),
    StructField("table", StringType()),
    StructField("commit_lsn", StringType()),
    StructField("change_lsn", StringType()),
)
_SQLSERVER_SOURCE = StructType([*_COMMON, StructField("event_serial_no", LongType())])
_DB2_SOURCE = StructType(list(_COMMON))

_SHORT, _LONG = 20, 32
"""Number of digits of an LSN of 10 and of 16 octets."""

_COLONS = 2


def _short(lsn: Column) -> Column:
    """Return the digits of ``8:8:4`` in upper case; NULL for any other format."""
    return F.when(F.octet_length(lsn) == _SHORT + _COLONS, _digits(lsn, _SHORT))


def _long(lsn: Column) -> Column:
    """Return the digits of ``8:8:16`` in upper case, and those of a widened ``8:8:4``."""
    short = _short(lsn)
    widened = F.concat(
        F.substring(short, 1, 16), F.lit("0" * (_LONG - _SHORT)), F.substring(short, 17, 4)
    )
    whole = F.when(F.octet_length(lsn) == _LONG + _COLONS, _digits(lsn, _LONG))
    return F.coalesce(whole, widened)


def _digits(lsn: Column, count: int) -> Column:
    # Convert to octets and back: a character that is no digit gives NULL, and the case is upper.
    digits = F.hex(F.unhex(F.translate(lsn, ":", "")))
    return F.when(F.octet_length(digits) == count, digits)


def _or_lowest(digits: Column, width: int, condition: Column) -> Column:
    return F.when(digits.isNull() & condition, F.lit("0" * width)).otherwise(digits)


def _sqlserver_position(epoch: Column) -> Column:
    change = F.col("source.change_lsn")
    return position(
        epoch,
        is_streamed(),
        _or_lowest(_short(F.col("source.commit_lsn")), _SHORT, ~is_streamed()),
        _or_lowest(_short(change), _SHORT, change.isNull()),
        component(F.coalesce(F.col("source.event_serial_no"), F.lit(0))),
    )


def _db2_position(epoch: Column) -> Column:
    change = F.col("source.change_lsn")
    return position(
        epoch,
        is_streamed(),
        _or_lowest(_long(F.col("source.commit_lsn")), _LONG, ~is_streamed()),
        _or_lowest(_long(change), _LONG, change.isNull()),
    )


def _highest(width: int) -> Column:
    return F.lit("F" * width)


def _database(_: Column) -> Column:
    """Return the database of a transaction: all collections that END counts begin with it."""
    return F.substring_index(F.get(F.col("collections"), F.lit(0))["data_collection"], ".", 1)


SQLSERVER = Family(
    position=_sqlserver_position,
    collection=lambda: table_name("db", "schema", "table"),
    end_position=lambda epoch, id_: position(
        epoch, F.lit(True), _short(id_), _highest(_SHORT), _highest(COMPONENT_WIDTH)
    ),
    domains=Domains(_database, lambda _: F.lit(0).cast("bigint")),
    source=_SQLSERVER_SOURCE,
)
DB2 = Family(
    position=_db2_position,
    collection=lambda: table_name("schema", "table"),
    end_position=lambda epoch, id_: position(epoch, F.lit(True), _long(id_), _highest(_LONG)),
    source=_DB2_SOURCE,
)
