"""Detect compressed transactions: several rows events at one place of the log.

A place in a binlog belongs to one rows event. The event has a ``pos`` and numbers its rows from 0;
two rows events of one transaction never have the same ``pos``, unless the server compressed the
transaction (``envelope/compressed.py`` argues why its rows then have no order). One rows event
holds only inserts, or only deletes, or only updates; an update that changes the key is a delete and
a create with one number. So the rows of a table at one place come from several rows events if

* there are more events, a key change counted once, than the highest number allows;
* there are creates and deletes, but not as many of one as of the other;
* there are as many, of the same keys: no row's key changes into itself.

Only whole transactions are judged, whose rows END has all counted: with fewer rows, each of these
signs may come from the rows that are still missing. A transaction that a connector sent in two
parts is skipped; the next transaction will show it. A row that one incarnation counted twice is
always a sign.

The check does not find every compressed transaction. If a transaction has one rows event, it is in
order, compressed or not. If transactions have several statements, the first of them show it. With
``skip.messages.without.change`` a gap in the numbers may hide the sign.

Rejected: to check each key where changes are folded. That finds only the harmful transactions, but
compares every change of every pipeline once more.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakeingest.frame_schemas import INSIDE

SHARED_PLACE = "several statements at one place of the log"


def of_change() -> tuple[Column, ...]:
    """Return what the checks need of a change with ``INSIDE``."""
    side = F.when(F.col("op") == "c", 1).when(F.col("op") == "d", -1).otherwise(0)
    return (
        *(F.col(f"{INSIDE}.{name}") for name in ("place", "row", "nth")),
        side.cast("bigint").alias("side"),
        F.hash("key").cast("bigint").alias("key"),
        F.when(F.col("incarnation").isNotNull(), F.xxhash64("incarnation")).alias("run"),
    )


def of_row() -> tuple[Column, ...]:
    """Return what the checks need of a row, over ``of_change`` of each delivery of the row."""
    return (
        F.min("place").alias("place"),
        F.max("place").alias("other"),
        F.max("row").alias("row"),
        F.max("side").alias("side"),
        F.max("key").alias("key"),
        _is_two_rows().alias("twice"),
    )


def of_collection() -> tuple[Column, ...]:
    """Return what the checks need of a collection, over ``of_row`` and ``identity`` of its rows."""
    # Every row must have a place: if two versions of Debezium sent a transaction, some lack it.
    has_places = F.count("place") == F.count("identity")
    return (
        ((F.min("place") == F.max("other")) & has_places).alias("one_place"),
        F.max("row").alias("row"),
        F.count_if(F.col("side") == 1).alias("creates"),
        F.count_if(F.col("side") == -1).alias("deletes"),
        F.sum(F.col("side") * F.col("key")).alias("keys"),
        F.max("twice").alias("twice"),
    )


def is_compressed(is_incomplete: Column) -> Column:
    """Return whether a collection's rows show that their transaction was compressed.

    Args:
        is_incomplete: Whether the collection lacks rows. This condition and the returned one stand
            over ``of_collection``, ``found``, ``expected`` and ``begins``.
    """
    is_complete = (F.col("begins") == 1) & ~is_incomplete
    return F.col("twice") | (is_complete & F.col("one_place") & _not_one_event())


def _is_two_rows() -> Column:
    """Return whether one incarnation counted the row twice: then it is two rows."""
    one_run = F.min("run") == F.max("run")
    whole_run = F.count("run") == F.count("nth")
    return one_run & whole_run & (F.min("nth") != F.max("nth"))


def _not_one_event() -> Column:
    creates, deletes = F.col("creates"), F.col("deletes")
    key_changes = F.least(creates, deletes)
    no_room = F.greatest("expected", "found") - key_changes > F.col("row") + 1
    mixed = key_changes > 0
    return no_room | (mixed & (creates != deletes)) | (mixed & (F.col("keys") == 0))
