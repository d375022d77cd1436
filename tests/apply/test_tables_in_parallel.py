"""The tables of a batch are written side by side: none waits while rows of another are looked up.

``functools.cached_property`` of Python 3.10 and 3.11 has one lock for all objects of a class. A
table whose rows are looked up in one would make all others wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Barrier
from types import ModuleType

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakeingest.engine.local_checkpoint import local_checkpoint
from lakeingest.sink.delta import landing, versions
from tests.apply.published import table
from tests.logs.written import WrittenLog, change
from tests.sink.conftest import treat_as_large

pytestmark = [pytest.mark.slow, pytest.mark.soak]

TABLES = "a", "b"


@pytest.mark.parametrize(
    ("settings", "looks_up"),
    [({}, landing), ({"commit_mode": "per-transaction"}, versions)],
    ids=["grouped", "per-transaction"],
)
def test_no_table_waits_while_rows_of_another_one_are_looked_up(
    spark: SparkSession,
    log: WrittenLog,
    lake: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: Mapping[str, str],
    looks_up: ModuleType,
) -> None:
    treat_as_large(monkeypatch)

    def ingest(number: int) -> None:
        lsn = 100 * number
        log.transaction(f"{number}:{lsn}", *(change(name, lsn) for name in TABLES))
        log.ingest(spark, lake, **settings)

    ingest(1)
    ingest(2)
    both = Barrier(len(TABLES), timeout=60)

    def of_both(frame: DataFrame) -> DataFrame:
        both.wait()
        meetings.append(frame)
        return local_checkpoint(frame)

    meetings: list[DataFrame] = []
    monkeypatch.setattr(looks_up, "local_checkpoint", of_both)
    ingest(3)
    assert meetings
    for name in TABLES:
        assert set(table(spark, lake, f"public.{name}").values()) == {300}
