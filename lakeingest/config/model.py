"""Define the typed configuration of a pipeline: every setting, its default, and the reason for it.

These models are the only source of truth about settings. The key table (``keys.py``), the checks
(``load.py``) and the printed reference (``reference.py``) use their fields. So a setting cannot
exist in one of them and be missing in another. The rejected way is a dictionary of strings for all
stages: each stage would parse its own settings, and nobody would notice a misspelt key.

Models are frozen: a run must end with the settings with which it started (``fields.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator

from lakeingest.config.connector import Connector
from lakeingest.config.consistent import contradictions
from lakeingest.config.fields import (
    ConfigModel,
    FolderPath,
    Identifier,
    Problems,
    RegularExpression,
    SkippedRecord,
    Text,
    consequence,
)
from lakeingest.config.log_settings import LogSettings
from lakeingest.config.order_settings import OrderSettings
from lakeingest.config.schema_changes import KINDS, SchemaChanges
from lakeingest.config.table import TableConfig
from lakeingest.config.topic_names import refuse_other_names
from lakeingest.config.value_settings import DoubtfulValues, ValueSettings, value_policies
from lakeingest.connectors import CONNECTORS
from lakeingest.folders import LakeFolders
from lakeingest.topic_names import TopicNames

if TYPE_CHECKING:
    from lakeingest.frame_schemas import MetadataColumns


class SourceConfig(ValueSettings, OrderSettings, LogSettings):
    """Where change events are read from."""

    kind: Literal["recorded", "kafka"] = Field(
        description="Where events come from: a folder of recorded topics, or a Kafka cluster. "
        "If not given: `kafka` when `bootstrap.servers` is set, else `recorded`."
    )
    path: FolderPath | None = Field(
        default=None,
        description="Folder of the recorded run (with `manifest.json` and `topics/`). Relative "
        "to the working directory. Needed for `recorded`, without effect for `kafka`.",
    )
    connector: Connector = Field(
        description="Debezium connector that wrote the events; it decides how positions compare. "
        "`yugabytedb` is YugabyteDB's logical replication connector, `yugabytedb-grpc` the other "
        "one (YSQL tables, with `lakeingest.transaction.mode=none`). "
        "No default: a wrong guess would order events wrongly without any error."
    )
    topic_prefix: Text = Field(
        description="The connector's `topic.prefix`. A data topic is `<prefix>.<collection>`. "
        "No default: it also names the transaction topic."
    )
    topics: tuple[Text, ...] = Field(
        default=(),
        description="Topics to ingest: names separated by commas, or one regular expression that "
        "a whole topic name must match. All begin with the prefix; topics that a router renamed "
        "are refused. Default: every data topic of the prefix, because a table that is left out "
        "tears the transactions that touched it.",
    )
    topic_pattern: RegularExpression | None = Field(
        default=None, description="The regular expression, when `topics` was given as one."
    )
    retired_topics: tuple[str, ...] = Field(
        default=(), description="Topics that the lake does not read any more (`retire`); no key."
    )
    transaction_topic: Text = Field(
        default_factory=lambda data: f"{data['topic_prefix']}.transaction",
        description="Topic with the BEGIN and END messages, in one partition. Default: "
        "`<prefix>.transaction`, as Debezium names it.",
    )
    kafka_options: Mapping[str, SecretStr] = Field(
        default_factory=dict,
        description="Native Kafka client settings, as they are: every key that begins neither "
        "with `lakeingest.` nor with `hoodie.`.",
    )
    format: Literal["json", "avro"] = Field(
        default="json",
        description="How keys and values are written: `json` by Connect's JsonConverter, with or "
        "without schemas, `avro` by an Avro converter with a schema registry. If not given: `avro` "
        "when `schema.registry.url` is set. A recorded source has the schemas in its "
        "`registry.json`.",
    )
    envelope: Literal["debezium", "flattened"] = Field(
        default="debezium",
        description="What a value is: `debezium`: the connector's envelope; `flattened`: the row, "
        "as ExtractNewRecordState leaves it, with position and transaction in "
        "`add.fields` (`lakeingest guide connectors`). Default: the envelope, which says all.",
    )
    registry_options: Mapping[str, SecretStr] = Field(
        default_factory=dict,
        description="Native settings of the schema registry: every key that begins with "
        "`schema.registry.`; the url holds no credentials.",
    )
    registry_timeout_seconds: int = Field(
        default=10,
        ge=1,
        description="Seconds that a schema registry may be silent before a request counts as "
        "failed. Default: a registry answers from memory, in milliseconds.",
    )
    registry_retries: int = Field(
        default=5,
        ge=0,
        description="How often a request is repeated that met a registry overloaded or away, with "
        "waits that double from one second. Default: half a minute, the restart of a registry.",
    )

    snapshot_again: Literal["stop", "replace"] = Field(
        default="stop",
        description="What to do at a new initial snapshot after transactions were applied (the "
        "connector started over). `replace`: it is one of all tables; a new epoch begins, in which "
        "it replaces what they hold. Default: `stop`, because a snapshot of some tables, or of "
        "some rows, looks the same.",
    )

    skip_records: tuple[SkippedRecord, ...] = Field(
        default=(),
        description="Records that are no changes of a table and would stop the run: "
        "`topic:partition:offset`, separated by commas. A record that can be read is applied all "
        "the same; a row that a transaction counts is still missing. Default: none, because an "
        "unreadable record may be any change.",
    )

    @field_validator("topics")
    @classmethod
    def _topics_are_of_the_prefix(
        cls, topics: tuple[str, ...], info: ValidationInfo
    ) -> tuple[str, ...]:
        refuse_other_names(topics, info.data.get("topic_prefix"), info.data["referenced"])
        return topics

    @model_validator(mode="after")
    def _kind_has_what_it_needs(self) -> SourceConfig:
        url = self.registry_options.get("schema.registry.url")
        if self.kind == "recorded" and self.path is None:
            message = "a recorded source needs lakeingest.source.path"
        elif self.kind == "kafka" and "bootstrap.servers" not in self.kafka_options:
            message = "a Kafka source needs bootstrap.servers"
        elif self.kind == "kafka" and self.format == "avro" and url is None:
            message = "Avro from Kafka needs schema.registry.url"
        elif url is not None and "@" in url.get_secret_value():
            message = "user and password belong into schema.registry.basic.auth.user.info"
        elif self.topics and self.topic_pattern is not None:
            message = "topics and a topic pattern exclude each other"
        else:
            return self
        raise consequence(message)

    @property
    def ends_topic(self) -> str | None:
        """The topic that says which events form a transaction; ``None``: without transactions."""
        return self.transaction_topic if self.transaction_mode == "metadata" else None

    @property
    def names(self) -> TopicNames:
        """The names of the connector's topics, and which of them lakeingest reads."""
        return TopicNames(self.topic_prefix, self.topics, self.topic_pattern, self.retired_topics)

    def selects(self, collection: str) -> bool:
        """Return whether lakeingest reads the topic of a collection."""
        return self.names.reads(collection)

    def kafka_client_options(self) -> dict[str, str]:
        """Return the Kafka settings in plain text, secrets included: for clients, never for logs.

        The names are the user's, that is, those of the Java client. A client with other names
        translates them itself.
        """
        return {key: value.get_secret_value() for key, value in self.kafka_options.items()}


class TargetConfig(ConfigModel):
    """Where tables and the ledger are kept."""

    format: Literal["delta", "hudi"] = Field(
        default="delta",
        description="Format of the tables. Default: `delta`. The ledger is a Delta table in either "
        "case.",
    )
    path: FolderPath = Field(
        description="Folder of the lake: the tables and the ledger lie below it. A relative path "
        "is relative to the working directory. One pipeline per folder."
    )
    hudi_table_type: Literal["COPY_ON_WRITE", "MERGE_ON_READ"] = Field(
        default="MERGE_ON_READ",
        description="How Hudi tables are kept. Default: `MERGE_ON_READ`, whose commits cost the "
        "same however large the table is; `COPY_ON_WRITE`: rewrites files, for cheaper reading. "
        "Fixed when a table is made.",
    )
    hudi_options: Mapping[str, SecretStr] = Field(
        default_factory=dict,
        description="Settings of Hudi's writer, `hoodie.*`, as they stand in the file; that of a "
        "lock may be a password.",
    )
    delta_commit: Literal["direct", "public"] = Field(
        default="direct",
        description="How small batches are committed to Delta, publications too (the ledger is a "
        "Delta table whatever the others are). Default: in a Delta transaction of our own, where "
        "engine and table allow it, which is twice as fast; `public`: by MERGE and append alone.",
    )

    single_writer: Literal["fenced", "guaranteed"] = Field(
        default="fenced",
        description="Who sees to it that one run writes at a time. Default: `fenced`, by the lake: "
        "where its storage lets two drivers commit the same version (S3 with Delta's default log "
        "store), a run stops before it writes. `guaranteed`: you do, on such a storage: never two "
        "runs at once, and none that wakes up later.",
    )

    def hudi_writer_options(self) -> dict[str, str]:
        """Return the settings of Hudi's writer in plain text: for the writer, never for logs."""
        return {key: value.get_secret_value() for key, value in self.hudi_options.items()}


class PipelineConfig(DoubtfulValues):
    """One pipeline: one connector's events into one lake."""

    name: Text = Field(
        description="Name of the pipeline; written into every commit, so it must not change "
        "between runs. No default: two pipelines with one name would fence each other."
    )
    source: SourceConfig
    target: TargetConfig
    tables: Mapping[str, TableConfig] = Field(
        default_factory=dict, description="The collections about which something is declared."
    )
    batch_max_events: int = Field(
        default=100_000,
        ge=1,
        description="Events that a batch aims at; a transaction is never cut, so one larger than "
        "this is a batch of its own. Default: large enough that the fixed cost of the commits is "
        "small, small enough that a batch fits a laptop.",
    )
    window_max_records: int = Field(
        default=250_000,
        ge=1,
        description="Records that are read and decoded together, for several batches; a window is "
        "never smaller than `batch.max.events`. Where a transaction is larger, what its rows need "
        "is read besides. The driver's memory depends on this, not on the backlog. Default: reads "
        "a backlog well and needs some hundred MB of it.",
    )
    window_max_bytes: int = Field(
        default=1 << 30,
        ge=1,
        description="Bytes of the records that are read together, as far as their size is known "
        "from those before. Default: 1 GiB, which few events reach; lower it for rows of many KB.",
    )
    commit_max_transactions: int | None = Field(
        default=None,
        ge=1,
        description="Source transactions that may share a commit. 1 gives each its own, at the "
        "price of one commit per table and transaction. Default: no bound but that of the batch.",
    )
    deletes: Literal["soft", "hard"] = Field(
        default="soft",
        description="What a delete does: `soft` keeps the row, marked and hidden from readers; "
        "`hard` removes it and keeps its position in a side table. Default: `soft`, because it "
        "needs no second table to keep a deleted row deleted; but `hard` for Hudi tables with "
        "`metadata.columns=hudi`, whose readers know of no marked rows.",
    )
    toast_missing: Literal["fail", "null"] = Field(
        default="fail",
        description="What to do with a value that the event left out (unchanged TOAST) and that "
        "no earlier event had: stop, or NULL until an event brings it. Default: `fail`, because "
        "NULL would be indistinguishable from a real one.",
    )
    foreign_changes: Literal["stop", "accept"] = Field(
        default="stop",
        description="What to do where another writer changed the rows of a table (RESTORE, UPDATE, "
        "an append). `accept`: go on with them. Default: `stop`, because the table may not equal "
        "the source any more. What changes no row (OPTIMIZE, VACUUM, properties) passes.",
    )
    unavailable_placeholder: Text = Field(
        default="__debezium_unavailable_value",
        description="The connector's `unavailable.value.placeholder`. Default as Debezium's.",
    )
    transaction_timeout_seconds: int = Field(
        default=600,
        ge=1,
        description="Seconds that a transaction may stay incomplete after its END was read before "
        "the run stops. Default: ten minutes, longer than a restart of Kafka Connect.",
    )
    uncounted_collections: tuple[Text, ...] = Field(
        default=(),
        description="Collections, separated by commas, whose rows a transform drops after Debezium "
        "counted them; their counts are subtracted. Default: none, so that a lost row is noticed.",
    )
    schema_changes: SchemaChanges = Field(
        default_factory=SchemaChanges, description="What to do about changes of tables' schemas."
    )
    metadata_columns: Literal["own", "hudi"] = Field(
        default="own",
        description="Metadata columns in the tables besides the rows' own: `own` are those that "
        "lakeingest works with; `hudi` adds what tables of Hudi Streamer's Debezium sources have "
        "(RFC-39: `_change_operation_type`, `_event_lsn`, …), of the event that last decided the "
        "row. Default: `own`, which reads less of each event; `hudi` with adopted tables, which "
        "have them, and for Hudi tables where Hudi's Debezium source or payload is named. Once on, "
        "it stays on.",
    )
    metadata_prefix: Identifier = Field(
        default="_",
        description="Prefix of our own metadata columns in the tables. Default: `_`, which source "
        "columns rarely begin with; a clash is refused.",
    )
    warnings: tuple[str, ...] = Field(
        default=(), description="What the configuration says without effect."
    )

    @property
    def ledger_path(self) -> str:
        """Folder of the ledger, inside the target folder: a reader needs only the lake."""
        return f"{self.target.path}/_lakeingest/ledger"

    def table(self, collection: str) -> TableConfig:
        """Return the settings of a collection's table, or the defaults if there are none."""
        return self.tables.get(collection) or TableConfig()

    def value_policies(self, collection: str) -> dict[str, str]:
        """Return the policies for a collection's values that may not fit or are ambiguous."""
        return value_policies(self.source, self, self.table(collection))

    def schema_policies(self, collection: str) -> dict[str, str]:
        """Return the policy for each kind of change of a collection's schema."""
        of_table, of_pipeline = self.table(collection).schema_changes, self.schema_changes
        return {kind: getattr(of_table, kind) or getattr(of_pipeline, kind) for kind in KINDS}

    @property
    def folders(self) -> LakeFolders:
        """The folders of the tables."""
        paths = {name: table.path for name, table in self.tables.items() if table.path}
        return LakeFolders(self.target.path, paths)

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

    def formats(self) -> set[str]:
        """Return the formats that tables may have."""
        return {
            self.target.format,
            *(table.format for table in self.tables.values() if table.format),
        }
