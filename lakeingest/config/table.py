"""Define the settings of one table; for a setting that is not given, the pipeline's counts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lakeingest.config.fields import FolderPath, Text
from lakeingest.config.schema_changes import TableSchemaChanges
from lakeingest.config.value_settings import TableValues


class TableConfig(TableValues):
    """What is declared about one collection; everything has a default."""

    ddl: Text | None = Field(
        default=None,
        description="Columns as Spark DDL, such as `id BIGINT, name STRING`. Default: taken from "
        "the events' schemas, or inferred with a warning when they carry none.",
    )
    key: tuple[Text, ...] = Field(
        default=(),
        description="Key columns, separated by commas. Default: the fields of the Kafka record "
        "key, which Debezium fills with the primary key.",
    )
    keyless: Literal["stop", "full-row", "append"] = Field(
        default="stop",
        description="What a row of a table without a key is: `full-row`: all that is in it, so "
        "equal rows are one row, and updates and deletes need the whole row before; `append`: its "
        "place in the log, so an update or a delete stops the run. Default: `stop`, because either "
        "can lose something.",
    )
    partition: tuple[Text, ...] = Field(
        default=(),
        description="Columns, separated by commas, by whose values the table lies in folders. "
        "Default: none, because a row whose partition changes costs a look at the table unless "
        "they are all key columns. Fixed when a table is made.",
    )
    format: Literal["delta", "hudi"] | None = Field(
        default=None, description="Table format. Default: the one of the target."
    )
    path: FolderPath | None = Field(
        default=None,
        description="Folder of the table: relative to `lakeingest.target.path` (`.` is that folder "
        "itself), or an absolute path or URI. Default: the collection's name, encoded where a "
        "folder cannot have it (`Order Items`: `Order_x0020_Items`). It may change only "
        "together with the folder: a published table that is not there stops the run.",
    )
    adopt: Literal["hudi-streamer"] | None = Field(
        default=None,
        description="Go on with a table that is there already, in its place: `hudi-streamer` wrote "
        "it, and its checkpoint says up to where. Stop Hudi Streamer first. Default: a table that "
        "no pipeline of ours made is refused and not touched.",
    )
    checkpoint: Text | None = Field(
        default=None,
        description="Where the writer of an adopted table stood, as Hudi Streamer writes it: "
        "`topic,0:offset,1:offset`, the next offset of each partition. Default: what the table's "
        "newest commit with a checkpoint says.",
    )
    ordering_columns: tuple[Text, ...] = Field(
        default=(), description="Its own `lakeingest.source.ordering.columns`. Default: those."
    )
    schema_changes: TableSchemaChanges = Field(
        default_factory=TableSchemaChanges, description="What to do about changes of its schema."
    )
