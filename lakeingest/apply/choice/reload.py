"""Begin to load tables anew, or go on with what they had: one publication (``table_choice.py``).

The rows are loaded by the next run, because a run can do all that it takes: it reads, checks,
writes and publishes them, and another run goes on where one was killed. Rejected: to load them by
the command itself, beside the pipeline. It would have to end at a commit that moves on.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from lakeingest.apply.as_published import as_published
from lakeingest.apply.choice.reloading import (
    NEW_LAKE,
    refuse_replacing,
    refuse_source,
    with_reloads,
    with_reloads_undone,
)
from lakeingest.apply.choice.table_choice import TableChoice
from lakeingest.apply.choice.unnamed_rows import refuse_unnamed_rows
from lakeingest.apply.factory import open_ledger, open_sink, refuse_unfenced, storage_of
from lakeingest.apply.lake import LakeState
from lakeingest.apply.run_session import run_session
from lakeingest.apply.window.offset_ranges import plan_all_ranges
from lakeingest.config.model import PipelineConfig
from lakeingest.engine.hudi.table import is_hudi_table
from lakeingest.engine.storage_errors import storage
from lakeingest.errors import UsageError
from lakeingest.folders import LakeFolders
from lakeingest.ledger.publication import Publication
from lakeingest.sink.contract import Sink, TableState
from lakeingest.source import open_source


@dataclass(frozen=True)
class Reloading:
    """Result of ``reload_tables``.

    Attributes:
        batch: Number of the publication that records it.
        tables: The tables.
        records: Records of their topics that the next run reads; None: the reload was undone.
    """

    batch: int
    tables: tuple[str, ...]
    records: int | None = None


def reload_tables(
    spark: SparkSession, config: PipelineConfig, tables: Sequence[str], *, undo: bool = False
) -> Reloading:
    """Publish that the next run loads tables anew from the beginning of their topics.

    Their columns, key, partitioning, format and deletes are then those of the configuration.
    Readers see the earlier load until a publication has every row again; older publications always
    show it.

    Args:
        spark: Session with Delta, and with Hudi if there are Hudi tables.
        config: The pipeline.
        tables: The tables, as the source names them.
        undo: Go on with the earlier load of tables whose new one is not published yet.

    Raises:
        UsageError: A table does not exist or cannot be loaded anew; see ``refuse_reloading``.
        TransientError: Another run is at work.
        DataError: A topic no longer begins with its first record.
        LakeingestError: Lake or source cannot be read, or do not fit the configuration.
    """
    own = run_session(spark)
    names = tuple(dict.fromkeys(tables))
    run = uuid.uuid4().hex
    with storage(*storage_of(config)):
        refuse_unfenced(own, config)
        ledger = open_ledger(own, config, run)
        head = ledger.head()
        following: Callable[[Publication], Publication] = (
            partial(with_reloads_undone, names=names, run=run)
            if undo
            else partial(with_reloads, names=names, topics=config.source.names, run=run)
        )
        # Refuse what cannot be done before the lake is claimed.
        publication = following(head)
        sink = open_sink(own, _of_earlier_loads(own, as_published(config, head), head, names))
        state = LakeState(head, _earlier_loads(sink, names))
        records = None
        if not undo:
            refuse_source(config, head.frontier)
            refuse_replacing(config, publication)
            records = _records(own, config, publication, names, state)
        choice = TableChoice(ledger, sink, names, interrupts=True)
        return Reloading(choice.publish(state, following), names, records)


def _records(
    spark: SparkSession,
    config: PipelineConfig,
    following: Publication,
    names: Sequence[str],
    state: LakeState,
) -> int:
    """Return how many records the next run reads; check that it can read them.

    Args:
        spark: Session of the command.
        config: The pipeline.
        following: The publication that begins to load tables anew.
        names: The tables.
        state: Their earlier loads.

    Raises:
        UsageError: A topic has no record, or see ``refuse_unnamed_rows``.
        DataError: A topic was deleted and made again.
        LakeingestError: See ``plan_all_ranges``.
    """
    published_config = as_published(config, following)
    with closing(open_source(spark, published_config.source)) as source:
        ranges = plan_all_ranges(source, published_config, following.frontier)
        refuse_unnamed_rows(config, source, ranges.data, state.tables.values(), NEW_LAKE)
    counts = dict.fromkeys((published_config.source.names.topic(name) for name in names), 0)
    for part in ranges.data:
        if part.topic in counts:
            counts[part.topic] += part.end - part.start
    empty = sorted(topic for topic, count in counts.items() if not count)
    if empty:
        problem = f"these topics have no record that is read, so nothing is left to load: {empty}"
        raise UsageError(problem)
    return sum(counts.values())


def _of_earlier_loads(
    spark: SparkSession, config: PipelineConfig, head: Publication, names: Sequence[str]
) -> PipelineConfig:
    """Return the configuration with folder and format of tables as readers see them."""
    tables, loads = dict(config.tables), dict(config.loads)
    for name in names:
        loads.pop(name, None)
        path = head.shown_paths.get(name, name)
        folder = LakeFolders(config.target.path, {name: path}).table(name)
        is_hudi = is_hudi_table(spark, folder)
        earlier = {"path": path, "format": "hudi" if is_hudi else "delta"}
        tables[name] = config.table(name).model_copy(update=earlier)
    return config.model_copy(update={"tables": tables, "loads": loads})


def _earlier_loads(sink: Sink, names: Sequence[str]) -> dict[str, TableState]:
    """Return the states of the tables that exist.

    Raises:
        UsageError: A table was adopted, so its topic lacks what its first writer wrote.
    """
    states = {}
    for name in names:
        state = sink.state(name)
        if state is None:
            continue
        if state.note.adopted_at:
            problem = (
                f"table '{name}' was adopted, and its topic need not have what Hudi Streamer "
                "wrote: read the topics into a lake of their own (another lakeingest.target.path)"
            )
            raise UsageError(problem)
        states[name] = state
    return states
