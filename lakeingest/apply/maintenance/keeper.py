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

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pyspark.sql import SparkSession

from lakeingest.apply.failpoints import failpoint
from lakeingest.config.model import PipelineConfig
from lakeingest.ledger.retention import LedgerRetention
from lakeingest.sink.contract import Sink, TableState, Upkeep


@dataclass(frozen=True)
class Keeper:
    """Maintains the tables of one lake.

    Attributes:
        sink: The tables.
        ledger: The publications.
        retention: For how long a publication stays readable after the next one has followed.
        tombstones: For how long a tombstone stays; None: for ever.
        erases_values: Whether deleted rows lose their values.
    """

    sink: Sink
    ledger: LedgerRetention
    retention: timedelta
    tombstones: timedelta | None
    erases_values: bool

    def tidy(self, states: Sequence[TableState]) -> list[TableState]:
        """Tidy tables one after another; return their states after that.

        Not in parallel: each of Delta's commands uses all cores by itself.
        """
        below = ""
        if self.tombstones is not None:
            below = self.ledger.position_at(datetime.now(timezone.utc) - self.tombstones)
        upkeep = Upkeep(tombstones_below=below, erases_values=self.erases_values)
        tidied = []
        for state in states:
            # Here, because it may commit: the publication that follows names the commit's version.
            self.sink.keep_for(state.note.collection, self.retention)
            tidied.append(self.sink.tidy(state, upkeep))
            failpoint("5.first-table-tidied")
        failpoint("5.tidied")
        return tidied

    def expire(self, names: Sequence[str]) -> int:
        """Remove what only publications need that are not kept.

        Args:
            names: Tables of the newest publication whose files may be removed.

        Returns:
            Number of the first publication that is kept.
        """
        since = datetime.now(timezone.utc) - self.retention
        kept_since = [self.sink.keep_for(name, self.retention) for name in names]
        first = self.ledger.kept_from(max([since, *kept_since]))
        self.ledger.announce(first)
        failpoint("5.announced")
        oldest = self.ledger.oldest_versions(first)
        for name in names:
            self.sink.expire(name, oldest[name], self.retention)
            failpoint("5.first-table-expired")
        self.ledger.expire(first)
        failpoint("5.expired")
        return first


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
        ledger=LedgerRetention(spark, config.folders.ledger, config.name),
        retention=timedelta(hours=settings.ledger_hours),
        tombstones=None if hours is None else timedelta(hours=hours),
        erases_values=settings.deleted_values == "null",
    )
