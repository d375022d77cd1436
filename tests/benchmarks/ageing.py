"""``python -m tests.benchmarks.ageing FOLDER``: what a batch costs as a lake gets many of them.

A continuous pipeline publishes small batches into one lake and maintains its tables in their turns.
For each hundred batches a line of JSON says what the median batch took, how many data files the
tables have and how large their logs and the ledger are. At the end every kept snapshot is read.
Run with ``--maintain 0`` to see what maintenance saves.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

import lakeingest
from lakeingest.apply.run import run_pipeline
from lakeingest.apply.summary import BatchSummary
from lakeingest.config import PipelineConfig
from lakeingest.folders import LEDGER_FOLDER
from lakeingest.session import session
from tests.benchmarks.contestant import cut
from tests.benchmarks.effort import cores_used
from tests.benchmarks.generate import generate
from tests.benchmarks.ours import configuration
from tests.benchmarks.target import Target
from tests.benchmarks.workload import EVENTS_PER_TRANSACTION, TABLES, EventFolder, Shape


@dataclass
class Ages:
    """Prints a line for each hundred batches."""

    spark: SparkSession
    lake: Path
    _last: float = field(default_factory=time.perf_counter)
    _cores: float = field(default_factory=cores_used)
    _seconds: list[float] = field(default_factory=list)

    def add(self, batch: BatchSummary) -> None:
        """Count a publication; what maintenance took is in the time of the next one."""
        now = time.perf_counter()
        self._seconds.append(now - self._last)
        self._last = now
        if len(self._seconds) == 100:
            cores = cores_used()
            line = {
                "batch": batch.batch,
                "median_seconds": round(median(self._seconds), 3),
                "all_seconds": round(sum(self._seconds), 1),
                "core_seconds": round(cores - self._cores, 1),
                **sizes(self.spark, self.lake),
            }
            print(json.dumps(line), flush=True)
            self._seconds, self._cores = [], cores
            self._last = time.perf_counter()


def sizes(spark: SparkSession, lake: Path) -> dict[str, float]:
    """Return the number of data files that readers read, and MB of logs and ledger."""
    snapshot = lakeingest.open(spark, str(lake)).snapshot()
    ledger = lake / LEDGER_FOLDER
    logs = [path for path in lake.glob("*/_delta_log/*") if ledger not in path.parents]
    return {
        "files_read": sum(len(snapshot.table(name).inputFiles()) for name in snapshot.tables()),
        "files_there": len(list(lake.glob("public.*/*.parquet"))),
        "logs_mb": megabytes(logs),
        "ledger_mb": megabytes(ledger.rglob("*")),
        "ledger_files": len(list(ledger.glob("*.parquet"))),
    }


def megabytes(paths: Iterable[Path]) -> float:
    """Return the size of the files among ``paths``."""
    return round(sum(path.stat().st_size for path in paths if path.is_file()) / 1e6, 2)


def pipeline(given: PipelineConfig, maintain: int, events: int) -> PipelineConfig:
    """Return the pipeline, with a window as small as a continuous run's and its maintenance."""
    maintenance = given.maintenance.model_copy(update={"batches": maintain or None})
    return given.model_copy(update={"maintenance": maintenance, "window_max_records": 4 * events})


def main() -> None:
    """Run the benchmark as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ageing", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--batches", type=int, default=2_000)
    parser.add_argument("--events", type=int, default=400, help="data events per batch")
    parser.add_argument("--accounts", type=int, default=Shape.accounts)
    parser.add_argument("--maintain", type=int, default=100, help="0: not at all")
    chosen = parser.parse_args()
    spark = session()
    log, lake = EventFolder(chosen.folder / "log"), chosen.folder / "lake"
    transactions = chosen.batches * chosen.events // EVENTS_PER_TRANSACTION
    generate(spark, log, Shape(transactions, accounts=chosen.accounts))
    stream = cut(spark, log, transactions, chosen.events)
    run_pipeline(
        spark,
        pipeline(configuration(stream, lake, Target.DELTA), chosen.maintain, chosen.events),
        source=stream.own_source,
        on_batch=Ages(spark, lake).add,
    )
    snapshots = lakeingest.open(spark, str(lake)).snapshots()
    # Each file of each table, by its first column alone.
    read = [
        snapshot.table(table.collection).select(table.key[0])
        for snapshot in snapshots[::50]
        for table in TABLES
    ]
    print(json.dumps({"kept": len(snapshots), "read": sum(f.count() for f in read)}))


if __name__ == "__main__":
    main()
