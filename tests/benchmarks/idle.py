"""What one run costs as a lake grows old: 100 tables, of which 95 are idle.

``python -m tests.benchmarks.idle FOLDER`` prints seconds and new files per run at 10, 1,000 and
50,000 earlier runs. The earlier runs are not run: their rows are written to the ledger in one
commit, and the logs of ledger and active tables are renumbered behind a checkpoint, with as many
older entries beside it as a run every minute leaves within the log's retention.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakeingest.engine.delta.log import java_log, newest_snapshot
from lakeingest.folders import LEDGER_FOLDER
from lakeingest.frame_schemas import LEDGER
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.session import session
from tests.logs.written import PIPELINE, WrittenLog, change

TABLES, ACTIVE, RUNS = 100, 5, 5
AGES = (10, 1_000, 50_000)
_DAY = 1_440
"""Runs a day: one each minute."""


def name(number: int) -> str:
    """Return a table's name."""
    return f"t{number:03}"


def commit(log: WrittenLog, lsn: int, tables: int) -> None:
    """Write a transaction that changes one row in each of so many tables."""
    log.transaction(f"{lsn}:{lsn}", *(change(name(number), lsn) for number in range(tables)))


def aged(log: Path, version: int, entries: int) -> None:
    """Renumber a table's log so that its newest commit is ``version``, behind a checkpoint.

    Args:
        log: The table's ``_delta_log``, with a checkpoint of its newest version.
        version: The newest version's number from now on.
        entries: Older entries that retention has left.
    """
    old = max(log.glob("*.checkpoint.parquet")).name.split(".")[0]
    for kind in (".checkpoint.parquet", ".json", ".crc"):
        (log / f"{old}{kind}").rename(log / f"{version:020d}{kind}")
    (log / "_last_checkpoint").write_text(json.dumps({"version": version, "size": 1}), "utf-8")
    for path in log.iterdir():
        # Hadoop's own checksums, of files that have another name now, start with a dot.
        is_older = path.name[:20].isdigit() and int(path.name[:20]) < version
        if is_older or path.name.startswith("."):
            path.unlink()
    for earlier in range(max(1, version - entries), version):
        os.link(log / f"{version:020d}.json", log / f"{earlier:020d}.json")


def checkpoint(spark: SparkSession, path: Path) -> None:
    """Write a checkpoint of a table's newest version."""
    jvm, log = java_log(spark, str(path))
    log.checkpoint(newest_snapshot(spark, str(path)), jvm.scala.Option.empty())


def grow_old(spark: SparkSession, lake: Path, runs: int) -> None:
    """Give a lake the ledger and the logs of so many earlier runs."""
    path = str(lake / LEDGER_FOLDER)
    ledger = DeltaLedger(spark, path, PIPELINE, "earlier")
    head = ledger.claim(ledger.head())
    columns = {
        "kind": F.lit("publication"),
        "batch": F.col("id") + F.lit(head.batch + 1),
        "token": F.lit(head.token),
        "run": F.lit("earlier"),
        "at": F.current_timestamp(),
        "tables": F.map_from_arrays(
            F.array(*map(F.lit, head.tables)), F.array(*map(F.lit, head.tables.values()))
        ),
    }
    rows = [
        columns.get(item.name, F.lit(None)).cast(item.dataType).alias(item.name) for item in LEDGER
    ]
    spark.range(0, runs, 1, 1).select(*rows).write.format("delta").mode("append").save(path)
    batch = head.batch + runs
    active = {f"public.{name(number)}": batch for number in range(ACTIVE)}
    for table, version in active.items():
        checkpoint(spark, lake / table)
        aged(lake / table / "_delta_log", version, 30 * _DAY)
    tables, token = {**head.tables, **active}, head.token + 10 + 2 * batch
    publication = replace(head, batch=batch, run="earlier", token=token, tables=tables)
    ledger.publish_alone(publication)
    ledger.release(publication)
    checkpoint(spark, Path(path))
    aged(Path(path) / "_delta_log", 3 * batch, 2 * 3 * _DAY)


def files(lake: Path) -> set[str]:
    """Return the files of a lake."""
    return {
        str(path)
        for path in lake.rglob("*")
        if path.is_file() and path.suffix != ".crc" and not path.name.startswith(".")
    }


def measured(spark: SparkSession, log: WrittenLog, lake: Path, lsn: int) -> dict[str, float]:
    """Run over new changes of the active tables, several times, and once over nothing."""
    took, grown = [], []
    for run in range(RUNS + 1):
        commit(log, lsn + run, ACTIVE)
        before, began = files(lake), time.monotonic()
        log.ingest(spark, lake)
        took.append(time.monotonic() - began)
        grown.append(len(files(lake) - before))
    began = time.monotonic()
    log.ingest(spark, lake)
    return {
        "seconds": round(statistics.median(took[1:]), 2),
        "slowest": round(max(took[1:]), 2),
        "files": statistics.median(grown[1:]),
        "seconds_nothing_new": round(time.monotonic() - began, 2),
    }


def main(folder: Path, ages: tuple[int, ...] = AGES) -> None:
    """Measure and print a line of JSON for each age."""
    for age in ages:
        # Delta remembers logs by their paths; each age has its own lake and session.
        spark = session(f"idle {age}", master="local[2]")
        log, lake = WrittenLog(folder / f"log-{age}", "postgresql"), folder / f"lake-{age}"
        commit(log, 100, TABLES)
        log.ingest(spark, lake)
        if age:
            grow_old(spark, lake, age)
            jvm: Any = spark._jvm
            jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        print(json.dumps({"earlier_runs": age, **measured(spark, log, lake, 200)}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), tuple(map(int, sys.argv[2:])) or AGES)
