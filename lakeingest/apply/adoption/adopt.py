"""Adopt tables that another writer made, before a lake's first batch (``table.<name>.adopt``).

The word is not "take over": a driver takes over a lake that another driver of the same pipeline
wrote (``lake.py``). Only tables named in the configuration are adopted. Every other table that
lakeingest did not write is refused.

Steps: read the checkpoints; find their place between transactions (``checkpoint_alignment.py``);
claim the ledger with that place as the frontier; make one commit for each table. The adoption is
complete only when the last table is adopted. A run that starts after a crash finds a pending table
and repeats all steps from the same checkpoints, which stay in the tables' timelines. Afterwards the
lake looks like one that crashed between its first commits and their publication, and the pipeline
continues from there.

All collections of a pipeline are adopted together. A table that is loaded from its topic's
beginning would be at another commit than the tables that begin in the middle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakeingest.apply.adoption.checkpoint_alignment import Alignment, align_checkpoints
from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.parallel import in_parallel
from lakeingest.apply.window.window import PipelineLog
from lakeingest.commit_note import CommitNote, schema_token, token
from lakeingest.config.model import PipelineConfig
from lakeingest.config.model.consistency import adopted_but_not_read
from lakeingest.config.streamer.checkpoint import Checkpoint
from lakeingest.errors import ConfigError, TransientError
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication
from lakeingest.sink.hudi.adopt import HudiAdoption
from lakeingest.source.contract import TopicPartition


@dataclass(frozen=True)
class Begin:
    """Where a pipeline continues the tables of another writer.

    Attributes:
        head: Head of the ledger before the claim.
        alignment: Place of the tables between two source transactions.
        versions: Newest version of each table, read before its checkpoint.
    """

    head: Publication
    alignment: Alignment
    versions: Mapping[str, int]


@dataclass(frozen=True)
class Adoption:
    """The adoption of a pipeline's tables.

    Attributes:
        config: The pipeline.
        log: The pipeline's log.
        tables: Adopts one table at a time.
        ledger: The ledger to claim.
        run: Identifier of the run.
    """

    config: PipelineConfig
    log: PipelineLog
    tables: HudiAdoption
    ledger: DeltaLedger
    run: str

    def adopt(self, topics: Sequence[str]) -> None:
        """Adopt every table that the configuration names and that is not adopted yet.

        Args:
            topics: All data topics of the pipeline.

        Raises:
            ConfigError: The tables or the settings do not allow it.
            DataError: The log or a table no longer holds the data that the adoption needs.
            TransientError: See ``align_checkpoints``; or another writer wrote to a table meanwhile.
        """
        begin = self.begin(topics)
        if begin is None:
            return
        failpoint("0.before-adoption")
        head = self.ledger.claim(replace(begin.head, frontier=begin.alignment.frontier))
        if head.batch:
            message = "Another run published into this lake meanwhile. No table was adopted."
            raise TransientError(message)
        failpoint("0.frontier-claimed")
        note = self._note(head, begin.alignment)
        collections = adopted_collections(self.config)
        in_parallel(partial(self._adopt_one, note, begin.versions), collections)
        failpoint("0.adopted")

    def begin(self, topics: Sequence[str]) -> Begin | None:
        """Find where the pipeline continues the tables, if it can adopt them; write nothing.

        Args:
            topics: All data topics of the pipeline.

        Returns:
            None if all tables are adopted already.

        Raises:
            LakeingestError: See ``adopt``.
        """
        collections = adopted_collections(self.config)
        if not any(in_parallel(self.tables.pending, collections)):
            # The setting may stay: new tables of the source are then loaded as in any pipeline.
            return None
        refuse_settings(self.config, topics)
        head = self.ledger.head()
        if head.batch > 0:
            message = (
                "lakeingest.table.<collection>.adopt: tables are adopted before a lake's first "
                f"batch, and this one has {head.batch}. Give these tables a pipeline and a "
                "lakeingest.target.path of their own."
            )
            raise ConfigError(message)
        versions = {name: self.tables.version(name) for name in collections}
        in_parallel(self.tables.check, collections)
        checkpoints = {
            place: offset for name in collections for place, offset in self._offsets(name).items()
        }
        recorded = self.config.source.kind == "recorded"
        margin_seconds = None if recorded else self.config.transaction_timeout_seconds
        place_of_tables = align_checkpoints(self.log, checkpoints, margin_seconds)
        return Begin(head, place_of_tables, versions)

    def _adopt_one(self, note: CommitNote, versions: Mapping[str, int], collection: str) -> None:
        self.tables.adopt(collection, note, versions[collection])
        failpoint("0.first-adopted")

    def _note(self, head: Publication, place: Alignment) -> CommitNote:
        ahead = place.through is not None
        return CommitNote(
            pipeline=self.config.name,
            collection="",
            run=self.run,
            # The token of a schema change of the first batch: below the batch's, and no fence.
            token=schema_token(token(head.writer, 1)),
            batch=1 if ahead else 0,
            end_offset=-1 if place.through is None else place.through,
            end_position=place.position,
            high=place.position,
            adopted_at=place.frontier.end_position,
        )

    def _offsets(self, collection: str) -> Mapping[TopicPartition, int]:
        """Return the next offset of each partition of a table's topic.

        Raises:
            ConfigError: There is no checkpoint, or it is of another topic.
        """
        text = self.config.table(collection).checkpoint or self.tables.checkpoint(collection)
        if not text:
            message = (
                f"No commit of the Hudi table of '{collection}' holds a checkpoint of Hudi "
                f"Streamer (in the active timeline). Give it with lakeingest.table.{collection}."
                "checkpoint=topic,0:offset,1:offset: the next offset of each partition."
            )
            raise ConfigError(message)
        try:
            checkpoint = Checkpoint.parse(text)
        except ConfigError as error:
            message = f"Table '{collection}': {error} Set lakeingest.table.{collection}.checkpoint."
            raise ConfigError(message) from None
        topic = self.config.source.names.topic(collection)
        if checkpoint.topic != topic:
            message = (
                f"The checkpoint of table '{collection}' is of topic '{checkpoint.topic}', but its "
                f"changes are read from '{topic}'. Correct lakeingest.source.topic.prefix or the "
                f"collection's name."
            )
            raise ConfigError(message)
        marks = self.log.source.watermarks([topic])
        # The checkpoint lacks a partition that was added later: read it from its beginning.
        return {place: checkpoint.offsets.get(place.partition, 0) for place in marks}


def adopted_collections(config: PipelineConfig) -> list[str]:
    """Return the collections to adopt, without retired ones, which are adopted and not read."""
    names = config.source.names
    return sorted(
        name
        for name, table in config.tables.items()
        if table.adopt is not None and names.topic(name) not in names.retired
    )


def refuse_settings(config: PipelineConfig, topics: Sequence[str]) -> None:
    """Raise an error if this pipeline cannot adopt the tables that its configuration names.

    The loader of the configuration has checked the settings already; this check needs the topics.

    Args:
        config: The pipeline.
        topics: The data topics that exist.

    Raises:
        ConfigError: A table's topic is not read, or other tables would be loaded from the beginning
            of their topics.
    """
    collections, names = adopted_collections(config), config.source.names
    fault = None
    others = sorted(map(names.plain, names.without(topics, collections)))
    unread_tables = [name for name in collections if names.topic(name) not in topics]
    if unread_tables:
        fault = adopted_but_not_read(unread_tables)
    elif others:
        fault = (
            f"{', '.join(others)} would be loaded from the beginning of their topics, beside "
            "tables that begin in the middle. Adopt them too, or list the topics of the adopted "
            "tables alone in lakeingest.source.topics"
        )
    if fault is not None:
        message = f"lakeingest.table.<collection>.adopt: {fault}."
        raise ConfigError(message)
