"""``python -m tests.live WORKLOAD``: one workload through the whole chain, compared at its end.

    python -m tests.live bank [--database postgresql|mariadb] [--format json --format avro]…
    python -m tests.live shop --database mariadb --transactions 1500

The workload runs before, while and after the connectors take their initial snapshots. The first
format is ingested while it runs, the others afterwards; all must end with the database's tables,
and every publication must show one of its commits. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from lakeingest.reader import open_lake
from lakeingest.session import session
from tests.faults.killed import RUN_COMMAND
from tests.live.ingest import Ingest
from tests.live.run import LiveRun
from tests.live.stage import WORKLOADS, Play, Stage
from tests.live.watch import LiveWatcher
from tests.recordings.check import check_history, check_tables
from tests.recordings.configure import write_properties
from tests.rig.chain import Chain
from tests.rig.connectors import Format
from tests.rig.debian import DebianPackageError
from tests.workloads.crew import Pace
from tests.workloads.shop import Schedule

PATIENCE_SECONDS = 600.0
INTERRUPTED = 130
"""Exit code of a run that was stopped by a person."""

BATCH = "5000"
"""Events per batch: several publications even of a short run."""


class Ingested:
    """A lake that one format's records are ingested into, and the reader that watches it."""

    def __init__(
        self,
        spark: SparkSession,
        stage: Stage,
        run: LiveRun,
        interval: float,
        usual: Sequence[str] = RUN_COMMAND,
    ) -> None:
        self.run = run
        self.lake = stage.folder / f"lake-{run.form}"
        properties = run.configuration(stage.chain, self.lake, batch_max_events=BATCH)
        name = f"{run.connector}.properties"
        self.configuration = write_properties(stage.folder / name, properties)
        logs = stage.folder / f"logs-{run.form}"
        logs.mkdir()
        self.ingest = Ingest(self.configuration, logs, interval, usual)
        self.watcher = LiveWatcher(spark, run, stage.oracle, self.lake)
        self.watcher.start()
        self.ingest.start()

    def finish(self, commit: int) -> list[str]:
        """Wait until ``commit`` is published, stop, and return what was wrong."""
        wrong = []
        if not self.watcher.wait_until_shown(commit, PATIENCE_SECONDS, self.ingest.is_alive):
            said = self.ingest.writer.said()
            wrong.append(f"shows commit {self.watcher.shown}, not {commit}: {said}")
        self.watcher.stop()
        code = self.ingest.stop()
        if code != INTERRUPTED:
            wrong.append(f"an interrupted run ended with {code}: {self.ingest.writer.said()}")
        return [*wrong, *self.watcher.violations, *self.ingest.violations]


def judged(spark: SparkSession, run: LiveRun, ingested: Ingested) -> list[str]:
    """Compare every publication and all tables with the database's own account."""
    history = check_history(run, open_lake(spark, str(ingested.lake)))
    tables = check_tables(run, ingested.configuration)
    place = history.place.last if history.place else None
    wrong = list(history.violations)
    wrong += [f"{table.table}: {said}" for table in tables for said in table.differences]
    if place != history.of:
        wrong.append(f"the newest publication shows commit {place} of {history.of}")
    equal = sum(not table.differences for table in tables)
    print(
        f"{run.name} {run.source.family} {run.form}: {history.publications} publications, "
        f"{ingested.watcher.checks} checks meanwhile, commit {place} of {history.of}, "
        f"{equal} of {len(tables)} tables equal, {sum(table.rows for table in tables)} rows, "
        f"{len(wrong)} violations",
        flush=True,
    )
    return wrong


def end_to_end(
    spark: SparkSession, chain: Chain, play: Play, formats: Sequence[Format], folder: Path
) -> list[str]:
    """Play on a database, ingest it in every format, and return what was wrong."""
    stage = Stage(chain, play, folder)
    runs = [stage.run(written) for written in formats]
    stage.workload.start()
    for run in runs:
        run.capture(chain)
    done: list[Ingested] = []
    wrong: list[str] = []
    with stage.step("workload, once captured"):
        done.append(Ingested(spark, stage, runs[0], interval=1.0))
        counts = stage.workload.finish(PATIENCE_SECONDS)
    print(counts.as_json(), flush=True)
    wrong += stage.workload.violations()
    stage.oracle.follow()
    last = len(stage.oracle.states) - 1
    with stage.step(f"last commit published, {runs[0].form}"):
        wrong += done[0].finish(last)
    for run in runs[1:]:
        with stage.step(f"ingest all of it, {run.form}"):
            done.append(Ingested(spark, stage, run, interval=1.0))
            wrong += done[-1].finish(last)
    with stage.step("end oracle"):
        stage.oracle.end()
    for run, ingested in zip(runs, done, strict=True):
        with stage.step(f"compare, {run.form}"):
            wrong += judged(spark, run, ingested)
    stage.print_seconds()
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; return 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.live")
    parser.add_argument("workload", choices=WORKLOADS)
    parser.add_argument("--database", choices=("postgresql", "mariadb"), default="postgresql")
    parser.add_argument("--format", type=Format, choices=list(Format), action="append")
    parser.add_argument("--transactions", type=int, default=2_000)
    parser.add_argument("--per-second", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    formats: list[Format] = options.format or [Format.JSON, Format.AVRO]
    number: int = options.transactions
    play = Play(
        options.workload,
        options.database,
        options.seed,
        Pace(per_second=options.per_second, transactions=number),
        Schedule(
            giant_every=number // 5,
            giant_rows=3_000,
            alter_at=number * 6 // 10,
            signal_every=number // 4,
            # PostgreSQL shows a TRUNCATE to older snapshots, too: what Debezium's initial snapshot
            # then reads was the state of no commit.
            truncate_from=number // 2,
        ),
    )
    spark = session("lakeingest tests", cores=2)
    with tempfile.TemporaryDirectory(prefix="lakeingest-live-") as name:
        folder = Path(name)
        chain = Chain(
            folder / "rig",
            postgres=options.database == "postgresql",
            mariadb=options.database == "mariadb",
            registry=Format.AVRO in formats,
        )
        try:
            with chain:
                wrong = end_to_end(spark, chain, play, formats, folder)
        except DebianPackageError as error:
            print(error, file=sys.stderr)
            return 69
    for line in wrong[:20]:
        print(f"VIOLATION {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
