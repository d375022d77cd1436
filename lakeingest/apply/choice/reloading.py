"""Define what loading a table anew means for publications: its topic from the beginning, once more.

The publication that begins it takes the table out of the writer's view and gives it another folder.
Its topic has no offset any more, so the next window reads all of it, and the rows go through the
same stages as those of a table whose first records just arrived: other tables wait, and the first
publication with the new load has all tables at one commit. Until then every publication shows the
earlier load, as of its last version. Older publications name the earlier folder for good.

Rejected: to write the new rows into the table as it is. Columns, key, partitioning or format may be
what is to change, and a reader of an older publication would find other files. Rejected: a lake of
its own for the table, because the two lakes would show different commits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from lakeingest.apply.choice.retirement import (
    refuse_taken_up,
    refuse_unplaced_ends,
    unknown_table,
)
from lakeingest.apply.next_publication import next_publication
from lakeingest.config.model import PipelineConfig
from lakeingest.errors import ConfigError, UsageError
from lakeingest.folders import TOMBSTONES
from lakeingest.ledger.publication import Frontier, Publication, Reload
from lakeingest.topic_names import TopicNames

_Value = TypeVar("_Value")

NEW_LAKE = "load the lake anew (another lakeingest.target.path)"
"""What to do where a table cannot be loaded anew."""


def with_reloads(
    head: Publication, names: Collection[str], topics: TopicNames, run: str
) -> Publication:
    """Return the publication that begins to load tables anew.

    A table whose reload is not over begins once more, in another folder.

    Args:
        head: The newest publication, whose writer is this run.
        names: The tables.
        topics: The connector's topics.
        run: Identifier of the run.

    Raises:
        UsageError: See ``refuse_reloading``.
    """
    refuse_reloading(head, names, topics)
    following = next_publication(head, run)
    offsets = dict(head.frontier.offsets)
    reloads = dict(head.reloads)
    for name in names:
        topic = topics.topic(name)
        left = offsets.pop(topic, {})
        reloads[name] = (
            replace(reloads[name], batch=following.batch)
            if name in reloads
            else Reload(
                batch=following.batch,
                version=head.tables[name],
                path=head.paths.get(name, name),
                topic=topic,
                offsets=dict(left),
            )
        )
    return replace(
        following,
        tables=_without(head.tables, names),
        paths=_without(head.paths, names),
        frontier=replace(head.frontier, offsets=offsets),
        reloads=reloads,
    )


def with_reloads_undone(head: Publication, names: Collection[str], run: str) -> Publication:
    """Return the publication that goes on with the earlier loads of tables.

    Args:
        head: The newest publication, whose writer is this run.
        names: The tables.
        run: Identifier of the run.

    Raises:
        UsageError: One of them is not being loaded anew.
    """
    for name in names:
        if name not in head.reloads:
            raise UsageError(unknown_table(name, head.reloads, "being loaded anew"))
    undone = {name: head.reloads[name] for name in names}
    offsets = {**head.frontier.offsets, **{r.topic: dict(r.offsets) for r in undone.values()}}
    paths = {name: reload.path for name, reload in undone.items() if reload.path != name}
    return replace(
        next_publication(head, run),
        tables={**head.tables, **{name: reload.version for name, reload in undone.items()}},
        paths={**head.paths, **paths},
        frontier=replace(head.frontier, offsets=offsets),
        reloads=_without(head.reloads, names),
    )


def refuse_source(config: PipelineConfig, frontier: Frontier) -> None:
    """Stop where the rows of a topic cannot be placed once more among those of the lake.

    Args:
        config: The pipeline.
        frontier: That of the lake.

    Raises:
        UsageError: There are no transactions, or the rows alone give them their places.
    """
    if config.source.ends_topic is None:
        problem = (
            f"with lakeingest.transaction.mode={config.source.transaction_mode} nothing says when "
            f"a table has all rows again: {NEW_LAKE}"
        )
        raise UsageError(problem)
    refuse_unplaced_ends(config.source, frontier, NEW_LAKE)


def refuse_replacing(config: PipelineConfig, head: Publication) -> None:
    """Stop where a new snapshot could replace all tables while some are loaded anew.

    Their topics are read from the beginning again. So nothing tells where the new snapshot begins
    in them, nor which of their rows are older.

    Raises:
        ConfigError: That is so.
    """
    if head.reloads and config.source.replaces_tables:
        names = ", ".join(sorted(head.reloads))
        message = (
            f"{names}: to be loaded anew, and lakeingest.source.snapshot.again=replace takes a new "
            "snapshot of all tables. One at a time: remove that setting until the new load is "
            "published, or take the load back (lakeingest reload CONFIG TABLE --undo). Nothing was "
            "read."
        )
        raise ConfigError(message)


def refuse_reloading(head: Publication, names: Collection[str], topics: TopicNames) -> None:
    """Stop where tables cannot be loaded anew.

    Raises:
        UsageError: A table is not published or is retired, it shares its topic, or the lake has
            more than one epoch.
    """
    for name in names:
        if name in head.retired:
            problem = (
                f"table '{name}' is retired; take it up first (lakeingest retire CONFIG '{name}' "
                "--undo)"
            )
            raise UsageError(problem)
        refuse_taken_up(head, name)
        if name not in head.shown:
            # A run that was killed, or stopped at another table, may have made it.
            unpublished = (
                f"{unknown_table(name, head.shown, 'published')}. A table that no publication "
                "shows needs no command: delete its folder (and the one with "
                f"'{TOMBSTONES}' behind its name), and the next run makes it anew"
            )
            raise UsageError(unpublished)
        if head.shown_paths.get(name, name) == ".":
            problem = (
                f"the folder of table '{name}' is the lake's own (path=.), and a second load would "
                f"lie inside the first: {NEW_LAKE}"
            )
            raise UsageError(problem)
        topic = topics.topic(name)
        sharing = sorted(o for o in head.shown if o != name and topics.topic(o) == topic)
        if sharing:
            problem = (
                f"topic '{topic}' holds the rows of {', '.join(sharing)}, too, which would be read "
                f"again with those of '{name}': {NEW_LAKE}"
            )
            raise UsageError(problem)
    if head.frontier.newest_epoch:
        problem = (
            f"the source's log started over (epoch {head.frontier.newest_epoch}), so the places of "
            f"older rows cannot be told: {NEW_LAKE}"
        )
        raise UsageError(problem)


def _without(tables: Mapping[str, _Value], names: Collection[str]) -> dict[str, _Value]:
    return {name: value for name, value in tables.items() if name not in names}
