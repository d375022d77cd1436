"""Turn BEGIN and END records into transaction boundaries, in commit order.

Commit order is the order of END on the one-partition transaction topic. Besides one BEGIN and one
END per transaction, the topic holds these, with this effect:

* *Repeated END* (a restarted connector sends whole transactions again): the first END counts. The
  repeated rows have the same identity and position, so they change nothing.
* *Repeated BEGIN*: before 3.7.0, a connector that is killed in mid-transaction counts only the tail
  in END. ``begins`` tells the completeness check that the count alone proves nothing.
* *BEGIN without END*, then the BEGIN of a **later** transaction: the first transaction is over, on
  connectors that write such BEGINs (MariaDB's TRUNCATE and DDL). Other rows than TRUNCATEs do not
  belong to this implied END (``completeness.with_end_offset``). If the next BEGIN is of the same or
  an earlier transaction, the connector went back and sends the first one again. To take it as over
  would publish half of it (recorded: ``mariadb-kill-replay``, BEGIN 8274 followed by BEGIN 8074).
* *Any other BEGIN without END* is ``open``. This BEGIN, or its END, comes again before the first
  END of any later transaction: a connector goes back to transactions whose ENDs it wrote before,
  never past a transaction that it had begun. So a new END behind an open BEGIN shows that records
  are lost (``cut.first_later_end``). Positions are not compared: a BEGIN of PostgreSQL names the
  place where its transaction began to write, which may be below earlier commits.
* *Foreign messages* have neither status: ignored here, counted by the caller.
* *Unreadable records* (broken JSON, a BEGIN or END whose id gives no position) become a boundary
  with the empty position, which is below all. To drop them would lose a transaction in silence.

Rejected: to order by ``ts_ms`` or by the id. Many transactions have the same ``ts_ms``, and the id
is not ordered on every connector.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import Column, Window
from pyspark.sql import functions as F

from lakeingest.engine.known_columns import Addition, Filter, Selection, Steps
from lakeingest.frame_schemas import BOUNDARY


def boundary_steps(transaction_key: Column, end_position: Column, *, implied_end: bool) -> Steps:
    """Return the steps that find the transactions that are over in a slice of the topic.

    They turn ``decode_transaction_metadata``'s columns, of one partition, into ``BOUNDARY``, one
    row per transaction. ``end_offset`` is the offset of its END, of its BEGIN where the end is
    implied, or of the last BEGIN of an open transaction.

    Args:
        transaction_key: The connector family's key, over column ``id``.
        end_position: The family's end position, over column ``id``.
        implied_end: Whether a BEGIN without END is over at a later transaction's BEGIN.
    """
    has_status = F.coalesce(F.col("status").isin("BEGIN", "END"), F.lit(False))
    readable_position = F.when(has_status & ~F.col("malformed"), end_position)
    place = {
        "end_position": readable_position,
        "transaction_key": transaction_key,
        "_foreign": ~has_status & ~F.col("malformed"),
        "_readable": readable_position.isNotNull(),
        "_overtaken": F.lit(False),
    }
    # The windows share their partitioning and order: one sort is enough. No unreadable or foreign
    # record is in a group of readable ones.
    by_key = Window.partitionBy("_readable", "transaction_key").orderBy("offset")
    whole = by_key.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    earlier = by_key.rowsBetween(Window.unboundedPreceding, -1)
    so_far = by_key.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    is_end = F.col("status") == "END"
    counts = {
        "begins": F.sum((~is_end).cast("bigint")).over(so_far),
        "begun": F.min(F.when(~is_end, F.col("offset"))).over(so_far),
        "_ends": F.sum(is_end.cast("bigint")).over(whole),
        "_ended_at": F.last(F.when(is_end, F.col("end_position")), True).over(earlier),
        "_passed": F.sum(F.col("_overtaken").cast("bigint")).over(earlier),
        "_passes": F.max("_overtaken").over(whole),
        "_last": F.max("offset").over(whole),
    }
    # PostgreSQL may use an xid again, with another END; the same END twice is a repetition.
    is_repeated = F.coalesce(F.col("_ended_at") == F.col("end_position"), F.lit(False))
    unended = F.col("_readable") & (F.col("_ends") == 0)
    is_implied = unended & F.col("_overtaken") & (F.coalesce("_passed", F.lit(0)) == 0)
    is_open = unended & ~F.col("_passes") & (F.col("offset") == F.col("_last"))
    ends = {
        "implied": F.coalesce(is_implied, F.lit(False)),
        "open": F.coalesce(is_open, F.lit(False)),
    }
    is_boundary = (is_end & ~is_repeated) | F.col("implied") | F.col("open")
    of_readable = partial(F.when, F.col("_readable"))
    columns = {
        "end_offset": F.col("offset"),
        "id": F.coalesce("id", F.lit("")),
        "transaction_key": F.coalesce(of_readable(F.col("transaction_key")), F.lit("")),
        "end_position": F.coalesce("end_position", F.lit("")),
        "begins": F.coalesce(of_readable(F.col("begins")), F.lit(0)),
        "begun": of_readable(F.col("begun")),
        "implied": F.col("implied"),
        "open": F.col("open"),
        "event_count": F.coalesce(F.col("event_count"), F.lit(0)),
        "collections": F.coalesce(F.col("data_collections"), F.array()),
        "committed_at": F.timestamp_millis(F.col("ts_ms")),
        "written_at": F.col("timestamp"),
    }
    return Steps(
        Addition(place),
        *([Addition({"_overtaken": _overtaken(is_end)})] if implied_end else []),
        Addition(counts),
        Addition(ends),
        # Not before the windows: Spark would move the condition below the parser and parse twice.
        Filter(~F.col("_foreign") & (~F.col("_readable") | is_boundary)),
        Selection(*(columns[name].alias(name) for name in BOUNDARY.fieldNames())),
    )


def _overtaken(is_end: Column) -> Column:
    """Return whether a record is a BEGIN and the next one the BEGIN of a later transaction.

    Behind an unreadable record it is not known. The run stops at such a record.
    """
    by_offset = Window.partitionBy("partition", "_foreign").orderBy("offset")
    follows = F.lead(F.when(~is_end, F.col("end_position"))).over(by_offset)
    return ~is_end & F.coalesce(follows > F.col("end_position"), F.lit(False))
