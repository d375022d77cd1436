"""The steps of maintenance, for the command (``maintain.py``) and for a run (``turn.py``).

First each table is tidied: tombstones and values of deleted rows go, small files are joined. Then
old publications expire: the ledger announces which ones stay, and only then the files go that no
kept publication needs. Every step may be repeated, so after a kill the next maintenance does all of
them again.

A publication is not kept, either, of which a table may have lost files before: Delta guarantees
older versions only for the time that a table's properties say. A longer retention takes effect from
its first maintenance on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

from pyspark.sql import SparkSession

from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.lake import LakeState
from lakeingest.apply.next_publication import next_publication
from lakeingest.config.model import PipelineConfig
from lakeingest.errors import FencedError, TransientError
from lakeingest.folders import LakeFolders
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.retention import LedgerRetention, Retention
from lakeingest.sink.contract import Sink, TableState, Upkeep


@dataclass(frozen=True)
class Keeper:
    """Maintains the tables of one lake.

    Attributes:
        sink: The tables.
        folders: Their folders.
        ledger: The publications.
        retention: For how long a publication stays readable after the next one has followed.
        tombstones: For how long tombstones and transactions stay, because the connector may send
            old events again; None: for ever.
        erases_values: Whether deleted rows lose their values.
    """

    sink: Sink
    folders: LakeFolders
    ledger: LedgerRetention
    retention: timedelta
    tombstones: timedelta | None
    erases_values: bool

    def tidy(self, states: Iterable[TableState]) -> dict[str, TableState]:
        """Tidy tables one after another; return the states of those that were tidied.

        A table that a run keeps writing is left. Not in parallel: each of Delta's commands uses all
        cores by itself.
        """
        ledger_retention = self._kept_since(())
        oldest = self.ledger.oldest_versions(ledger_retention.first)
        tidied = {}
        for state in states:
            name = state.note.collection
            upkeep = Upkeep(
                oldest=oldest.get(name, state.version),
                keeps=self.retention,
                tombstones_below=ledger_retention.position,
                erases_values=self.erases_values,
            )
            try:
                tidied[name] = self.sink.tidy(state, upkeep)
            except FencedError:
                raise
            except TransientError:
                continue
            failpoint("5.first-table-tidied")
        failpoint("5.tidied")
        return tidied

    def publishable(self, state: LakeState) -> dict[str, int]:
        """Return the versions of published tables that hold what is published, in better files.

        Neither the number of a table's batch nor its END shows everything that a killed run wrote:
        a snapshot has no END, and a command may have published its number since.

        Args:
            state: The lake, with the present states of tables.
        """
        published = state.head.tables
        newer = {
            name: table.version
            for name, table in state.tables.items()
            if table.version > published.get(name, table.version)
        }
        return {
            name: version
            for name, version in newer.items()
            if not self.sink.commits(name, published[name])
        }

    def publish(
        self, ledger: DeltaLedger, state: LakeState, versions: Mapping[str, int], run: str
    ) -> LakeState:
        """Publish tables in the versions that they were tidied to; return the lake after that.

        Args:
            ledger: The ledger, which ``run`` has claimed.
            state: The lake, with the tables' present states.
            versions: Collection to the version of its table.
            run: Identifier of the run.

        Raises:
            FencedError: Another driver has claimed the ledger.
        """
        tables = {**state.head.tables, **versions}
        # A table may have moved: the versions are of the folders that the sink has.
        paths = state.paths(tables, self.folders)
        publication = replace(next_publication(state.head, run), tables=tables, paths=paths)
        failpoint("5.before-publication")
        ledger.publish_alone(publication)
        failpoint("5.after-publication")
        return state.published(publication, {})

    def expire(self, names: Iterable[str], is_free: Callable[[str], bool] = lambda _: True) -> int:
        """Remove what only publications need that are not kept.

        The ledger must have an entry that is younger than a day: its log forgets older commits, and
        the head with them, if only maintenance commits to it.

        Args:
            names: Tables whose files may be removed.
            is_free: Whether a table may be maintained now; asked right before its files are
                removed.

        Returns:
            Number of the first publication that is kept.
        """
        kept_since = {name: self.sink.kept_since(name) for name in names}
        ledger_retention = self._kept_since(kept_since.values())
        if not ledger_retention.announced:
            self.ledger.announce(ledger_retention.first)
        failpoint("5.announced")
        oldest = self.ledger.oldest_versions(ledger_retention.first)
        # A table that was retired meanwhile may be in no kept publication.
        for name in filter(is_free, [name for name in kept_since if name in oldest]):
            self.sink.expire(name, oldest[name], self.retention)
            failpoint("5.first-table-expired")
        self.ledger.expire(ledger_retention.first, ledger_retention.batch)
        failpoint("5.expired")
        return ledger_retention.first

    def _kept_since(self, times: Iterable[datetime]) -> Retention:
        """Return what is kept, given since when tables have kept what their versions need."""
        now = datetime.now(timezone.utc)
        sent = None if self.tombstones is None else now - self.tombstones
        return self.ledger.since(max([now - self.retention, *times]), sent)


def open_keeper(spark: SparkSession, config: PipelineConfig, sink: Sink) -> Keeper:
    """Return the keeper that a pipeline's configuration describes.

    Args:
        spark: Session with Delta, and with Hudi if there are Hudi tables.
        config: The pipeline.
        sink: Its tables.
    """
    settings = config.maintenance
    hours = settings.tombstone_hours
    return Keeper(
        sink=sink,
        folders=config.folders,
        ledger=LedgerRetention(spark, config.folders.ledger, config.name),
        retention=timedelta(hours=settings.ledger_hours),
        tombstones=None if hours is None else timedelta(hours=hours),
        erases_values=settings.deleted_values == "null",
    )
