"""The law, from each connector's own records: decoding, positions, fold and merge together.

``pytest -m soak tests/law`` runs thousands of histories per connector and prints the seeds; the
environment variable ``LAKEINGEST_SEED`` chooses others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.forms import SOFT_AND_HARD, further
from tests.law.history import Case, any_order, in_order
from tests.law.ingest import Ingest, delta_sink
from tests.law.judge import check
from tests.law.raw import CONNECTORS, RawIngest, random_table

pytestmark = pytest.mark.slow

FEW, MANY = 12, 125
FEW_ROUNDS, MANY_ROUNDS = 2, 3

EACH = pytest.mark.parametrize("connector", CONNECTORS)
UNLIKE = [
    "postgresql, no headers",
    further("mysql, compressed"),
    further("sqlserver"),
    "yugabytedb-grpc",
    further("ordering columns"),
]
"""Those whose records make other changes, not only other positions: the latter are in
``tests/envelope`` and ``tests/position`` without a table. CI has the two whose changes nothing else
in it has; the long test has every connector."""

Tables = Callable[[str, bool, int], Callable[[], Ingest]]


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> Tables:
    """Make random tables that are fed from a connector's records."""
    numbers = count()

    def of(connector: str, hard: bool, seed: int) -> Callable[[], Ingest]:
        ddl, keys = random_table(list(CONNECTORS).index(connector) + seed)

        def new() -> Ingest:
            root = tmp_path / f"lake{next(numbers)}"
            sink = delta_sink(spark, root, hard=hard, null_missing=True)
            return RawIngest(spark, sink, CONNECTORS[connector], keys=keys, ddl=ddl)

        return new

    return of


def _cases(connector: str, first: int, number: int, rounds: int) -> Sequence[Case]:
    """Return as many histories whose rounds follow the source as such that arrive anyhow.

    Changed keys leave values out in the former only, which ordering columns cannot follow.
    """
    seeds = range(first, first + number)
    if CONNECTORS[connector].ordering:
        return [any_order(seed, rounds) for seed in range(first, first + 2 * number)]
    return [make(seed, rounds) for seed in seeds for make in (in_order, any_order)]


@pytest.mark.parametrize("connector", UNLIKE)
def test_a_connectors_records_in_any_order_leave_the_rows_of_the_source(
    tables: Tables, connector: str
) -> None:
    """Without the last rounds, which only repeat: the test below and others have them."""
    whole = _cases(connector, 0, FEW, FEW_ROUNDS)
    check(tables(connector, False, 0), [replace(c, rounds=c.rounds[:FEW_ROUNDS]) for c in whole])


@pytest.mark.soak
@EACH
@SOFT_AND_HARD
def test_thousands_of_histories_leave_the_rows_of_the_source(
    tables: Tables, connector: str, hard: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    first = int(os.environ.get("LAKEINGEST_SEED", "1000"))
    cases = _cases(connector, first, MANY, MANY_ROUNDS)
    with capsys.disabled():
        print(f"\n{connector}: {len(cases)} histories, seeds {first} to {cases[-1].seed}")
    check(tables(connector, hard, first + hard), cases)
