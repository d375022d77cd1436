"""A change is in the batch that its number says: the two ways to find it agree."""

from __future__ import annotations

import random
from functools import reduce

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakeingest.frame_schemas import Kind
from lakeingest.plan.batches import in_batches, of_batch
from lakeingest.position import after
from lakeingest.transaction.cut import Cut

_ROWS = StructType(
    [
        StructField("id", LongType(), nullable=False),
        StructField("kind", StringType(), nullable=False),
        StructField("position", StringType()),
        StructField("transaction_key", StringType()),
        StructField("end_offset", LongType()),
    ]
)
_KINDS = (Kind.ROW, Kind.ROW, Kind.SNAPSHOT, Kind.TRUNCATE, Kind.NULL_RECORD, Kind.MALFORMED)
_FRONTIER = 40


def random_cuts(rng: random.Random) -> list[Cut]:
    """Return batches in commit order; ENDs that belong to none may lie between two of them."""
    offset, place, cuts = rng.randint(0, 5), _FRONTIER, []
    for _ in range(rng.randint(1, 4)):
        first = offset + rng.randint(1, 3)
        offset = first + rng.randint(0, 3)
        place += rng.randint(1, 30)
        cuts.append(Cut(first, offset, after(0, place), 1, 1))
    return cuts


def random_row(
    rng: random.Random, number: int
) -> tuple[int, str, str | None, str | None, int | None]:
    kind = rng.choice(_KINDS)
    of_transaction = rng.random() < 0.6
    ended = of_transaction and rng.random() < 0.7
    return (
        number,
        kind,
        None if kind == Kind.MALFORMED else after(0, rng.randint(0, 200)),
        f"t{number}" if of_transaction else None,
        rng.randint(0, 30) if ended else None,
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("snapshot", [True, False])
def test_a_change_is_in_the_batch_that_its_number_says(
    spark: SparkSession, seed: int, *, snapshot: bool
) -> None:
    rng = random.Random(seed)
    cuts = random_cuts(rng)
    window = spark.createDataFrame([random_row(rng, n) for n in range(200)], _ROWS)
    below = after(0, _FRONTIER)
    numbered = in_batches(window, window.limit(0), cuts, below, snapshot=snapshot)
    by_number: dict[int | None, set[int]] = {}
    for row in numbered.select("id", "batch").collect():
        by_number.setdefault(row["batch"], set()).add(row["id"])
    each = [
        of_batch(window, cuts, index, below, snapshot=snapshot).select(
            "id", F.lit(index).alias("index")
        )
        for index in range(0 if snapshot else 1, len(cuts) + 1)
    ]
    by_index: dict[int, set[int]] = {}
    for row in reduce(DataFrame.unionAll, each).collect():
        by_index.setdefault(row["index"], set()).add(row["id"])
    assert by_index == {index: ids for index, ids in by_number.items() if index is not None}
