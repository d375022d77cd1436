"""Define the settings of one table; for a setting that is not given, the pipeline's counts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lakeingest.config.model.fields import ConfigModel, FolderPath, Text
from lakeingest.config.model.schema_changes import SchemaChanges

TooLarge = Literal["fail", "string"]
Infinite = Literal["fail", "null", "edge"]
Ambiguous = Literal["null", "keep", "fail"]


class TableConfig(ConfigModel):
    """What is declared about one collection; everything has a default.

    A key in a file stands behind ``lakeingest.table.<collection>.``.
    """

    ddl: Text | None = Field(default=None, validation_alias="schema")
    """Columns as Spark DDL, such as `id BIGINT, name STRING`. Default: taken from the events'
    schemas. Records without schemas show certain types only by their values; a column whose type
    is not certain stops the run (`lakeingest.types.guess`)."""
    key: tuple[Text, ...] = Field(default=(), validation_alias="key")
    """Key columns, separated by commas. Default: the fields of the Kafka record key, which Debezium
    fills with the primary key."""
    keyless: Literal["stop", "full-row", "append"] = Field(
        default="stop", validation_alias="keyless"
    )
    """What identifies a row of a table without a key: `full-row`: all its values, so equal rows are
    one row, and updates and deletes need the whole row before; `append`: its place in the log, so
    an update or a delete stops the run. Only with `lakeingest.transaction.mode=metadata`. Default:
    `stop`, because either can lose something."""
    partition: tuple[Text, ...] = Field(default=(), validation_alias="partition")
    """Columns, separated by commas, by whose values the table lies in folders. Default: none,
    because a row whose partition changes costs a look at the table unless they are all key columns.
    Fixed when a table is loaded (`lakeingest reload`)."""
    format: Literal["delta", "hudi"] | None = Field(default=None, validation_alias="format")
    """Table format. Default: the one of the target."""
    path: FolderPath | None = Field(default=None, validation_alias="path")
    """Folder of the table: relative to `lakeingest.target.path` (`.` is that folder itself), or an
    absolute path or URI. Default: the collection's name, encoded where a folder cannot have it
    (`Order Items`: `Order_x0020_Items`). It may change only together with the folder: a published
    table that is not there stops the run."""
    adopt: Literal["hudi-streamer"] | None = Field(default=None, validation_alias="adopt")
    """Continue an existing table in its place: `hudi-streamer` wrote it, and its checkpoint says up
    to where. Stop Hudi Streamer first. Default: a table that no pipeline of lakeingest made is
    refused and not touched."""
    ordering_columns: tuple[Text, ...] = Field(default=(), validation_alias="ordering.columns")
    """Its own `lakeingest.source.ordering.columns`. Default: those."""
    checkpoint: Text | None = Field(default=None, validation_alias="checkpoint")
    """Where the writer of an adopted table stood, as Hudi Streamer writes it:
    `topic,0:offset,1:offset`, the next offset of each partition. Default: what the table's newest
    commit with a checkpoint says."""
    decimal_too_large: TooLarge | None = Field(default=None, validation_alias="decimal.too.large")
    """What a column becomes whose schema allows more than 38 digits. Default: the pipeline's
    policy. Set it before the first run: a column keeps its type."""
    infinite_times: Infinite | None = Field(default=None, validation_alias="infinite.times")
    """What to do with dates and timestamps that are infinite or not in the years 1 to 9999.
    Default: the pipeline's policy."""
    ambiguous_nulls: Ambiguous | None = Field(default=None, validation_alias="ambiguous.nulls")
    """What to do with a NULL that may stand for an unchanged value. Default: the pipeline's policy.
    """
    schema_changes: SchemaChanges = Field(default_factory=SchemaChanges)
    """What to do about changes of its schema."""
