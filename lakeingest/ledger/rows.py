"""Build the ledger's rows: one per publication, per epoch that begins, per source transaction.

The rows are for readers and SQL; the drivers read the commit's metadata (``publication.py``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakeingest.cast import typed_columns
from lakeingest.engine.known_columns import Selection, Steps, made_once
from lakeingest.frame_schemas import LEDGER
from lakeingest.ledger.publication import EPOCH, PUBLICATION, TRANSACTION, Frontier, Publication
from lakeingest.position import after

InPart = Mapping[int, Mapping[str, int]]
"""END offset to table to number of missing rows, of transactions that are published in part."""


def publication_rows(
    spark: SparkSession, publications: Sequence[Publication], transaction_topic: str
) -> DataFrame:
    """Return a row for each publication, and a row for each epoch that begins in its batch.

    Args:
        spark: Session with Delta's extension.
        publications: The publications.
        transaction_topic: Topic of the ENDs.
    """
    contents = []
    for publication in publications:
        contents.append(_content(publication, PUBLICATION))
        for epoch in publication.opened:
            data = {} if epoch.domain else publication.frontier.offsets
            begin = Frontier(
                end_offset=epoch.end_offset,
                end_position=after(epoch.number),
                offsets={**data, transaction_topic: {0: epoch.end_offset}},
            )
            bare = replace(
                publication, tables={}, paths={}, reloads={}, notes={}, transactions=0, events=0
            )
            contents.append(_content(replace(bare, frontier=begin), EPOCH, epoch.domain))
    # Literals over a local row stay a local row. Over ``range``, Spark would compile new code for
    # the few rows of each append.
    row = spark.sql("VALUES (1)").withColumn("_contents", F.lit(json.dumps(contents)))
    return _literal_columns().of(row)


def transaction_rows(
    publications: Sequence[Publication], transactions: DataFrame, in_part: InPart
) -> DataFrame:
    """Return a row for each source transaction of a batch.

    Args:
        publications: See ``DeltaLedger.publish``.
        transactions: See ``DeltaLedger.publish``.
        in_part: See ``DeltaLedger.publish``.
    """
    first, *others = publications
    number: Column = F.lit(0)
    if others:
        ends = json.dumps([each.frontier.end_offset for each in publications])
        number = F.expr(
            f"cast(array_position(from_json('{ends}', 'array<bigint>'), end_offset) - 1 as int)"
        )
    step = others[0].token - first.token if others else 0
    publisher = {
        "batch": F.lit(first.batch) + number,
        "token": F.lit(first.token) + F.lit(step) * number,
        "run": F.lit(first.run),
        "missing_by_table": _missing(in_part),
    }
    return _transaction_columns().of(transactions.withColumns(publisher))


def _missing(in_part: InPart) -> Column:
    if not in_part:
        return F.lit(None)
    by_end = F.from_json(F.lit(json.dumps(in_part)), "map<string,map<string,bigint>>")
    return by_end[F.col("end_offset").cast("string")]


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
        "missing_by_table": F.col("missing_by_table"),
    }
    return Selection(*typed_columns(LEDGER, values))


def _content(
    publication: Publication, kind: str, domain: str | None = None
) -> Mapping[str, object]:
    frontier = publication.frontier
    return {
        "kind": kind,
        "batch": publication.batch,
        "token": publication.token,
        "run": publication.run,
        "transactions": publication.transactions,
        "events": publication.events,
        "tables": publication.shown,
        "end_offset": frontier.end_offset,
        "end_position": frontier.end_position,
        "offsets": {topic: dict(parts) for topic, parts in frontier.offsets.items()},
        "transaction_id": domain,
        "paths": publication.shown_paths or None,
        "schemas": dict(publication.schemas) or None,
        "notes": dict(publication.notes) or None,
    }


@made_once
def _literal_columns() -> Steps:
    content = StructType([item for item in LEDGER if item.name != "at"])
    fields = {item.name: F.col("_row").getField(item.name) for item in content}
    parsed = F.from_json("_contents", f"array<{content.simpleString()}>", {"mode": "FAILFAST"})
    return Steps(
        Selection(F.explode(parsed).alias("_row")),
        Selection(*typed_columns(LEDGER, {**fields, "at": F.current_timestamp()})),
    )
