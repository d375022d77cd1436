"""MySQL and MariaDB: positions from the GTID's number (or the binlog file), offset and row.

MariaDB's GTID is ``domain-server-sequence``. The sequence orders one domain across servers; the
server does not come first, as it does in Debezium's own ``MariaDbGtid.compareTo``. MySQL's GTID is
``uuid:n`` or ``uuid:tag:n``; without GTIDs the transaction id is ``file=<name>.<number>,pos=<n>``.
File numbers compare as numbers: ``999999`` comes before ``1000000``. Numbers of different GTID
domains, uuids and binlog base names cannot be compared. Each has its own epoch, in the order of the
transaction topic. Each tag of a uuid also counts separately, but in one binlog: with tags, an epoch
is in file order (``position/epochs.py``). There the id of END gives no place in a file, so END gets
its position from the rows of its transaction (``plan/end_positions.py``).

MariaDB writes a BEGIN without END for each TRUNCATE and DDL statement (recorded: 33 of 33), so a
BEGIN is over when a later transaction begins. The transaction must be later: after a restart the
connector goes back (recorded: BEGIN 8274 is followed by BEGIN 8074), and then the first one is
*not* over. Nor is it over if it has rows: then its END was lost, or it is an XA transaction, whose
rows come with XA PREPARE, without an END. MySQL writes no BEGIN for TRUNCATE, DDL and XA.
Sources: ``BinlogSourceInfo``, ``BinlogStreamingChangeEventSource.prepareTransaction``, the recorded
runs.

MySQL can write a transaction as one event, in which neither offset nor row gives the order:
``compressed.py``. MariaDB (``log_bin_compress``) compresses each event by itself, in its place.

Ids are split with ``substring_index``, for every row; it costs a tenth of a regular expression.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakeingest.envelope.compressed import MYSQL_SOURCE, inside, within_transaction
from lakeingest.envelope.family import Domains, Family, is_streamed, table_name
from lakeingest.position import component, position
from lakeingest.position.epochs import IN_FILE_ORDER

_FILE = "file="
_POS = ",pos="


def _is_file(id_: Column) -> Column:
    return F.startswith(id_, F.lit(_FILE))


def _in_file(number: Column, offset: Column) -> Column:
    return F.shiftleft(number.cast("bigint"), 40) + offset.cast("bigint")


def _number(id_: Column) -> Column:
    """Return the number of a transaction in its domain: GTID sequence, GTID n, or file and offset.

    File and offset become ``file * 2^40 + pos``: a binlog file is at most 1 GiB plus one event.
    """
    file = F.substring_index(F.substring_index(id_, _POS, 1), ".", -1)
    offset = F.substring_index(F.substring_index(id_, _POS, -1), ",", 1)
    in_file = _in_file(file, offset)
    of_gtid = F.substring_index(F.substring_index(id_, ":", -1), "-", -1).cast("bigint")
    return F.when(_is_file(id_), in_file).otherwise(of_gtid)


def _row_id() -> Column:
    """Return the id of the row's transaction; without one, the row's place in the file."""
    place = F.concat(
        F.lit(_FILE), F.col("source.file"), F.lit(_POS), F.col("source.pos").cast("string")
    )
    return F.coalesce(F.col("source.gtid"), F.col("transaction.id"), place)


def _domain(id_: Column) -> Column:
    """Return the id without its number: ``uuid``, ``0``, ``file=mysql-bin``; ``uuid:*``: tagged."""
    without_number = F.regexp_replace(id_, r"(-\d+-\d+$)|(:\d+$)|(\.\d+,pos=\d+$)", "")
    of_server = F.regexp_replace(without_number, ":.*$", IN_FILE_ORDER)
    return F.when(_is_file(id_), without_number).otherwise(of_server)


def _is_in(id_: Column, domain: str) -> Column:
    """Return whether an id is of a domain, without a regular expression.

    ``uuid:*`` holds all transactions of the server, including those without a tag.
    """
    if domain.endswith(IN_FILE_ORDER):
        return F.startswith(id_, F.lit(domain.removesuffix("*")))
    if domain.startswith(_FILE):
        file = F.substring_index(id_, _POS, 1)
        number = F.substring_index(file, ".", -1)
        return F.concat(F.lit(f"{domain}."), number) == file
    if domain.isdigit():
        return F.substring_index(id_, "-", 1) == F.lit(domain)
    # Do not compare the beginning alone: a uuid is also the beginning of the uuid with a tag.
    return F.concat(F.lit(f"{domain}:"), F.substring_index(id_, ":", -1)) == id_


def _position(epoch: Column, within: Callable[[], Column]) -> Column:
    return position(
        epoch,
        is_streamed(),
        component(_number(_row_id())),
        component(F.col("source.pos")),
        component(within()),
    )


def _position_in_file(epoch: Column, within: Callable[[], Column]) -> Column:
    pos = F.col("source.pos")
    place = _in_file(F.substring_index(F.col("source.file"), ".", -1), pos)
    return position(epoch, is_streamed(), component(place), component(pos), component(within()))


def _row() -> Column:
    return F.coalesce(F.col("source.row"), F.lit(0))


def _event() -> tuple[Column, ...]:
    file, pos = F.col("source.file"), F.col("source.pos")
    # Hudi's order key: Hudi stops at a row without a place in the binlog, where this is NULL.
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


MARIADB = Family(
    position=partial(_position, within=_row),
    collection=lambda: table_name("db", "table"),
    end_position=lambda epoch, id_: position(
        epoch,
        F.lit(True),
        component(_number(id_) + 1),
        component(F.lit(0)),
        component(F.lit(0)),
    ),
    implied_end=True,
    domains=Domains(_domain, _number, follow=True, row_id=_row_id, is_in=_is_in),
    row_transaction=lambda: F.col("source.gtid"),
    event=_event,
)
MYSQL = replace(
    MARIADB,
    position=partial(_position, within=within_transaction),
    implied_end=False,
    source=MYSQL_SOURCE,
    inside=inside,
    in_file=partial(_position_in_file, within=within_transaction),
)
