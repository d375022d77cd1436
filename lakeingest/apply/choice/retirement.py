"""Define what a retired table means for a run: no publication has it, and its topic is not read.

The lake says which tables are retired, not the configuration. The other tables continue from the
frontier, which holds only if every run leaves out the same topics. So each publication repeats the
list, and a run takes it from there (``as_published.py``). A run that is under way is fenced: to
retire a table claims the ledger.

A retired table counts like one whose topic was never selected. No transaction waits for its rows,
so transactions that wait with rows of it become complete without them.

Rows that arrive later stay where they are, and every run reports them. Rejected: to stop, because a
table that nobody wants may well go on at the source. Rejected: to read them into the old table,
because no event reports a DROP, so the rows of the dropped table would stand among those of its
namesake. A namesake cannot get a folder of its own either: older publications name tables, and a
reader takes a table's folder to be the present one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lakeingest.apply.next_publication import next_publication
from lakeingest.config.model import SourceConfig
from lakeingest.config.spelling import nearest
from lakeingest.envelope.change import FAMILIES
from lakeingest.errors import AccessError, UnavailableError, UsageError
from lakeingest.ledger.publication import Frontier, Publication, Retired
from lakeingest.source.contract import Source, TopicPartition, Watermarks
from lakeingest.topic_names import TopicNames

OWN_LAKE = (
    "read the table into a lake of its own (another lakeingest.pipeline.name and target.path, its "
    "topic in lakeingest.source.topics)"
)
"""What to do where a table cannot be taken up again."""


def rows_since(source: Source, retired: Mapping[str, Retired]) -> list[str]:
    """Return a warning for each retired table whose topic has records that were never read.

    Args:
        source: Reads the topics, if they still exist.
        retired: Retired tables by name.
    """
    warnings = []
    for name, table in sorted(retired.items()):
        try:
            marks = source.watermarks([table.topic])
        except (AccessError, UnavailableError):
            # The topic was deleted with its table, or the user may not read it any more.
            continue
        count = waiting(table, marks)
        if count:
            warnings.append(
                f"Table '{name}' is retired since batch {table.batch}; records of its topic "
                f"'{table.topic}' that are not read: {count}. (lakeingest retire CONFIG '{name}' "
                "--undo takes the table up again, if it is the same one.)"
            )
    return warnings


def waiting(table: Retired, marks: Mapping[TopicPartition, Watermarks]) -> int:
    """Count the records of a retired table's topic that were never read.

    If the topic ends before the offset at which it was left, it was made anew: count all records.
    """
    count = 0
    for place, bounds in marks.items():
        low = table.offsets.get(place.partition, bounds.earliest)
        count += bounds.high - (low if low <= bounds.high else bounds.earliest)
    return count


def without_table(
    head: Publication, name: str, names: TopicNames, run: str, adopted_at: str = ""
) -> Publication:
    """Return the publication that retires a table.

    Args:
        head: The newest publication, whose writer is this run.
        name: The table.
        names: The connector's topics.
        run: Identifier of the run.
        adopted_at: See ``Retired``.

    Raises:
        UsageError: See ``refuse_retiring``.
    """
    refuse_retiring(head, name, names)
    topic = names.topic(name)
    offsets = dict(head.frontier.offsets)
    next_offsets = offsets.pop(topic, {})
    retired_table = Retired(
        batch=head.batch + 1,
        version=head.tables[name],
        topic=topic,
        offsets=dict(next_offsets),
        epoch=_epoch_of_rows(head.frontier),
        adopted_at=adopted_at,
        path=head.paths.get(name, ""),
    )
    tables = {other: version for other, version in head.tables.items() if other != name}
    return replace(
        next_publication(head, run),
        tables=tables,
        paths={other: path for other, path in head.paths.items() if other != name},
        frontier=replace(head.frontier, offsets=offsets),
        retired={**head.retired, name: retired_table},
    )


def _epoch_of_rows(frontier: Frontier) -> int:
    """Return the newest epoch of which the tables have rows.

    The publication that opens an epoch with a new snapshot comes before that snapshot.
    """
    opened = frontier.newest_epoch
    return opened if frontier.streaming or not opened else opened - 1


def with_table(head: Publication, name: str, run: str, *, shown: bool, path: str) -> Publication:
    """Return the publication that takes a retired table up again, at the offsets where it was left.

    Args:
        head: The newest publication, whose writer is this run.
        name: The table.
        run: Identifier of the run.
        shown: Whether the table is published at once, because its topic has no new row.
            Otherwise the next batch publishes it: until its rows are read, the table would stand at
            an older commit than the others.
        path: Its folder in the lake.

    Raises:
        UsageError: See ``refuse_undoing``.
    """
    refuse_undoing(head, name)
    table = head.retired[name]
    offsets = {**head.frontier.offsets, table.topic: dict(table.offsets)}
    publication = replace(
        next_publication(head, run),
        # A table that is not shown yet exists all the same: no run may make it anew, and one that
        # was loaded anew goes on in its folder.
        paths={**head.paths, **({name: path} if path != name or not shown else {})},
        frontier=replace(head.frontier, offsets=offsets),
        retired={
            other: other_table for other, other_table in head.retired.items() if other != name
        },
    )
    if not shown:
        return publication
    return replace(publication, tables={**head.tables, name: table.version})


def refuse_retiring(head: Publication, name: str, names: TopicNames) -> None:
    """Stop where a table cannot be retired.

    Raises:
        UsageError: It is not published, it is the only table, or another table shares its topic.
    """
    if name in head.retired:
        problem = f"table '{name}' is retired already, since batch {head.retired[name].batch}"
        raise UsageError(problem)
    if name in head.reloads:
        problem = f"table '{name}' is loaded anew; lakeingest reload CONFIG '{name}' --undo first"
        raise UsageError(problem)
    refuse_taken_up(head, name)
    if name not in head.tables:
        raise UsageError(unknown_table(name, head.tables, "published"))
    others = sorted({*head.shown} - {name})
    if not others:
        problem = f"'{name}' is the lake's only table: stop the pipeline instead of retiring it"
        raise UsageError(problem)
    shared = [other for other in others if names.topic(other) == names.topic(name)]
    if shared:
        problem = (
            f"topic '{names.topic(name)}' holds the rows of {', '.join(shared)}, too, which would "
            "not be read any more"
        )
        raise UsageError(problem)


def refuse_taken_up(head: Publication, name: str) -> None:
    """Stop where a table was taken up again and no publication shows it yet.

    Raises:
        UsageError: That is so.
    """
    if name in head.taken_up:
        problem = (
            f"table '{name}' is taken up again, and no publication shows it yet: run the pipeline "
            "first (lakeingest run). If the run stops because of this table, leave its topic out "
            f"of lakeingest.source.topics, and {OWN_LAKE}"
        )
        raise UsageError(problem)


def refuse_undoing(head: Publication, name: str) -> None:
    """Stop where a table cannot be taken up again.

    Raises:
        UsageError: It is not retired, or the source's log started over after its rows.
    """
    if name not in head.retired:
        raise UsageError(unknown_table(name, head.retired, "retired"))
    if head.retired[name].epoch != head.frontier.newest_epoch:
        problem = (
            f"the source's log started over after the rows of table '{name}' (epoch "
            f"{head.frontier.newest_epoch}), so what follows them cannot be told: {OWN_LAKE}"
        )
        raise UsageError(problem)


def refuse_unplaced_ends(source: SourceConfig, frontier: Frontier, instead: str) -> None:
    """Stop where rows alone give transactions their places, and rows of old ones are to be read.

    Another transaction may have the place of the last one that was applied, and its rows could not
    be told from those of that one. Where rows alone show transactions, nobody knows those of which
    only these rows tell.

    Args:
        source: The pipeline's source.
        frontier: That of the lake.
        instead: What the user can do.

    Raises:
        UsageError: That is so.
    """
    if source.transaction_mode == "boundary":
        problem = (
            "with lakeingest.transaction.mode=boundary nothing says which transactions of the "
            f"table's rows were applied: {instead}"
        )
        raise UsageError(problem)
    in_file_order = any(epoch.in_file_order for epoch in frontier.epochs)
    if FAMILIES[source.connector].end_position is None or in_file_order:
        which = " (GTIDs with tags)" if in_file_order else ""
        problem = (
            f"the transaction topic of {source.connector}{which} does not say where a transaction "
            "stands, so rows of the last one that was applied cannot be told from later ones: "
            f"{instead}"
        )
        raise UsageError(problem)


def unknown_table(name: str, tables: Mapping[str, object], what: str) -> str:
    """Return that no table of this name is ``what``, with the nearest name, or all of them."""
    near = nearest(name, list(tables))
    hint = f"did you mean {near}?" if near else f"there are: {', '.join(sorted(tables)) or 'none'}"
    return f"no table '{name}' is {what}; {hint}"
