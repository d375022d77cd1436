"""Order the rows within MySQL's compressed transactions (``binlog_transaction_compression=ON``).

The server writes such a transaction as one event of the log (TRANSACTION_PAYLOAD). The events in it
have no place of their own: their headers say 0, the connector keeps the ``pos`` of the whole, and
``row`` counts from 0 again in each rows event. So ``pos`` and ``row`` repeat, and they also order
wrongly. If a statement of six rows writes a key last (row 5) and the next statement writes that key
alone (row 0), the second write sorts first. So to compare ``total_order`` only where ``pos`` and
``row`` are equal is rejected.

``total_order`` is the order, provided that it is the same whenever an event comes again. Since
Debezium 3.7 it is: a connector that resumes in mid-transaction continues to count. Before 3.7 it
counts from 1 again, and nothing in an event says from where. So the version in the event decides.
From 3.7 on ``total_order`` replaces ``row``, raised above every row number: if both versions send
one transaction, their positions do not meet by chance. Before 3.7, ``row`` stays. That is right for
transactions that are not compressed. ``transaction/compressed_detection.py`` detects compressed
transactions by their rows and refuses them. Also rejected: a setting that says "compressed". It can
be wrong, and is wrong whenever a session switches compression on for itself.

Both halves of a key change have one place, as everywhere: the create takes the delete's number. If
a transform removes the headers, they have two places. Then a value that the create omits (only with
``binlog_row_image=NOBLOB``) is not found under the old key: it is missing, and reported as missing.

Sources: ``BinlogStreamingChangeEventSource.handleTransactionPayload`` and ``handleEvent``,
``TransactionMonitor.transactionStartedEvent`` (debezium/dbz#633); a payload from the tests of
mysql-binlog-connector-java (``nextPosition=0`` in all of its events).
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


def _keeps_counting() -> Column:
    """Return whether the event's Debezium is 3.7 or later; without a regular expression."""
    version = F.col("source.version")
    # A major version of two digits would sort before 3; none is near.
    recent = F.substring(version, 1, 1).between("3", "9")
    return recent & ~F.substring(version, 1, 4).isin(*_COUNTS_AGAIN)


def _nth() -> Column:
    """Return the event's number in its transaction; for a key change, its delete's number."""
    total = F.col("transaction.total_order")
    moved = (F.col("op") == "c") & header(OLD_KEY_HEADER).isNotNull()
    return F.when(moved, total - 1).otherwise(total)


def within_transaction() -> Column:
    """Return a number (bigint, never NULL) that orders the rows of one ``pos``."""
    by_total_order = F.when(_keeps_counting(), _nth() + F.lit(_ABOVE_ROWS))
    return F.coalesce(by_total_order, F.col("source.row"), F.lit(0))


def inside() -> Column:
    """Return ``INSIDE``: the place of a row that ``row`` orders; NULL for other rows."""
    place = F.struct(
        F.xxhash64("source.file", "source.pos").alias("place"),
        F.col("source.row").alias("row"),
        F.col("transaction.total_order").alias("nth"),
    )
    by_total_order = _keeps_counting() & F.col("transaction.total_order").isNotNull()
    return F.when(~F.coalesce(by_total_order, F.lit(False)), place)
