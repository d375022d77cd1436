"""``python -m tests.benchmarks.latency``: from a commit at the source to its publication.

A bank (or a shop) commits at a steady rate on a real PostgreSQL (or MariaDB), Debezium sends, and a
continuous run publishes. Both times are the lake's own: of each source transaction the commit time
that the connector gives with END, and the time of the publication it is in; they come from clocks
of one machine. What was committed before the run was warm is left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.errors import LakeingestError
from lakeingest.reader import open_lake
from lakeingest.session import session
from tests.live.ingest import Ingest
from tests.live.stage import Play, Stage
from tests.recordings.configure import write_properties
from tests.rig.chain import Chain
from tests.rig.connectors import Format
from tests.workloads.crew import Pace

_BEGIN_SECONDS = 180.0


def first_publication(spark: SparkSession, lake: Path) -> None:
    """Wait until there is a publication.

    Raises:
        TimeoutError: There is none.
    """
    deadline = time.monotonic() + _BEGIN_SECONDS
    while time.monotonic() < deadline:
        with suppress(LakeingestError):
            if open_lake(spark, str(lake)).history().count():
                return
        time.sleep(1.0)
    message = f"nothing was published in {_BEGIN_SECONDS:.0f} s"
    raise TimeoutError(message)


def print_latency(spark: SparkSession, lake: Path, warm_at: float, over_at: float) -> None:
    """Print how long the transactions committed between two moments (epoch seconds) took."""
    opened = open_lake(spark, str(lake))
    waits = (
        opened.transactions()
        .join(opened.history().select("batch", "published_at"), "batch")
        .where(F.unix_millis("committed_at").between(int(warm_at * 1000), int(over_at * 1000)))
        .withColumn(
            "seconds", (F.unix_millis("published_at") - F.unix_millis("committed_at")) / 1000
        )
    )
    row = waits.agg(
        F.count("*"),
        F.count_distinct("batch"),
        F.percentile("seconds", F.lit(0.5)),
        F.percentile("seconds", F.lit(0.95)),
        F.percentile("seconds", F.lit(0.99)),
        F.max("seconds"),
    ).first()
    assert row is not None
    number, batches, half, most, nearly_all, worst = row
    rate = number / (over_at - warm_at)
    print(f"{number:,} transactions in {batches} publications, {rate:.0f} a second")
    print(
        f"commit to published: p50 {half:.2f} s, p95 {most:.2f} s, p99 {nearly_all:.2f} s, "
        f"max {worst:.2f} s",
        flush=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Bring up the chain, let the workload run, and measure."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.latency")
    parser.add_argument("--database", choices=("postgresql", "mariadb"), default="postgresql")
    parser.add_argument("--workload", choices=("bank", "shop"), default="bank")
    parser.add_argument("--format", type=Format, choices=list(Format), default=Format.JSON)
    parser.add_argument("--per-second", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--warm-up", type=float, default=60.0)
    parser.add_argument("--interval", type=float, default=0.0, help="min sync interval, seconds")
    options = parser.parse_args(arguments)
    spark = session("lakeingest benchmark")
    with tempfile.TemporaryDirectory(prefix="lakeingest-latency-") as name:
        folder = Path(name)
        lake = folder / "lake"
        with Chain(
            folder / "rig",
            postgres=options.database == "postgresql",
            mariadb=options.database == "mariadb",
            registry=options.format is Format.AVRO,
        ) as chain:
            pace = Pace(per_second=options.per_second)
            stage = Stage(chain, Play(options.workload, options.database, pace=pace), folder)
            run = stage.run(options.format)
            run.capture(chain)
            stage.workload.start()
            properties = write_properties(
                folder / "pipeline.properties", run.configuration(chain, lake)
            )
            ingest = Ingest(properties, folder, options.interval)
            ingest.start()
            first_publication(spark, lake)
            time.sleep(options.warm_up)
            warm_at = time.time()
            # Nothing is asked of the lake meanwhile: the reader would take the cores.
            time.sleep(options.seconds)
            over_at = time.time()
            time.sleep(30.0)
            stage.workload.stop()
            ingest.stop()
            print_latency(spark, lake, warm_at, over_at)
            print(*ingest.violations, sep="\n")
    return 1 if ingest.violations else 0


if __name__ == "__main__":
    sys.exit(main())
