"""Maintain tables between two windows of a run, each in its turn.

The number of the publication says whose turn it is, so the turns go on in the next run, and a run
that is killed leaves nothing behind that another one must know of. The run owns the lake: it
publishes the tables' new versions at once.

A table that only grows gets a file with each batch. Where many tables have their turns, it does not
wait for its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from lakeingest.apply.lake import LakeState, with_tables
from lakeingest.apply.maintenance.keeper import Keeper, open_keeper
from lakeingest.config.model import PipelineConfig
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.sink.contract import Sink


def turns_of(before: int, batch: int, every: int, tables: Iterable[str]) -> list[str]:
    """Return the tables whose turn has come.

    Args:
        before: Number of the newest publication when the question was asked last.
        batch: Number of the newest publication now; a window may hold the batches of many turns.
        every: Publications from one turn to the next.
        tables: The published tables.
    """
    names = sorted(tables)
    turns = range(before // every + 1, batch // every + 1)
    # More turns than tables are turns of every table.
    return sorted({names[turn % len(names)] for turn in turns[-len(names) :]}) if names else []


@dataclass(frozen=True)
class Turns:
    """The share of maintenance that a run does.

    Attributes:
        keeper: Maintains the tables.
        ledger: Stores the publications.
        run: Identifier of the run.
        every: Batches from one turn to the next.
    """

    keeper: Keeper
    ledger: DeltaLedger
    run: str
    every: int

    def after(self, before: LakeState, state: LakeState, batches: int) -> LakeState:
        """Maintain the tables whose turn has come with the newest publications, and crowded ones.

        Args:
            before: The lake before the window.
            state: The lake after it; every commit of this run is published.
            batches: Number of the window's batches. Where each has several publications, a turn
                comes after as many times more.

        Returns:
            The lake now.
        """
        head = state.head
        publications = (head.batch - before.head.batch) // max(1, batches)
        every = self.every * max(1, publications)
        in_turn = turns_of(before.head.batch, head.batch, every, head.tables)
        if not in_turn or not state.ours or state.through is not None:
            return state
        # Of the tables that the run has read: only these get files, and idle ones cost nothing.
        written = head.tables.keys() & state.tables.keys()
        names = sorted({*in_turn, *filter(self.keeper.sink.is_crowded, written)})
        state = with_tables(state, self.keeper.sink, names)
        tidied = self.keeper.tidy(state.tables[name] for name in names)
        state = replace(state, tables={**state.tables, **tidied})
        versions = self.keeper.publishable(replace(state, tables=tidied))
        if versions:
            state = self.keeper.publish(self.ledger, state, versions, self.run)
        self.keeper.expire(tidied)
        return state


def open_turns(
    spark: SparkSession, config: PipelineConfig, sink: Sink, ledger: DeltaLedger, run: str
) -> Turns | None:
    """Return a run's share of maintenance; None: the configuration gives it none.

    Args:
        spark: Session of the run.
        config: The pipeline.
        sink: Of the pipeline.
        ledger: Of the pipeline.
        run: Identifier of the run.
    """
    every = config.maintenance.batches
    return None if every is None else Turns(open_keeper(spark, config, sink), ledger, run, every)
