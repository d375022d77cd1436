"""Changes, boundaries and records of the transaction topic in a few words.

Numbers below 1,000 are local to a case; a case's own numbers lie at ``case * 1000``, so that many
cases fit into one frame (transaction keys and offsets never meet) and one job answers all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from lakeingest.frame_schemas import BOUNDARY, CHANGE, Kind
from lakeingest.position import after

CASE = 1_000

METADATA = StructType(
    [
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("status", StringType()),
        StructField("id", StringType()),
        StructField("event_count", LongType()),
        StructField("data_collections", ArrayType(BOUNDARY["collections"].dataType.elementType)),  # type: ignore[attr-defined]
        StructField("ts_ms", LongType()),
        StructField("malformed", BooleanType(), nullable=False),
    ]
)
"""What ``boundaries`` reads of ``decode_transaction_metadata``'s columns."""


def metadata(spark: SparkSession, streams: Sequence[Sequence[tuple[str | None, str]]]) -> DataFrame:
    """Return streams of (status, id), one per case, each END counting two rows of ``public.a``."""
    rows = [
        (case, case * CASE + n, status, id_, *_counts(status), 1_795_255_555_620 + n, False)
        for case, stream in enumerate(streams)
        for n, (status, id_) in enumerate(stream)
    ]
    frame = spark.createDataFrame(rows, METADATA).coalesce(1)
    return frame.withColumn("timestamp", F.timestamp_millis("ts_ms"))


def _counts(status: str | None) -> tuple[int | None, list[tuple[str, int]] | None]:
    return (2, [("public.a", 2)]) if status == "END" else (None, None)


@dataclass(frozen=True)
class Seen:
    """One row of a transaction as it was delivered.

    Attributes:
        number: Which row of the transaction it is; two deliveries of one row have the same.
        run: Incarnation of the connector that sent it.
        collection: Its table.
        transaction: Which transaction of the case (see ``Over``).
        at: Commit before its transaction; by default that of the ``Over`` below it.
        kind: Kind of the change.
        nth: ``transaction.total_order``.
        key: None where its table has no key.
    """

    number: int
    run: str | None = "first"
    collection: str = "public.a"
    transaction: int = 1
    at: int | None = None
    kind: str = Kind.ROW
    nth: int | None = None
    key: bytes | None = b"1"


@dataclass(frozen=True)
class Over:
    """One END: transaction ``n`` of the case commits at ``n * 10``, after ``(n - 1) * 10``."""

    counts: dict[str, int]
    begins: int = 1
    transaction: int = 1
    implied: bool = False
    commit: int | None = None


@dataclass(frozen=True)
class Case:
    """A transaction (or several) with what was delivered of it."""

    ends: Sequence[Over]
    rows: Sequence[Seen] = field(default_factory=tuple)


def key_of(case: int, transaction: int) -> str:
    return str(case * CASE + transaction)


def change_of(**values: Any) -> tuple[Any, ...]:
    """Return a change of which only these columns are known (``CHANGE``)."""
    change = dict.fromkeys(CHANGE.fieldNames()) | {"topic": "t", "partition": 0} | values
    return tuple(change[name] for name in CHANGE.fieldNames())


def changes(spark: SparkSession, cases: Iterable[Case]) -> DataFrame:
    """Return the delivered rows of all cases (``CHANGE``)."""
    rows: list[Any] = []
    for number, case in enumerate(cases):
        for offset, seen in enumerate(case.rows):
            below = (seen.transaction - 1) * 10 if seen.at is None else seen.at
            place = after(0, number * CASE + below + 1, seen.number)
            unkeyed = (seen.run, seen.nth) if seen.key is None else ()
            change = change_of(
                offset=number * CASE + offset,
                kind=seen.kind,
                collection=seen.collection,
                op="c",
                position=place,
                transaction_key=key_of(number, seen.transaction),
                incarnation=seen.run,
                nth=seen.nth,
                key=seen.key,
                identity=hash((number, seen.transaction, place, seen.collection, *unkeyed)),
            )
            rows.append(change)
    return spark.createDataFrame(rows, CHANGE).coalesce(1)


def ended(spark: SparkSession, cases: Iterable[Case]) -> DataFrame:
    """Return the ENDs of all cases (``BOUNDARY``)."""
    rows = [
        (
            number * CASE + n,
            f"id-{key_of(number, over.transaction)}-{n}",
            key_of(number, over.transaction),
            after(0, number * CASE + (over.commit or over.transaction * 10) + 1, 0),
            over.begins,
            None,
            over.implied,
            False,
            sum(over.counts.values()),
            list(over.counts.items()),
            None,
            None,
        )
        for number, case in enumerate(cases)
        for n, over in enumerate(case.ends)
    ]
    return spark.createDataFrame(rows, BOUNDARY).coalesce(1)
