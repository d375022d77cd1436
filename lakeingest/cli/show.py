"""``lakeingest show``: print the published rows of one table, ordered by key."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lakeingest.cli.options import (
    ConfigArgument,
    LimitOption,
    OutputOption,
    SetOption,
    row_limit,
)
from lakeingest.cli.output import OutputFormat, message
from lakeingest.cli.pipeline import load_pipeline, start_spark
from lakeingest.cli.rows import write_rows
from lakeingest.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakeingest.reader import Lake, Snapshot


def show(
    config: ConfigArgument,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="The table, named by its collection: public.orders.",
            show_default=False,
        ),
    ],
    settings: SetOption = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="BATCH|TX|TIME",
            help="A batch number, a source transaction's id (tx:753 if it is a bare number, such "
            "as PostgreSQL's xid), or an ISO time (UTC unless it names a zone). Default: the "
            "latest publication.",
            show_default=False,
        ),
    ] = None,
    metadata: Annotated[
        bool, typer.Option("--metadata", help="With the metadata columns.")
    ] = False,
    limit: LimitOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Print the published rows of a table, ordered by key."""
    pipeline = load_pipeline(config, settings)
    moment = parse_as_of(as_of)
    spark = start_spark(f"lakeingest show {pipeline.name}", pipeline)
    from lakeingest.engine.storage_errors import storage
    from lakeingest.reader import open_lake

    with storage(pipeline.target.path):
        lake = open_lake(spark, pipeline.target.path, pipeline.metadata_prefix)
        snapshot = lake.snapshot(as_of=moment)
        if snapshot.transactions > 1 and is_transaction(moment):
            message(
                f"note: publication {snapshot.batch} holds {snapshot.transactions} source "
                "transactions; the table is as after the last one (lakeingest history "
                "--transactions lists them)"
            )
        frame = published_rows(lake, snapshot, table, metadata=metadata)
        write_rows(frame, output, row_limit(limit, output))


def is_transaction(moment: int | str | None) -> bool:
    """Return whether ``--as-of`` names a source transaction."""
    from lakeingest.reader import as_of

    return moment is not None and isinstance(as_of.parse_as_of(moment), as_of.SourceTransaction)


def parse_as_of(text: str | None) -> int | str | None:
    """Return the value of ``--as-of`` in the reader's form.

    A bare number is a batch, because ``history`` lists batches; an id of Oracle's may be all
    digits, of which the first are zeros. The reader interprets every other text; this function
    lets it check the text before Spark starts.

    Raises:
        UsageError: The text begins like a date and is not one.
    """
    from lakeingest.reader import as_of

    if text is None:
        return None
    if text.strip().isdecimal() and not re.match(r"\s*0\d", text):
        return int(text)
    as_of.parse_as_of(text)
    return text


def published_rows(lake: Lake, snapshot: Snapshot, table: str, *, metadata: bool) -> DataFrame:
    """Return the rows of a table at a publication, ordered by key.

    Raises:
        UsageError: The publication has no such table. The message says when it was retired or
            first published, or names the nearest table, or all.
    """
    from lakeingest.named import all_named

    tables = list(snapshot.tables())
    if table not in tables:
        when = _retired(lake, snapshot, table) or _not_yet(lake, snapshot, table)
        raise UsageError(when or _unpublished(table, tables))
    frame = snapshot.table(table, metadata=metadata)
    key = all_named(snapshot.key(table))
    return frame.orderBy(*key) if key else frame


def _retired(lake: Lake, snapshot: Snapshot, table: str) -> str:
    """Return where a retired table can still be read; empty: it was never published before."""
    from pyspark.sql import functions as F  # noqa: N812

    batch = F.col("batch")
    earlier = lake.history().where(batch < snapshot.batch)
    had_it = earlier.where(F.map_contains_key("tables", table)).agg(F.max(batch).alias("last"))
    (last,) = had_it.collect()[0]
    if last is None:
        return ""
    row = lake.history().where(batch > last).orderBy(batch).collect()[0]
    when = f" in batch {row['batch']}, published at {row['published_at']:%Y-%m-%d %H:%M:%S}"
    return (
        f"table {table} was retired{when}; older snapshots have it, the last one with --as-of "
        f"{last}"
    )


def _not_yet(lake: Lake, snapshot: Snapshot, table: str) -> str:
    """Return the first publication that has a table; empty: none has."""
    from pyspark.sql import functions as F  # noqa: N812

    has_it = F.map_contains_key("tables", table)
    (first,) = lake.history().where(has_it).agg(F.min("batch")).collect()[0]
    if first is None:
        return ""
    return (
        f"table {table} was not published yet in batch {snapshot.batch}, but first in batch {first}"
    )


def _unpublished(table: str, tables: Sequence[str]) -> str:
    from lakeingest.config.spelling import nearest

    near = nearest(table, tables)
    hint = f"did you mean {near}?" if near else f"there are: {', '.join(tables) or 'none'}"
    return f"no table {table} is published; {hint}"
