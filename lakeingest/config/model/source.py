"""Define the settings of a source: which log lakeingest reads, and how its events are written.

The schema of a record already says most about its values. For records with a schema only those
settings count that a schema cannot express (``decimal.format``, the policy for too large values).

Whole transactions are the purpose of this project, so they are the default order. Some sources have
no transaction metadata (YugabyteDB's gRPC connector counts no rows; another tool wrote the topics).
lakeingest then still applies the changes of each row in the right order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import (
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from lakeingest.config.model.fields import (
    ConfigModel,
    FolderPath,
    RegularExpression,
    SkippedRecord,
    Text,
    consequence,
)
from lakeingest.config.model.table import TooLarge
from lakeingest.topic_names import TopicNames

REFUSED = {
    "mongodb": "out of scope: its events hold documents, not rows of a table with columns. Send "
    "it through a tool for documents",
}
"""Refused connectors that a user may well name, with the reason: the user must know whether to
wait, to change the connector or to look for another tool."""


def _not_refused(connector: object) -> object:
    if isinstance(connector, str) and connector in REFUSED:
        message = f"{connector} is {REFUSED[connector]}"
        raise ValueError(message)
    return connector


Connector = Annotated[
    Literal[
        "postgresql",
        "mysql",
        "mariadb",
        "sqlserver",
        "oracle",
        "db2",
        "yugabytedb",
        "yugabytedb-grpc",
    ],
    BeforeValidator(_not_refused),
]
"""The keys of ``connectors.CONNECTORS``; a type checker needs them spelt out."""


class SourceConfig(ConfigModel):
    """Where change events are read from."""

    kind: Literal["recorded", "kafka"] = Field(validation_alias="lakeingest.source.kind")
    """Where events come from: a folder of recorded topics, or a Kafka cluster. If not given:
    `kafka` when `bootstrap.servers` is set, else `recorded`."""
    path: FolderPath | None = Field(default=None, validation_alias="lakeingest.source.path")
    """Folder of the recorded run, with `topics/` in it. Relative to the working directory. Needed
    for `recorded`, without effect for `kafka`."""
    connector: Connector = Field(validation_alias="lakeingest.source.connector")
    """Debezium connector that wrote the events; it decides how positions compare. `yugabytedb` is
    YugabyteDB's logical replication connector, `yugabytedb-grpc` the other one (YSQL tables, with
    `lakeingest.transaction.mode=none`). No default: a wrong guess would order events wrongly
    without any error."""
    topic_prefix: Text = Field(validation_alias="lakeingest.source.topic.prefix")
    """The connector's `topic.prefix`. A data topic is `<prefix>.<collection>`. No default: it also
    names the transaction topic."""
    topics: tuple[Text, ...] = Field(default=(), validation_alias="lakeingest.source.topics")
    """Topics to ingest: names separated by commas, or one regular expression that a whole topic
    name must match. All begin with the prefix; topics that a router renamed are refused. Default:
    every data topic of the prefix, because a table that is left out tears the transactions that
    touched it."""
    topic_pattern: RegularExpression | None = Field(default=None)
    """The regular expression, when `topics` was given as one."""
    retired_topics: tuple[str, ...] = Field(default=())
    """Topics that the lake does not read any more (`retire`); no key."""
    rewound_topics: Mapping[str, Mapping[int, int]] = Field(default_factory=dict)
    """Topics that are read again from their beginning (`reload`), each with the offset of every
    partition that was to be read next; no key."""
    kafka_options: Mapping[str, SecretStr] = Field(default_factory=dict)
    """Native Kafka client settings, as they are: every key that begins neither with `lakeingest.`
    nor with `hoodie.`."""
    format: Literal["json", "avro"] = Field(
        default="json", validation_alias="lakeingest.source.format"
    )
    """How keys and values are written: `json` by Connect's JsonConverter, with or without schemas,
    `avro` by an Avro converter with a schema registry. If not given: `avro` when
    `schema.registry.url` is set. A recorded source has the schemas in its `registry.json`."""
    envelope: Literal["debezium", "flattened"] = Field(
        default="debezium", validation_alias="lakeingest.source.envelope"
    )
    """What a value is: `debezium`: the connector's envelope; `flattened`: the row, as
    ExtractNewRecordState leaves it, with position and transaction in `add.fields` (`lakeingest
    guide connectors`). Default: the envelope, which says all."""
    registry_options: Mapping[str, SecretStr] = Field(default_factory=dict)
    """Native settings of the schema registry: every key that begins with `schema.registry.`; the
    url holds no credentials."""
    registry_timeout_seconds: int = Field(
        default=10, ge=1, validation_alias="lakeingest.registry.timeout.seconds"
    )
    """Seconds that a schema registry may be silent before a request counts as failed. Default: a
    registry answers from memory, in milliseconds."""
    registry_retries: int = Field(default=5, ge=0, validation_alias="lakeingest.registry.retries")
    """How often a request is repeated that met a registry overloaded or away, with waits that
    double from one second. Default: half a minute, the restart of a registry."""
    decimal_mode: Literal["precise", "string", "double"] = Field(
        default="precise", validation_alias="lakeingest.source.decimal.handling.mode"
    )
    """The connector's `decimal.handling.mode`. Default as Debezium's; the only one that keeps a
    number exact and typed."""
    binary_mode: Literal["bytes", "base64", "base64-url-safe", "hex"] = Field(
        default="bytes", validation_alias="lakeingest.source.binary.handling.mode"
    )
    """The connector's `binary.handling.mode`. Default as Debezium's."""
    time_mode: Literal[
        "adaptive",
        "adaptive_time_microseconds",
        "connect",
        "isostring",
        "microseconds",
        "nanoseconds",
        "structured",
    ] = Field(default="adaptive", validation_alias="lakeingest.source.time.precision.mode")
    """The connector's `time.precision.mode`, by which declared columns are read where records carry
    no schema. Default as Debezium's: a `TIMESTAMP_NTZ` is then a number of microseconds; one of
    milliseconds (MySQL's `DATETIME`, PostgreSQL's `timestamp(3)`) needs the comment
    `io.debezium.time.Timestamp`."""
    decimal_format: Literal["BASE64", "NUMERIC"] = Field(
        default="BASE64", validation_alias="lakeingest.source.decimal.format"
    )
    """JsonConverter's `decimal.format`. Default as Kafka Connect's."""
    decimal_too_large: TooLarge = Field(
        default="fail", validation_alias="lakeingest.decimal.too.large"
    )
    """What a column becomes whose schema allows more digits than the 38 of a lake's decimal
    (MySQL's `DECIMAL(65)`): `fail`: a decimal of 38 digits, and a value that has more stops the
    run; `string`: its digits as text. Default: `fail`, because most such columns never hold such
    values, and numbers are what they are declared for. Set it before the first run: a column keeps
    its type."""
    snapshot_again: Literal["stop", "replace"] = Field(
        default="stop", validation_alias="lakeingest.source.snapshot.again"
    )
    """What to do at a new initial snapshot after transactions were applied (the connector started
    over). `replace`: it is one of all tables; a new epoch begins, in which it replaces what they
    hold. Default: `stop`, because a snapshot of some tables, or of some rows, looks the same."""
    missing_head: Literal["stop", "accept"] = Field(
        default="stop", validation_alias="lakeingest.source.missing.head"
    )
    """What to do where a partition is read for the first time and does not begin at offset 0.
    `accept`: go on from where it begins, with a warning; a transaction of which rows or the END
    are gone still stops the run, so it helps where all topics were cut between the same two
    transactions, seldom after retention. Needed until the next publication, which stores where
    the partition begins. Default: `stop`, because rows that were removed before would be missing
    in the lake."""
    new_topic_id: Literal["stop", "accept"] = Field(
        default="stop", validation_alias="lakeingest.source.new.topic.id"
    )
    """What to do where Kafka's id of a topic is another one than when the topic was last read.
    `accept`: it is a copy with the same offsets (a linked cluster); go on. Default: `stop`, because
    in a topic that was deleted and made again an offset means another record."""
    skip_records: tuple[SkippedRecord, ...] = Field(
        default=(), validation_alias="lakeingest.source.skip.records"
    )
    """Records that are no changes of a table and would stop the run: `topic:partition:offset`,
    separated by commas. A record that can be read is applied all the same; a row that a transaction
    counts is still missing. Default: none, because an unreadable record may be any change."""
    transaction_mode: Literal["metadata", "boundary", "none"] = Field(
        default="metadata", validation_alias="lakeingest.transaction.mode"
    )
    """What belongs together: `metadata`: Debezium's transaction topic says it, and a publication is
    a commit of the source; `boundary`: without that topic, rows of a later transaction show that
    one is over, nobody counts its rows, and the newest one waits; `none`: each event is on its own,
    rows are right one by one, and a publication may hold half of a transaction. Default:
    `metadata`, because it alone shows a row that is missing. Fixed once a lake is begun."""
    boundary_delay_seconds: int = Field(
        default=10, ge=1, validation_alias="lakeingest.transaction.boundary.delay.seconds"
    )
    """With `lakeingest.transaction.mode=boundary`: for how many seconds a record may be under way
    from the connector to its partition. A transaction is over when a row was written so long after
    one of a later transaction. Default: 10, because a producer that tries again takes a few; a row
    that comes later still is applied late, not with its transaction."""
    ordering_columns: tuple[Text, ...] = Field(
        default=(), validation_alias="lakeingest.source.ordering.columns"
    )
    """What orders the changes of a row, separated by commas, most significant first: columns that
    every row has (whole numbers that are not negative, or timestamps), or fields of the source
    block (`source.ts_ms`); of equal ones the later record counts. Deletes need the whole row before
    them. Only with `lakeingest.transaction.mode=none`. Default: the source's log."""
    transaction_topic: Text = Field(
        default_factory=lambda data: f"{data['topic_prefix']}.transaction",
        validation_alias="lakeingest.transaction.topic",
    )
    """Topic with the BEGIN and END messages, in one partition. Default: `<prefix>.transaction`, as
    Debezium names it."""

    @field_validator("topics")
    @classmethod
    def _topics_are_of_the_prefix(
        cls, topics: tuple[str, ...], info: ValidationInfo
    ) -> tuple[str, ...]:
        _refuse_other_names(topics, info)
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
    def is_final(self) -> bool:
        """Whether the source gets no more records."""
        return self.kind == "recorded"

    @property
    def ends_topic(self) -> str | None:
        """The topic that says which events form a transaction; ``None``: without transactions."""
        return self.transaction_topic if self.transaction_mode == "metadata" else None

    @property
    def replaces_tables(self) -> bool:
        """Whether a new initial snapshot replaces what the tables hold."""
        return self.snapshot_again == "replace"

    @property
    def is_whole(self) -> bool:
        """Whether transactions are applied whole."""
        return self.transaction_mode != "none"

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

    def registry_client_options(self) -> dict[str, str]:
        """Return the registry's settings in plain text: for its client, never for logs."""
        return {key: value.get_secret_value() for key, value in self.registry_options.items()}


def _refuse_other_names(topics: Sequence[str], info: ValidationInfo) -> None:
    """Refuse listed topics that do not begin with the topic prefix.

    A router in Kafka Connect (``RegexRouter``, an outbox, one topic for many tables) renames a
    topic, but not the table in BEGIN and END. lakeingest would not count the rows of a renamed
    topic, so it would publish transactions with missing rows; and it would wait for rows of a topic
    that it does not read. Without whole transactions there are no counts, but before the first
    publication lakeingest finds a lake's tables by the topics' names. So both modes refuse such
    topics.

    Raises:
        ValueError: A topic does not begin with the prefix; the message names the remedy.
    """
    prefix = info.data.get("topic_prefix")
    outside = [topic for topic in topics if not topic.startswith(f"{prefix}.")]
    if prefix is None or not outside:  # Without a prefix: it is itself missing or wrong.
        return
    is_secret = not info.data["referenced"].isdisjoint({"topics", "topic_prefix"})
    detail = "" if is_secret else f" ('{prefix}.'), which {', '.join(outside)} lack"
    message = (
        f"a topic begins with lakeingest.source.topic.prefix and a dot{detail}. List the topics as "
        "the connector names them, those of another connector in a pipeline of their own. Topics "
        "that a router renamed are not supported: BEGIN and END count rows by the names that the "
        "connector gave, so take the router out"
    )
    raise ValueError(message)


_TOPIC_NAMES = re.compile(r"[A-Za-z0-9._-]*(\s*,\s*[A-Za-z0-9._-]*)*")


def are_topic_names(text: str) -> bool:
    """Return whether a value for topics is a list of names, not a pattern.

    A list of names is also a regular expression; any other text must be meant as a pattern.
    """
    return _TOPIC_NAMES.fullmatch(text) is not None
