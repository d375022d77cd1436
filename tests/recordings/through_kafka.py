"""A recorded run through a real broker while ``lakeingest run --continuous`` reads it.

``python -m tests.recordings.through_kafka RUN_FOLDER --order transaction-first``

Topics carry no order between one another, so the two extreme orders bound all that can happen: the
transaction topic before every row (each transaction is announced long before it is there) and after
every row (nothing can be released until the very end). Every publication must show a commit all the
same, and the final tables must be the database's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from pyspark.sql import SparkSession

from lakeingest.errors import LakeingestError
from lakeingest.reader import open_lake
from lakeingest.session import session
from tests.faults.killed import Writer, continuous
from tests.recordings.check import History, check_history, check_tables
from tests.recordings.compare import Comparison
from tests.recordings.configure import RecordedRun, recorded_run, run_folder, write_properties
from tests.recordings.rust import RustLake
from tests.rig.kafka import KafkaBroker
from tests.rig.replay import Order, replay

PATIENCE_SECONDS = 900.0


@dataclass(frozen=True)
class Passage:
    """What came out of one run through the broker."""

    tables: tuple[Comparison, ...]
    history: History
    exit_code: int | None
    seconds: float


def through_kafka(
    spark: SparkSession, run: RecordedRun, broker: KafkaBroker, folder: Path, order: Order
) -> Passage:
    """Replay ``run`` in ``order`` while a continuous run reads; stop it when all is published.

    Raises:
        AssertionError: The run ended by itself, or did not get to the end.
    """
    lake = folder / "lake"
    settings = {
        **run.configuration(lake),
        "lakeingest.source.kind": "kafka",
        "bootstrap.servers": broker.bootstrap,
        "lakeingest.batch.max.events": "5000",
    }
    del settings["lakeingest.source.path"]
    configuration = write_properties(folder / "kafka.properties", settings)
    began = time.monotonic()
    chunk = max(500, _records(run) // 20)
    sender = Thread(
        target=replay,
        args=(run.events, broker.bootstrap),
        # Pauses, so that the reader starts in the middle and sees many states.
        kwargs={"order": order, "chunk": chunk, "pause_seconds": 2.0},
        daemon=True,
    )
    sender.start()
    _wait_until_created(broker, f"{run.prefix}.transaction")
    writer = Writer(configuration, folder / "run.log", command=continuous(1))
    try:
        _wait_until_published(spark, lake, _last_end(run), writer)
        writer.interrupt()
        code = writer.wait(90)
    finally:
        writer.kill()
    seconds = time.monotonic() - began
    history = check_history(run, RustLake(lake, run.namespace))
    return Passage(check_tables(run, configuration), history, code, seconds)


def _records(run: RecordedRun) -> int:
    return sum(int(topic["records"]) for topic in run.manifest["topics"].values())


def _wait_until_created(broker: KafkaBroker, topic: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while topic not in broker.admin().list_topics(timeout=10).topics:
        assert time.monotonic() < deadline, f"{topic} was not created"
        time.sleep(0.2)


def _last_end(run: RecordedRun) -> int:
    """Offset of the last record of the transaction topic."""
    topic = run.manifest["topics"][f"{run.prefix}.transaction"]
    return int(topic["partitions"]["0"]["last"])


def _wait_until_published(spark: SparkSession, lake: Path, end: int, writer: Writer) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        assert writer.wait(1) is None, f"the run ended by itself:\n{writer.said()}"
        try:
            newest = open_lake(spark, str(lake)).history().first()
        except LakeingestError:
            continue
        if newest is not None and newest["end_offset"] >= end:
            return
    message = f"not everything was published in {PATIENCE_SECONDS} s:\n{writer.said()}"
    raise AssertionError(message)


def main() -> int:
    """Run the check from the command line; return 1 when anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.recordings.through_kafka")
    parser.add_argument("run", type=run_folder, help="folder of a recorded run")
    parser.add_argument("--order", type=Order, choices=list(Order), default=None)
    options = parser.parse_args()
    orders = [options.order] if options.order else [Order.TRANSACTION_FIRST, Order.TRANSACTION_LAST]
    spark = session("lakeingest tests", cores=2)
    bad = 0
    for order in orders:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with KafkaBroker(folder / "broker") as broker:
                passage = through_kafka(spark, recorded_run(options.run), broker, folder, order)
        differing = [table.table for table in passage.tables if table.differences]
        violations = passage.history.violations
        bad += bool(differing or violations)
        print(
            f"{order.value}: {passage.history.publications} publications, "
            f"{len(violations)} violations, {len(passage.tables)} tables, "
            f"{len(differing)} differ {differing}, exit {passage.exit_code}, "
            f"{passage.seconds:.0f} s"
        )
        for violation in violations[:10]:
            print(f"VIOLATION {violation}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
