"""Build the ledger's rows: one per publication, per epoch that begins, per source transaction.

The rows are for readers and SQL; the drivers read the commit's metadata (``publication.py``).
"""

from __future__ import annotations

import json
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.cast import typed_columns
from lakeingest.engine.known_columns import Selection, made_once
from lakeingest.frame_schemas import LEDGER
from lakeingest.ledger.publication import EPOCH, PUBLICATION, TRANSACTION, Frontier, Publication
from lakeingest.position import after


def no_rows(spark: SparkSession) -> DataFrame:
    """Return no rows, in the ledger's schema."""
    return spark.createDataFrame([], LEDGER).coalesce(1)


def publication_rows(
    spark: SparkSession, publication: Publication, transaction_topic: str
) -> DataFrame:
    """Return a publication's own row, and a row for each epoch that begins in its batch.

    Args:
        spark: Session with Delta's extension.
        publication: The publication.
        transaction_topic: Topic of the ENDs.
    """
    rows = _literal_row(spark, publication, PUBLICATION)
    for epoch in publication.opened:
        data = {} if epoch.domain else publication.frontier.offsets
        begin = Frontier(
            end_offset=epoch.end_offset,
            end_position=after(epoch.number),
            offsets={**data, transaction_topic: {0: epoch.end_offset}},
        )
        bare = replace(publication, tables={}, paths={}, notes={}, transactions=0, events=0)
        row = _literal_row(spark, replace(bare, frontier=begin), EPOCH, epoch.domain)
        rows = rows.unionByName(row)
    return rows


def transaction_rows(publication: Publication, transactions: DataFrame) -> DataFrame:
    """Return a row for each source transaction of a batch.

    Args:
        publication: The batch's publication.
        transactions: See ``DeltaLedger.publish``.
    """
    publisher = {
        "batch": F.lit(publication.batch),
        "token": F.lit(publication.token),
        "run": F.lit(publication.run),
    }
    return _transaction_columns().of(transactions.withColumns(publisher))


@made_once
def _transaction_columns() -> Selection:
    # PostgreSQL counts logical messages under names like "…MessageId@50a5e486".
    table_counts = F.filter("collections", lambda c: ~F.contains(c["data_collection"], F.lit("@")))
    values = {
        **{name: F.col(name) for name in ("batch", "token", "run", "end_offset", "end_position")},
        "kind": F.lit(TRANSACTION),
        "at": F.coalesce(F.col("committed_at"), F.timestamp_seconds(F.lit(0))),
        "transactions": F.lit(1),
        "events": F.col("event_count"),
        "transaction_id": F.col("id"),
        "events_by_table": F.map_from_entries(table_counts),
    }
    return Selection(*typed_columns(LEDGER, values))


def _literal_row(
    spark: SparkSession, publication: Publication, kind: str, domain: str | None = None
) -> DataFrame:
    frontier = publication.frontier
    # Literals over a local row stay a local row. Over ``range``, Spark would compile new code for
    # the one row of each publication.
    values = {
        "kind": F.lit(kind),
        "batch": F.lit(publication.batch),
        "token": F.lit(publication.token),
        "run": F.lit(publication.run),
        "at": F.current_timestamp(),
        "transactions": F.lit(publication.transactions),
        "events": F.lit(publication.events),
        "tables": _parsed(dict(publication.tables), "tables"),
        "end_offset": F.lit(frontier.end_offset),
        "end_position": F.lit(frontier.end_position),
        "offsets": _parsed({t: dict(p) for t, p in frontier.offsets.items()}, "offsets"),
        "transaction_id": F.lit(domain),
        "paths": _parsed(dict(publication.paths) or None, "paths"),
        "schemas": _parsed(dict(publication.schemas) or None, "schemas"),
        "notes": _parsed(dict(publication.notes) or None, "notes"),
    }
    return spark.sql("VALUES (1)").select(*typed_columns(LEDGER, values))


def _parsed(value: object, column: str) -> Column:
    return F.from_json(F.lit(json.dumps(value)), LEDGER[column].dataType.simpleString())
