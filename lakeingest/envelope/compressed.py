"""MySQL's compressed transactions (``binlog_transaction_compression=ON``): the order within one.

The server writes such a transaction as one event of the log (TRANSACTION_PAYLOAD). What is in it
has no place of its own: its headers say 0, the connector keeps the ``pos`` of the whole, and
``row`` counts from 0 again in each rows event. So pos and row not only repeat, they lie: a key that
a statement of six rows wrote last (row 5) and the next statement wrote alone (row 0) sorts the
wrong way. Comparing ``total_order`` only where pos and row are equal is therefore rejected.

``total_order`` is the order, if it is told to be the same whenever an event comes again. Since
Debezium 3.7 it is: a connector that goes on in mid-transaction goes on counting. Before, it counted
from 1 again, and nothing in an event says from where. So the version in the event decides: from 3.7
on ``total_order`` stands in the place of ``row``, raised above every row, so that one transaction
sent by both versions has positions that do not meet by chance. Before it, ``row`` stays, which is
right for transactions that are not compressed, and compressed ones are noticed by their rows
(``transaction/compressed_detection.py``) and refused. Also rejected: a setting that says
"compressed"; it can be wrong, and is whenever a session switches compression on for itself.

Both halves of a key change have one place, as everywhere: the create takes the delete's number.
Where a transform took the headers off, they have two, and a value that the create leaves out (only
with ``binlog_row_image=NOBLOB``) is not found under the old key: it is missing, and said to be.

Sources: ``BinlogStreamingChangeEventSource.handleTransactionPayload`` and ``handleEvent``,
``TransactionMonitor.transactionStartedEvent`` (debezium/dbz#633); a payload that
mysql-binlog-connector-java tests with (``nextPosition=0`` in all of its events).
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakeingest.envelope.headers import OLD_KEY_HEADER, header
from lakeingest.frame_schemas import SOURCE

MYSQL_SOURCE = StructType([*SOURCE, StructField("version", StringType())])

_COUNTS_AGAIN = tuple(f"3.{minor}." for minor in range(7))
_ABOVE_ROWS = 1 << 62


def _goes_on_counting() -> Column:
    """Condition: the event's Debezium is 3.7 or later; without a regular expression."""
    version = F.col("source.version")
    # A version of two digits would sort before 3; it is not near.
    recent = F.substring(version, 1, 1).between("3", "9")
    return recent & ~F.substring(version, 1, 4).isin(*_COUNTS_AGAIN)


def _nth() -> Column:
    """Number of the event in its transaction; of a key change, that of its delete."""
    total = F.col("transaction.total_order")
    moved = (F.col("op") == "c") & header(OLD_KEY_HEADER).isNotNull()
    return F.when(moved, total - 1).otherwise(total)


def within_transaction() -> Column:
    """Return what orders the rows of one ``pos``: a number (bigint) that is never null."""
    counted = F.when(_goes_on_counting(), _nth() + F.lit(_ABOVE_ROWS))
    return F.coalesce(counted, F.col("source.row"), F.lit(0))


def inside() -> Column:
    """Return ``INSIDE``: where a row lies that ``row`` orders; null where it does not."""
    source = F.struct(
        F.xxhash64("source.file", "source.pos").alias("place"),
        F.col("source.row").alias("row"),
        F.col("transaction.total_order").alias("nth"),
    )
    told = _goes_on_counting() & F.col("transaction.total_order").isNotNull()
    return F.when(~F.coalesce(told, F.lit(False)), source)
