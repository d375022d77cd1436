"""Build the ledger's rows: one per publication, per epoch that begins, per source transaction.

The rows are for readers and SQL; the drivers read the commit's metadata (``publication.py``).
"""

from __future__ import annotations

import json
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.cast import typed_columns
from lakeingest.engine.known_columns import Addition, Selection, Steps, made_once
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
    return _transaction_columns().of(transactions.withColumns(_publisher(publication)))


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
    content = {
        "transactions": publication.transactions,
        "events": publication.events,
        "tables": dict(publication.tables),
        "end_offset": frontier.end_offset,
        "end_position": frontier.end_position,
        "offsets": {topic: dict(parts) for topic, parts in frontier.offsets.items()},
        "transaction_id": domain,
        "paths": dict(publication.paths) or None,
        "schemas": dict(publication.schemas) or None,
        "notes": dict(publication.notes) or None,
    }
    # Literals over a local row stay a local row. Over ``range``, Spark would compile new code for
    # the one row of each publication.
    row = spark.sql("VALUES (1)").withColumns(
        {
            **_publisher(publication),
            "kind": F.lit(kind),
            "_content": F.lit(json.dumps(content)),
        }
    )
    return _literal_columns().of(row)


def _publisher(publication: Publication) -> dict[str, Column]:
    return {
        "batch": F.lit(publication.batch),
        "token": F.lit(publication.token),
        "run": F.lit(publication.run),
    }


_GIVEN = ("kind", "batch", "token", "run", "at")
"""Columns of the ledger that are not in the text with a publication's content."""


@made_once
def _literal_columns() -> Steps:
    content = StructType([item for item in LEDGER if item.name not in _GIVEN])
    fields = {item.name: F.col("_row").getField(item.name) for item in content}
    values = {
        **fields,
        **{name: F.col(name) for name in ("kind", "batch", "token", "run")},
        "at": F.current_timestamp(),
    }
    return Steps(
        Addition({"_row": F.from_json("_content", content.simpleString(), {"mode": "FAILFAST"})}),
        Selection(*typed_columns(LEDGER, values)),
    )
