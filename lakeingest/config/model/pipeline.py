"""Define the settings of a target and of a whole pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field, SecretStr, model_validator

from lakeingest.config.model.consistency import contradictions
from lakeingest.config.model.fields import (
    ConfigModel,
    Identifier,
    LakePath,
    NumberOrAuto,
    Problems,
    Text,
)
from lakeingest.config.model.maintenance import MaintenanceConfig
from lakeingest.config.model.schema_changes import KINDS, SchemaChanges
from lakeingest.config.model.source import SourceConfig
from lakeingest.config.model.table import Ambiguous, Infinite, TableConfig
from lakeingest.connectors import CONNECTORS
from lakeingest.folders import LakeFolders

if TYPE_CHECKING:
    from lakeingest.frame_schemas import MetadataColumns


class TargetConfig(ConfigModel):
    """Where tables and the ledger are kept."""

    format: Literal["delta", "hudi"] = Field(
        default="delta", validation_alias="lakeingest.target.format"
    )
    """Format of the tables. Default: `delta`. The ledger is a Delta table in either case."""
    path: LakePath = Field(validation_alias="lakeingest.target.path")
    """Folder of the lake: the tables and the ledger lie below it. A relative path is relative to
    the working directory. One pipeline per folder."""
    hudi_table_type: Literal["COPY_ON_WRITE", "MERGE_ON_READ"] = Field(
        default="MERGE_ON_READ", validation_alias="lakeingest.hudi.table.type"
    )
    """How Hudi tables are kept. Default: `MERGE_ON_READ`, whose commits cost the same however large
    the table is; `COPY_ON_WRITE`: rewrites files, for cheaper reading. Fixed when a table is made.
    """
    hudi_options: Mapping[str, SecretStr] = Field(default_factory=dict)
    """Settings of Hudi's writer, `hoodie.*`, as they stand in the file; that of a lock may be a
    password."""
    delta_commit: Literal["direct", "public"] = Field(
        default="direct", validation_alias="lakeingest.delta.commit"
    )
    """How small batches are committed to Delta, publications too (the ledger is a Delta table
    whatever the others are). Default: in a Delta transaction of our own, where engine and table
    allow it, which is twice as fast; `public`: by MERGE and append alone."""
    delta_deletion_vectors: bool = Field(
        default=True, validation_alias="lakeingest.delta.deletion.vectors"
    )
    """Whether a small batch hides the rows that it changes in a large Delta table (over 8 MiB or
    200,000 rows) by deletion vectors, and does not write their files again. Readers of such a table
    need Delta's feature `deletionVectors`, which the table keeps for good. `false`: files are
    written again. Default: `true`, because the cost of a batch then grows little with the table."""
    single_writer: Literal["fenced", "guaranteed"] = Field(
        default="fenced", validation_alias="lakeingest.single.writer"
    )
    """Who sees to it that one run writes at a time. Default: `fenced`, by the lake: where its
    storage lets two drivers commit the same version (S3 with Delta's default log store), a run
    stops before it writes. `guaranteed`: you do, on such a storage: never two runs at once, and
    none that wakes up later."""

    def hudi_writer_options(self) -> dict[str, str]:
        """Return the settings of Hudi's writer in plain text: for the writer, never for logs."""
        return {key: value.get_secret_value() for key, value in self.hudi_options.items()}


class PipelineConfig(ConfigModel):
    """One pipeline: one connector's events into one lake."""

    name: Text = Field(validation_alias="lakeingest.pipeline.name")
    """Name of the pipeline; written into every commit, so it must not change between runs. No
    default: two pipelines with one name would fence each other."""
    source: SourceConfig
    infinite_times: Infinite = Field(default="fail", validation_alias="lakeingest.infinite.times")
    """What to do with dates and timestamps that are `infinity`, `-infinity` or not in the years 1
    to 9999, which not every reader of a lake holds: stop, NULL, or the `edge` of these years
    (9999-12-31 23:59:59.999999, 0001-01-01), which keeps comparisons right. In a key it always
    stops. Default: `fail`, because either would pass for a value of the source."""
    ambiguous_nulls: Ambiguous = Field(
        default="null", validation_alias="lakeingest.ambiguous.nulls"
    )
    """What to do with a NULL in an update of a PostgreSQL table without REPLICA IDENTITY FULL that
    may stand for an unchanged large value, because Debezium has no placeholder for the type: arrays
    (but of text, bytea, uuid, integer, bigint, date), and bytea declared with
    `binary.handling.mode=base64`. `null` takes it as it is; `keep` keeps the older value, also
    where the update did set NULL; `fail` stops. Default: `null`, because values that small tables
    have are always sent."""
    unavailable_placeholder: Text = Field(
        default="__debezium_unavailable_value",
        validation_alias="lakeingest.source.unavailable.value.placeholder",
    )
    """The connector's `unavailable.value.placeholder`. Default as Debezium's."""
    transaction_timeout_seconds: int = Field(
        default=600, ge=1, validation_alias="lakeingest.transaction.timeout.seconds"
    )
    """Seconds that a transaction may stay incomplete before the run stops. A continuous run counts
    from when it first met the transaction; a one-shot run from the Kafka timestamp of its END. A
    recorded folder receives no more records, so a run of it does not wait. Default: ten minutes,
    longer than a restart of Kafka Connect."""
    transaction_timeout_action: Literal["stop", "apply-partial"] = Field(
        default="stop", validation_alias="lakeingest.transaction.timeout.action"
    )
    """What to do with a transaction that lacks rows for longer than that. `apply-partial`: publish
    it without them, with a warning; `lake.transactions()` says how many rows of which table were
    missing, and rows that still come are applied late. Default: `stop`, because a publication
    without them is no commit of the source."""
    uncounted_collections: tuple[Text, ...] = Field(
        default=(), validation_alias="lakeingest.transaction.filtered.collections"
    )
    """Collections, separated by commas, whose rows a transform drops after Debezium counted them;
    their counts are subtracted, and their topics may be gone or made again. Default: none,
    so that a lost row is noticed."""
    target: TargetConfig
    tables: Mapping[str, TableConfig] = Field(default_factory=dict)
    """The collections about which something is declared."""
    batch_max_events: NumberOrAuto = Field(
        default=100_000, ge=1, validation_alias="lakeingest.batch.max.events"
    )
    """Events that a batch aims at; a transaction is never cut, so one larger than this is a batch
    of its own. `auto`: as many of a backlog as take about ten seconds, from 1,000 to
    `window.max.records`. Default: large enough that the fixed cost of the commits is small, small
    enough that a batch fits a laptop."""
    window_max_records: int = Field(
        default=250_000, ge=1, validation_alias="lakeingest.window.max.records"
    )
    """Records that are read and decoded together, for several batches; a window is never smaller
    than `batch.max.events`. Where a transaction is larger, what its rows need is read besides. The
    driver's memory depends on this, not on the backlog. Default: reads a backlog well and needs
    some hundred MB of it."""
    window_max_bytes: int = Field(
        default=1 << 30, ge=1, validation_alias="lakeingest.window.max.bytes"
    )
    """Bytes of the records that are read together, as far as their size is known from those before.
    Default: 1 GiB, which few events reach; lower it for rows of many KB."""
    commit_max_transactions: int | None = Field(
        default=None, ge=1, validation_alias="lakeingest.commit.max.transactions"
    )
    """Source transactions that may share a commit. 1 gives each its own, at the price of one commit
    per table and transaction. Default: no bound but that of the batch."""
    commit_mode: Literal["grouped", "per-transaction"] = Field(
        default="grouped", validation_alias="lakeingest.commit.mode"
    )
    """What a version of a table is, and a publication: `grouped`, of all transactions of a batch;
    `per-transaction`, of one source transaction, so that the lake can be read as of each of them.
    That needs `transaction.mode=metadata`, gives Delta tables the feature `deletionVectors`, and
    takes about a second per transaction with Hudi or partitioned tables. Default: `grouped`, which
    costs least per event."""
    deletes: Literal["soft", "hard"] = Field(default="soft", validation_alias="lakeingest.deletes")
    """What a delete does: `soft` keeps the row, marked and hidden from readers; `hard` removes it
    and keeps its position in a side table. Default: `soft`, because it needs no second table to
    keep a deleted row deleted; but `hard` for Hudi tables with `metadata.columns=hudi`, whose
    readers know of no marked rows."""
    maintenance: MaintenanceConfig = Field(default_factory=MaintenanceConfig)
    """What maintenance keeps, and when a run does it."""
    toast_missing: Literal["fail", "null"] = Field(
        default="fail", validation_alias="lakeingest.toast.missing"
    )
    """What to do with a value that the event left out (unchanged TOAST) and that no earlier event
    had: stop, or NULL until an event brings it. Default: `fail`, because NULL would be
    indistinguishable from a real one."""
    guessed_types: Literal["stop", "accept"] = Field(
        default="stop", validation_alias="lakeingest.types.guess"
    )
    """What to do with a column of records without schemas whose type is not declared and not
    certain from its values: a whole number may be a date, a time or a timestamp, a text a decimal
    or bytes in base64. `accept`: publish it as the number or text that it seems to be. Default:
    `stop`, because the type of a table that has it changes only by loading the table anew."""
    foreign_changes: Literal["stop", "accept"] = Field(
        default="stop", validation_alias="lakeingest.foreign.changes"
    )
    """What to do where another writer changed the rows of a table (RESTORE, UPDATE, an append).
    `accept`: go on with them. Default: `stop`, because the table may not equal the source any more.
    What changes no row (OPTIMIZE, VACUUM, properties) passes."""
    schema_changes: SchemaChanges = Field(default_factory=SchemaChanges)
    """What to do about changes of tables' schemas."""
    metadata_columns: Literal["own", "hudi"] = Field(
        default="own", validation_alias="lakeingest.metadata.columns"
    )
    """Metadata columns in the tables besides the rows' own: `own` are those that lakeingest works
    with; `hudi` adds what tables of Hudi Streamer's Debezium sources have (RFC-39:
    `_change_operation_type`, `_event_lsn`, …), of the event that last decided the row. Default:
    `own`, which reads less of each event; `hudi` with adopted tables, which have them, and for Hudi
    tables where Hudi's Debezium source or payload is named. Once on, it stays on."""
    metadata_prefix: Identifier = Field(default="_", validation_alias="lakeingest.metadata.prefix")
    """Prefix of our own metadata columns in the tables. Default: `_`, which source columns rarely
    begin with; a clash is refused. Fixed once a lake is begun."""
    warnings: tuple[str, ...] = Field(default=())
    """What the configuration says without effect."""
    loads: Mapping[str, int] = Field(default_factory=dict)
    """Tables that were loaded anew, by the newest publication (``LakeFolders.loads``)."""

    def table(self, collection: str) -> TableConfig:
        """Return the settings of a collection's table, or the defaults if there are none."""
        return self.tables.get(collection) or TableConfig()

    def value_policies(self, collection: str) -> dict[str, str]:
        """Return the policies for a collection's values that may not fit or are ambiguous."""
        own = self.table(collection)
        return {
            "decimal_too_large": own.decimal_too_large or self.source.decimal_too_large,
            "infinite_times": own.infinite_times or self.infinite_times,
            "ambiguous_nulls": own.ambiguous_nulls or self.ambiguous_nulls,
        }

    def schema_policies(self, collection: str) -> dict[str, str]:
        """Return the policy for each kind of change of a collection's schema."""
        own, common = self.table(collection).schema_changes, self.schema_changes
        return {
            kind: getattr(own if kind in own.model_fields_set else common, kind) for kind in KINDS
        }

    @property
    def folders(self) -> LakeFolders:
        """The folders of the tables."""
        paths = {name: table.path for name, table in self.tables.items() if table.path}
        return LakeFolders(self.target.path, paths, self.loads)

    @model_validator(mode="after")
    def _parts_agree(self) -> PipelineConfig:
        problems = contradictions(self)
        if problems:
            raise Problems(problems)
        return self

    def format_of(self, collection: str) -> str:
        """Return the format of a collection's table."""
        return self.table(collection).format or self.target.format

    def deletes_are_hard(self, format_: str) -> bool:
        """Return whether a delete removes its row from tables of a format.

        A reader of Hudi Streamer's tables expects no deleted rows. He does not know lakeingest's
        column that marks a row as deleted.
        """
        if "deletes" in self.model_fields_set:
            return self.deletes == "hard"
        return self.has_event_columns and format_ == "hudi"

    @property
    def has_event_columns(self) -> bool:
        """Whether tables have RFC-39's columns.

        Adopted tables have these columns already, and their old values must not stay there.
        """
        adopted = any(table.adopt for table in self.tables.values())
        return self.metadata_columns == "hudi" or adopted

    def metadata(self) -> MetadataColumns:
        """Return the metadata columns of the tables."""
        # Not imported at the top: the report of a misspelt key must not wait for pyspark.
        from lakeingest.event_columns import BY_SOURCE
        from lakeingest.frame_schemas import MetadataColumns

        streamer_source = CONNECTORS[self.source.connector].streamer_source
        event = BY_SOURCE[streamer_source] if self.has_event_columns else ()
        return MetadataColumns(self.metadata_prefix, [item.name for item in event])

    @property
    def divides_batches(self) -> bool:
        """Whether tables may get a version per transaction without a commit's work for each."""
        target = self.target
        hides_rows = target.delta_commit == "direct" and target.delta_deletion_vectors
        return self.formats() == {"delta"} and hides_rows

    def formats(self) -> set[str]:
        """Return the formats that tables may have."""
        return {
            self.target.format,
            *(table.format for table in self.tables.values() if table.format),
        }
