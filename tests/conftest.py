"""One Spark for all tests: its start costs seconds, a test in it milliseconds."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadScopeScheduling

from lakeingest.engine.few_rows import FOR_FEW_ROWS, READS_IN_BATCHES
from lakeingest.session import session
from tests.harness import is_harness_test
from tests.patches import reach_kept_columns
from tests.pickled_rows import take_rows_as_they_are
from tests.reader.small_lake import small_lake
from tests.shared_jvm import SharedJvm
from tests.young_jvm import compile_quickly, generate_code, long_lived

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.workermanage import WorkerController


__all__ = ["small_lake"]

compile_quickly()
reach_kept_columns()
take_rows_as_they_are()

MANY_TESTS = 100
"""With more of them a session lives for many minutes."""

SHOWN_FILES = 40

_FAST_TESTS_OF_A_SLOW_ONE = 40
"""So many take about as long."""

_FILES_BEFORE_PARTS = 8

_MANY_ROWS = "recordings/test_recordings.py"
"""A Spark that has just started reads thousands of rows slowly, so this file is never first."""

_SHARED = "shared_jvm"
_STARTED = pytest.StashKey[tuple["SparkSession", Path]]()

PARTS = "parts"
_PARTS = ("live", "oracles", "rig", "soak", "workloads")
_MORE_PARTS = (
    "recordings/test_hudi_streamer.py",
    "recordings/test_through_kafka.py",
    "source/test_kafka.py",
)


class ByParts(LoadScopeScheduling):  # type: ignore[misc]
    """Tests that start databases, brokers and connectors share a worker; others go by file.

    One test keeps little more than one core busy, so tests run in two workers (``pytest -n 2``),
    which share Spark's JVM (``shared_jvm.py``). A second set of databases would cost more than it
    brings. Rejected: ``--dist loadgroup``, which pytest-xdist 3.8 loses under pytest 9.
    """

    def _split_scope(self, nodeid: str) -> str:
        """Return what a test is sent to a worker with."""
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """Return the file of a test, or ``PARTS`` if it needs databases, brokers or connectors."""
    file = nodeid.partition("::")[0].removeprefix("tests/")
    return PARTS if file.partition("/")[0] in _PARTS or file in _MORE_PARTS else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByParts:
    """Send tests to workers by what they share."""
    return ByParts(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the harness's own tests, before markers select what runs."""
    if is_harness_test(item.nodeid):
        item.add_marker("harness")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order what runs, for two workers to end together.

    First the files with the most slow tests: what is left for the end is short. The parts, which
    one worker takes, follow a few of them: there they find a Spark that is warm. So do many rows.
    """
    sizes: Counter[str] = Counter()
    for item in items:
        is_slow = item.get_closest_marker("slow") is not None
        sizes[scope_of(item.nodeid)] += _FAST_TESTS_OF_A_SLOW_ONE if is_slow else 1
    ordered = [scope for scope, _ in sizes.most_common() if scope != PARTS]
    ordered.insert(_FILES_BEFORE_PARTS, PARTS)
    if _MANY_ROWS in ordered[:2]:
        ordered.insert(2, ordered.pop(ordered.index(_MANY_ROWS)))
    ranks = {scope: rank for rank, scope in enumerate(ordered)}
    items.sort(key=lambda item: ranks[scope_of(item.nodeid)])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which files took most of the time, next to pytest's slowest tests."""
    seconds: dict[str, float] = defaultdict(float)
    for report in chain(*terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.partition("::")[0]] += report.duration
    if terminalreporter.config.getoption("durations"):
        terminalreporter.section(f"slowest {SHOWN_FILES} files, of {sum(seconds.values()):,.0f} s")
        for file in sorted(seconds, key=seconds.__getitem__, reverse=True)[:SHOWN_FILES]:
            terminalreporter.line(f"{seconds[file]:7.1f}s {file}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let no test of another worker run beside one that is marked ``alone``."""
    shared = _shared_jvm(item.config)
    is_alone = item.get_closest_marker("alone") is not None
    with shared.turn(alone=is_alone) if shared else nullcontext():
        return (yield)


@pytest.fixture(autouse=True)
def _generated(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let Spark generate code in a test that is marked ``generated``."""
    if request.node.get_closest_marker("generated") is None:
        yield
        return
    spark: SparkSession = request.getfixturevalue("spark")
    generate_code(spark, generate=True)
    yield
    generate_code(spark, generate=False)


@pytest.fixture(autouse=True)
def _read_in_batches(request: pytest.FixtureRequest) -> Iterator[None]:
    """Undo what Hudi does to a session that reads its tables (``engine/few_rows.py``)."""
    yield
    if "spark" in request.fixturenames:
        spark: SparkSession = request.getfixturevalue("spark")
        spark.conf.set(READS_IN_BATCHES, FOR_FEW_ROWS[READS_IN_BATCHES])


@pytest.fixture(scope="session")
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """The session that the library itself would start, small."""
    if shared := _shared_jvm(request.config):
        yield shared.attached()
        return
    is_long = request.session.testscollected > MANY_TESTS
    started = _started(tmp_path_factory.mktemp("warehouse"), is_long=is_long)
    yield started
    started.stop()


def pytest_configure_node(node: WorkerController) -> None:
    """Tell a worker where Spark is; before the first one, start it."""
    stash = node.config.stash
    if _STARTED not in stash:
        folder = Path(tempfile.mkdtemp(prefix="lakeingest-tests-"))
        stash[_STARTED] = _started(folder, is_long=True), folder
    node.workerinput[_SHARED] = tuple(SharedJvm.of(*stash[_STARTED]))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the workers' Spark, if there is one."""
    if _STARTED in config.stash:
        started, folder = config.stash[_STARTED]
        started.stop()
        shutil.rmtree(folder)


def _shared_jvm(config: pytest.Config) -> SharedJvm | None:
    """Return where this worker finds Spark; ``None``: this process is no worker."""
    shared = getattr(config, "workerinput", {}).get(_SHARED)
    return SharedJvm(*shared) if shared else None


def _started(warehouse: Path, *, is_long: bool) -> SparkSession:
    with long_lived() if is_long else nullcontext():
        started = session(
            "lakeingest tests", cores=2, hudi=True, jdbc=True, extra=_settings(warehouse)
        )
    assert started.sparkContext.master == "local[2]"
    assert str(started.conf.get("spark.sql.warehouse.dir")).endswith(str(warehouse))
    return started


def _settings(warehouse: Path) -> dict[str, str]:
    return {
        "spark.sql.warehouse.dir": warehouse.as_uri(),
        "spark.driver.memory": "6g",
        # Delta keeps 10,000 tables' logs for an hour, at some 6 MB each: the tests' hundreds of
        # tables filled the heap until Spark ended its own JVM.
        "spark.databricks.delta.delta.log.cacheSize": "64",
        **FOR_FEW_ROWS,
    }
