"""Adopt tables that another writer left, before a lake's first batch (``table.<name>.adopt``).

The word is not "take over": that is what a driver does with a lake that another driver of the same
pipeline wrote (``lake.py``). The rule that a table of nobody is refused stays for all others: only
who names a table means its rows to be gone on with.

Steps: read the checkpoints, find where they lie between transactions (``checkpoint_alignment.py``),
claim the ledger with that as the frontier, then one commit for each table. Until the last table is
adopted nothing is: a run that starts after a crash finds one pending and does all of it again, from
the same checkpoints, which stay where they are in the tables' timelines. Afterwards the lake looks
like one that crashed between its first commits and their publication, and the loop goes on from
there.

All collections of a pipeline are adopted together: one that is loaded from its topic's beginning
would be at another commit than those that begin in the middle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import Column

from lakeingest.apply.adoption.checkpoint_alignment import Handover, handover
from lakeingest.apply.failpoints import failpoint
from lakeingest.apply.parallel import side_by_side
from lakeingest.apply.table.record_schemas import Schemas
from lakeingest.config.checkpoint import Checkpoint
from lakeingest.config.model import PipelineConfig
from lakeingest.errors import ConfigError
from lakeingest.ledger.delta import DeltaLedger
from lakeingest.ledger.publication import Publication
from lakeingest.plan.spec import PipelineSpec
from lakeingest.sink.contract import CommitNote, schema_token, token
from lakeingest.sink.hudi.adopt import HudiAdoption
from lakeingest.source.contract import Source, TopicPartition


@dataclass(frozen=True)
class Begin:
    """Where a pipeline goes on with the tables of another writer.

    Attributes:
        head: The ledger's, before it is claimed.
        found: The place between two transactions.
        versions: Newest version of each table from before its checkpoint was read.
    """

    head: Publication
    found: Handover
    versions: Mapping[str, int]


@dataclass(frozen=True)
class Adoption:
    """The adoption of a pipeline's tables.

    Attributes:
        config: The pipeline.
        source: Has the topics.
        tables: Adopts one table.
        ledger: Is claimed.
        spec: Pipeline settings.
        schemas: What is known of the records' schemas.
        counted: See ``plan.window.is_counted``.
        run: Identifier of the run.
    """

    config: PipelineConfig
    source: Source
    tables: HudiAdoption
    ledger: DeltaLedger
    spec: PipelineSpec
    schemas: Schemas
    counted: Column
    run: str

    def adopt(self, topics: Sequence[str]) -> None:
        """Adopt every table that is to be adopted and is not yet.

        Args:
            topics: All data topics of the pipeline.

        Raises:
            ConfigError: Tables or settings do not allow it.
            DataError: The log, or a table, does not hold what is needed any more.
            TransientError: See ``handover``; or a table was written to meanwhile.
        """
        begin = self.begin(topics)
        if begin is None:
            return
        failpoint("0.before-adoption")
        head = self.ledger.claim(replace(begin.head, frontier=begin.found.frontier))
        failpoint("0.frontier-claimed")
        note = self._note(head, begin.found)
        wanted = adopted_collections(self.config)
        side_by_side(partial(self._adopt_one, note, begin.versions), wanted)
        failpoint("0.adopted")

    def begin(self, topics: Sequence[str]) -> Begin | None:
        """Find where the tables are gone on with, if they can be adopted; writes nothing.

        Args:
            topics: All data topics of the pipeline.

        Returns:
            Null where all are adopted.

        Raises:
            LakeingestError: As ``adopt``.
        """
        wanted = adopted_collections(self.config)
        if not any(side_by_side(self.tables.pending, wanted)):
            # The setting may stay: what is new in the source is then loaded as in any pipeline.
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
        versions = {name: self.tables.version(name) for name in wanted}
        side_by_side(self.tables.check, wanted)
        given = {name: self._offsets(name) for name in wanted}
        found = handover(
            self.source,
            self.config.source.transaction_topic,
            {place: offset for offsets in given.values() for place, offset in offsets.items()},
            self.spec,
            self.schemas,
            self.counted,
            None
            if self.config.source.kind == "recorded"
            else self.config.transaction_timeout_seconds,
        )
        return Begin(head, found, versions)

    def _adopt_one(self, note: CommitNote, versions: Mapping[str, int], collection: str) -> None:
        self.tables.adopt(collection, note, versions[collection])
        failpoint("0.first-adopted")

    def _note(self, head: Publication, found: Handover) -> CommitNote:
        ahead = found.through is not None
        return CommitNote(
            pipeline=self.config.name,
            collection="",
            run=self.run,
            # As a schema change goes before the first batch's commit: below it, and no fence.
            token=schema_token(token(head.writer, 1)),
            batch=1 if ahead else 0,
            end_offset=-1 if found.through is None else found.through,
            end_position=found.position,
            high=found.position,
            adopted_at=found.frontier.end_position,
        )

    def _offsets(self, collection: str) -> Mapping[TopicPartition, int]:
        """Return the next offset of each partition of a table's topic.

        Raises:
            ConfigError: There is no checkpoint, or it is another topic's.
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
            found = Checkpoint.parse(text)
        except ConfigError as error:
            message = f"Table '{collection}': {error} Set lakeingest.table.{collection}.checkpoint."
            raise ConfigError(message) from None
        topic = self.config.source.names.topic(collection)
        if found.topic != topic:
            message = (
                f"The checkpoint of table '{collection}' is of topic '{found.topic}', but its "
                f"changes are read from '{topic}'. Correct lakeingest.source.topic.prefix or the "
                f"collection's name."
            )
            raise ConfigError(message)
        marks = self.source.watermarks([topic])
        # A partition that came later was not read at all: from its beginning.
        return {place: found.offsets.get(place.partition, 0) for place in marks}


def adopted_collections(config: PipelineConfig) -> list[str]:
    """Return the collections that are to be adopted; a retired one was, and is not looked at."""
    names = config.source.names
    return sorted(
        name
        for name, table in config.tables.items()
        if table.adopt is not None and names.topic(name) not in names.retired
    )


def refuse_settings(config: PipelineConfig, topics: Sequence[str]) -> None:
    """Stop where tables are to be adopted by a pipeline that cannot.

    What the configuration alone says of it was checked when it was loaded.

    Args:
        config: The pipeline.
        topics: The data topics that exist.

    Raises:
        ConfigError: It cannot.
    """
    wanted, names = adopted_collections(config), config.source.names
    fault = None
    others = sorted(map(names.plain, names.without(topics, wanted)))
    unread = [name for name in wanted if names.topic(name) not in topics]
    if unread:
        fault = (
            f"no topic of {', '.join(unread)} is read, so it could not be gone on with. Correct "
            "the name, lakeingest.source.topic.prefix or lakeingest.source.topics"
        )
    elif others:
        fault = (
            f"{', '.join(others)} would be loaded from the beginning of their topics, beside "
            "tables that begin in the middle. Adopt them too, or list the topics of the adopted "
            "tables alone in lakeingest.source.topics"
        )
    if fault is not None:
        message = f"lakeingest.table.<collection>.adopt: {fault}."
        raise ConfigError(message)
