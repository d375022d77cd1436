"""A lake that is fed by a live run, with the reader that watches it, and the judgement on both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.faults.killed import INTERRUPTED, RUN_COMMAND
from tests.live.ingest import Ingest
from tests.live.run import LiveRun
from tests.live.stage import Stage
from tests.live.watch import LiveWatcher
from tests.recordings.check import check_history, check_tables
from tests.recordings.configure import write_properties
from tests.recordings.log_lake import LogLake
from tests.recordings.rust import RustLake

PATIENCE_SECONDS = 600.0
BATCH = "5000"
"""Events per batch: several publications even of a short run."""

PER_TRANSACTION = {"lakeingest.commit.mode": "per-transaction"}
"""Setting with which each publication must show the next commit."""


class Ingested:
    """A lake that one format's records are ingested into, and the reader that watches it."""

    def __init__(
        self,
        stage: Stage,
        run: LiveRun,
        interval: float,
        usual: Sequence[str] = RUN_COMMAND,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.run = run
        self.each = PER_TRANSACTION.items() <= (settings or {}).items()
        self.lake = stage.folder / f"lake-{run.form}"
        own = run.configuration(stage.chain, self.lake, batch_max_events=BATCH)
        properties = {**own, **(settings or {})}
        name = f"{run.connector}.properties"
        self.configuration = write_properties(stage.folder / name, properties)
        logs = stage.folder / f"logs-{run.form}"
        logs.mkdir()
        self.ingest = Ingest(self.configuration, logs, interval, usual)
        self.watcher = LiveWatcher(run, stage.oracle, self.lake)
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


def judged(run: LiveRun, ingested: Ingested) -> list[str]:
    """Compare every publication and all tables with the database's own account."""
    reader = LogLake if ingested.each else RustLake
    most = 1 if ingested.each else None
    history = check_history(run, reader(ingested.lake, run.namespace), most)
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
