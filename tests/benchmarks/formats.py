"""``python -m tests.benchmarks.formats``: the same transactions in JSON, with schemas, and in Avro.

A bank on a real PostgreSQL is captured by one Debezium connector per format, so the events are the
same and so is everything behind the decoder. Then each format is ingested from the same broker in
one process, in turn, round after round; the ratio is taken inside each round before the median is.
A first round warms up the JVM and is not counted. The lakes must hold the same rows: the speed of a
wrong answer means nothing.

A run of some seconds also holds what does not grow with the events, such as asking the registry. So
decoding is timed by itself as well: the same records, held in memory, to header fields.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.apply.run import run_pipeline
from lakeingest.apply.table.record_schemas import open_schemas
from lakeingest.config import load_config
from lakeingest.errors import UnavailableError
from lakeingest.reader import open_lake
from lakeingest.session import session
from lakeingest.source import open_source
from lakeingest.source.contract import OffsetRange
from tests.live.run import LiveRun
from tests.live.stage import Play, Stage
from tests.rig.chain import Chain
from tests.rig.connectors import Format
from tests.workloads.crew import Pace

FORMATS = (Format.JSON, Format.JSON_SCHEMA, Format.AVRO)

_QUIET_SECONDS = 5.0
_ARRIVAL_SECONDS = 900.0


def wait_until_quiet(spark: SparkSession, chain: Chain, runs: Sequence[LiveRun]) -> None:
    """Wait until no more records come.

    Raises:
        TimeoutError: They do not end.
    """
    began = since = time.monotonic()
    seen: list[int | None] = []
    while time.monotonic() - since < _QUIET_SECONDS:
        if time.monotonic() - began > _ARRIVAL_SECONDS:
            message = f"records still come after {_ARRIVAL_SECONDS:.0f} s"
            raise TimeoutError(message)
        counts = [records(spark, chain, run) for run in runs]
        if None in counts or counts != seen:
            seen, since = counts, time.monotonic()
        time.sleep(0.5)


def records(spark: SparkSession, chain: Chain, run: LiveRun) -> int | None:
    """Return how many records a run's topics hold; null while one of them is not there yet."""
    config = load_config(run.configuration(chain, Path("unused")))
    with closing(open_source(spark, config.source)) as source:
        try:
            bounds = source.watermarks([*source.topics(), config.source.transaction_topic])
        except UnavailableError:
            return None
    return sum(bound.high - bound.earliest for bound in bounds.values())


def ingested(
    spark: SparkSession, chain: Chain, run: LiveRun, lake: Path, batch: int
) -> tuple[float, int]:
    """Ingest a run into a new lake; return the seconds and the events."""
    config = load_config(run.configuration(chain, lake, batch_max_events=str(batch)))
    began = time.monotonic()
    summary = run_pipeline(spark, config)
    return time.monotonic() - began, summary.events


def decodings(spark: SparkSession, chain: Chain, run: LiveRun, rounds: int) -> list[float]:
    """Return the seconds that decoding the header fields of all data records took."""
    config = load_config(run.configuration(chain, Path("unused")))
    with (
        closing(open_schemas(spark, config.source)) as schemas,
        closing(open_source(spark, config.source)) as source,
    ):
        ranges = [
            OffsetRange(where.topic, where.partition, bound.earliest, bound.high)
            for where, bound in source.watermarks(source.topics()).items()
        ]
        records = source.read(ranges).where(F.col("value").isNotNull()).persist()
        schemas.learn(records)
        times = []
        for _ in range(rounds + 1):
            began = time.monotonic()
            headers = schemas.format.envelopes(records).drop("value")
            headers.write.format("noop").mode("overwrite").save()
            times.append(time.monotonic() - began)
        records.unpersist()
    return times[1:]


def checksums(spark: SparkSession, run: LiveRun, lake: Path) -> dict[str, tuple[int, int]]:
    """Return number and hash of the rows of each table."""
    snapshot = open_lake(spark, str(lake)).snapshot()
    sums = {}
    for table in run.captured:
        rows = snapshot.table(run.collection(table))
        # Through text: a format may bring a narrower type of the same value.
        texts = [F.col(name).cast("string") for name in sorted(rows.columns)]
        row = rows.agg(F.count("*"), F.sum(F.xxhash64(*texts).cast("decimal(38,0)"))).first()
        assert row is not None
        sums[table] = (int(row[0]), int(row[1] or 0))
    return sums


def compare(
    spark: SparkSession,
    chain: Chain,
    runs: Sequence[LiveRun],
    folder: Path,
    rounds: int,
    batch: int,
) -> None:
    """Run the rounds and print the table.

    Raises:
        AssertionError: The formats do not give the same rows.
    """
    seconds: dict[str, list[float]] = {run.form: [] for run in runs}
    events = 0
    for number in range(rounds + 1):
        lakes = {}
        for run in (*runs[number % len(runs) :], *runs[: number % len(runs)]):
            lakes[run.form] = folder / f"{run.form}-{number}"
            took, events = ingested(spark, chain, run, lakes[run.form], batch)
            if number:
                seconds[run.form].append(took)
        sums = [checksums(spark, run, lakes[run.form]) for run in runs]
        assert all(lake_sums == sums[0] for lake_sums in sums), f"the formats differ: {sums}"
    print(f"{events:,} events, batches of {batch:,}, median of {rounds}")
    show(events, seconds)
    print("decoding their header fields alone")
    show(events, {run.form: decodings(spark, chain, run, 2 * rounds) for run in runs})


def show(events: int, seconds: Mapping[str, Sequence[float]]) -> None:
    """Print a line per format."""
    print(f"{'format':14} {'seconds':>9} {'events/s':>10} {'against json':>14}   runs")
    for form, times in seconds.items():
        ratio = median(json / own for json, own in zip(seconds["json"], times, strict=True))
        each = " ".join(f"{one:.2f}" for one in times)
        typical = median(times)
        print(f"{form:14} {typical:>9.2f} {events / typical:>10,.0f} {ratio:>13.2f}x   {each}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Bring up the chain, capture a bank, and compare."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.formats")
    parser.add_argument("--transactions", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=50_000)
    options = parser.parse_args(arguments)
    spark = session("lakeingest benchmark")
    with tempfile.TemporaryDirectory(prefix="lakeingest-formats-") as name:
        folder = Path(name)
        with Chain(folder / "rig", postgres=True, registry=True) as chain:
            pace = Pace(transactions=options.transactions)
            stage = Stage(chain, Play("bank", "postgresql", pace=pace), folder)
            runs = [stage.run(written) for written in FORMATS]
            for run in runs:
                run.capture(chain)
            stage.workload.start()
            stage.workload.finish()
            wait_until_quiet(spark, chain, runs)
            compare(spark, chain, runs, folder, rounds=options.rounds, batch=options.batch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
