"""Bad input stops the run with its own error, publishes no more than a commit, and loses nothing.

Nothing lost means: once the log is what it should be, the next run ends with the source's tables.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from tempfile import mkdtemp

import pytest
from pyspark.sql import SparkSession

from lakeingest.apply.batch import writer
from lakeingest.apply.run import run_pipeline
from lakeingest.config import load_config
from lakeingest.errors import ConfigError, DataError
from tests.apply.crash import crashing_at
from tests.apply.shop import Shop
from tests.apply.written import PREFIX
from tests.recordings.altered import Edit, Line, altered, appended, short_run
from tests.recordings.check import check_history
from tests.recordings.configure import RecordedRun, write_properties
from tests.recordings.rust import RustLake

pytestmark = pytest.mark.slow

SECOND = '"total_order":2'


END = 100
"""The last commit of the log as it should be."""


class Pipeline:
    """One lake, fed from one log after another.

    Attributes:
        whole: The log as it should be.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self.whole = short_run(folder / "whole", END, "customers", "orders", "stock_log")

    def altered(self, **edits: Edit) -> RecordedRun:
        return altered(self.whole, Path(mkdtemp(dir=self._folder)) / "log", **edits)

    def ingest(self, run: RecordedRun, **settings: str) -> int:
        """Run to the end of the log; returns the number of publications it made."""
        return run_pipeline(self._spark, load_config(self._configured(run, settings))).batches

    def commit(self) -> int:
        """Return the source commit that the newest publication shows; -1: nothing is published."""
        if not (self._folder / "lake").exists():
            return -1
        history = check_history(self.whole, RustLake(self._folder / "lake", self.whole.namespace))
        assert history.violations == ()
        return history.place.last if history.place else -1

    def holds_the_source_after(self, run: RecordedRun) -> bool:
        """Run over the log as it should be, and return whether its last commit is published."""
        self.ingest(run)
        return self.commit() == END

    def _configured(self, run: RecordedRun, settings: dict[str, str]) -> Path:
        properties = run.configuration(self._folder / "lake", **settings)
        return write_properties(self._folder / "pipeline.properties", properties)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that holds the whole log; to be copied."""
    folder = tmp_path_factory.mktemp("fed")
    pipeline = Pipeline(spark, folder)
    pipeline.ingest(pipeline.whole)
    return folder / "lake"


@pytest.fixture
def fed(spark: SparkSession, tmp_path: Path, lake: Path) -> Pipeline:
    """A pipeline that has applied the whole log."""
    shutil.copytree(lake, tmp_path / "lake")
    return Pipeline(spark, tmp_path)


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline(spark, tmp_path)


def middle(found: list[Line]) -> int:
    """Return the index of a change in the middle of a topic and of its transaction."""
    return next(n for n, x in enumerate(found) if n > len(found) / 2 and SECOND in (x["v"] or ""))


@pytest.mark.soak
def test_a_value_cut_short_within_a_transaction_is_named_and_holds_back_what_comes_after(
    pipeline: Pipeline,
) -> None:
    broken: list[Line] = []

    def cut_short(found: list[Line]) -> list[Line]:
        line = found[middle(found)]
        line["v"] = line["v"][: len(line["v"]) // 2]
        broken.append(line)
        return found

    run = pipeline.altered(orders=cut_short)
    with pytest.raises(DataError) as stopped:
        pipeline.ingest(run)
    place = f"offset {broken[0]['o']} of 't1.public.orders' partition {broken[0]['p']}"
    assert place in str(stopped.value)
    assert 0 < pipeline.commit() < 90
    assert pipeline.holds_the_source_after(pipeline.whole)


@pytest.mark.soak
def test_a_row_that_is_missing_is_counted_and_its_transaction_published_when_it_comes(
    pipeline: Pipeline,
) -> None:
    def without_one(found: list[Line]) -> list[Line]:
        del found[middle(found)]
        return found

    def with_one_late(found: list[Line]) -> list[Line]:
        late = found.pop(middle(found))
        return appended(found, [late])

    with pytest.raises(DataError, match="END counts 1 rows of table 'public.orders', 0 are there"):
        pipeline.ingest(pipeline.altered(orders=without_one))
    assert 0 < pipeline.commit() < 90
    assert pipeline.holds_the_source_after(pipeline.altered(orders=with_one_late))


def test_an_end_that_cannot_be_read_or_is_lost_once_tables_hold_its_rows_stops_the_run(
    shop: Shop,
) -> None:
    """Tables are ahead of the ledger after a crash, and the broker lost its newest records."""
    for v in (31, 41, 51):
        shop.commit(a=v - 1, b=v)
    topics, marks = shop.log._topics, f"{PREFIX}.transaction"
    whole, published = topics[marks], {"public.a": {1: 10, 2: 20}, "public.b": {1: 11, 2: 21}}
    mark = whole[5]
    assert mark is not None
    key, end, *rest = mark
    topics[marks] = [*whole[:5], (key, end[:-5], *rest), *whole[6:]]
    with pytest.raises(DataError, match="of the transaction topic cannot be read"):
        shop.run()
    assert shop.tables() == published
    topics[marks] = whole
    with crashing_at("3.after-last-commit", writer):
        shop.run()
    topics[marks] = whole[:4]
    with pytest.raises(DataError, match="Some tables hold transactions up to the END at offset 9"):
        shop.run()
    assert shop.tables() == published
    topics[marks] = whole
    shop.run()
    assert shop.tables() == {
        "public.a": {1: 10, 2: 20, 3: 30, 4: 40, 5: 50},
        "public.b": {1: 11, 2: 21, 3: 31, 4: 41, 5: 51},
    }


@pytest.mark.soak
def test_a_transaction_topic_with_two_partitions_is_refused(pipeline: Pipeline) -> None:
    def dealt(found: list[Line]) -> Iterable[Line]:
        return ({**line, "p": n % 2, "o": n // 2} for n, line in enumerate(found))

    with pytest.raises(DataError, match="has 2 partitions; the commit order is lost"):
        pipeline.ingest(pipeline.altered(transaction=dealt))
    assert pipeline.commit() == -1
    assert pipeline.holds_the_source_after(pipeline.whole)


@pytest.mark.soak
def test_a_table_without_a_key_stops_before_the_first_batch_that_has_it(pipeline: Pipeline) -> None:
    def keyless(found: list[Line]) -> Iterable[Line]:
        return ({**line, "k": None} for line in found)

    run = pipeline.altered(stock_log=keyless)
    with pytest.raises(ConfigError, match=r"lakeingest\.table\.public\.stock_log\.key"):
        pipeline.ingest(run)
    # Before commit 4 none changes these tables.
    assert pipeline.commit() == 3
    assert pipeline.holds_the_source_after(pipeline.whole)


@pytest.mark.soak
def test_a_log_that_ends_before_what_was_applied_is_refused(fed: Pipeline) -> None:
    last = fed.commit()
    run = fed.altered(transaction=lambda found: found[:120])
    with pytest.raises(DataError, match="deleted and made again"):
        fed.ingest(run)
    assert fed.commit() == last
