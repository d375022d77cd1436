"""Where records come from: a Kafka cluster or a recorded folder, behind one contract.

``open_registry`` does the same for the schemas of records in Avro.

``open_source`` takes what it needs of the configuration as a protocol, so that this package does
not import ``config/`` and the tests need no whole pipeline to open a source.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pyspark.sql import SparkSession

from lakeingest.errors import ConfigError
from lakeingest.source.bounds import data_loss_error
from lakeingest.source.contract import OffsetRange, Source, TopicPartition, Watermarks
from lakeingest.source.kafka import KafkaSource
from lakeingest.source.recorded import RecordedSource
from lakeingest.source.registry.contract import Registry
from lakeingest.source.registry.factory import open_registry
from lakeingest.source.registry.recorded import RecordedRegistry
from lakeingest.source.topics import MissingTopicError

__all__ = [
    "KafkaSource",
    "MissingTopicError",
    "OffsetRange",
    "RecordedRegistry",
    "RecordedSource",
    "Registry",
    "Source",
    "SourceSettings",
    "TopicPartition",
    "Watermarks",
    "data_loss_error",
    "open_registry",
    "open_source",
]


class _Secret(Protocol):
    def get_secret_value(self) -> str: ...


class SourceSettings(Protocol):
    """The part of a source's configuration that says where its records lie.

    ``config.model.SourceConfig`` fits it; what each field means is written there.
    """

    @property
    def kind(self) -> str:
        """``recorded`` or ``kafka``."""

    @property
    def path(self) -> str | None:
        """The folder of a recorded source."""

    @property
    def topic_prefix(self) -> str:
        """Debezium's ``topic.prefix``."""

    @property
    def topics(self) -> tuple[str, ...]:
        """Data topics that must exist; empty to select by pattern or prefix."""

    @property
    def topic_pattern(self) -> str | None:
        """Regular expression over whole topic names."""

    @property
    def transaction_topic(self) -> str | None:
        """The topic of BEGIN and END."""

    @property
    def retired_topics(self) -> tuple[str, ...]:
        """Topics that are not read any more."""

    @property
    def kafka_options(self) -> Mapping[str, _Secret]:
        """Settings of the Kafka client by its own names."""


def open_source(spark: SparkSession, config: SourceSettings) -> Source:
    """Open the source that a configuration describes; nothing is read yet.

    Args:
        spark: Session that reads the records.
        config: Where they lie.

    Raises:
        ConfigError: The kind is unknown, or a setting is missing or has no equal in a client.
        UnavailableError: The package that reads Kafka is not installed.
    """
    rule = (
        config.topic_prefix,
        config.topics,
        config.topic_pattern,
        config.transaction_topic,
        config.retired_topics,
    )
    if config.kind == "kafka":
        options = {key: value.get_secret_value() for key, value in config.kafka_options.items()}
        return KafkaSource(spark, options, *rule)
    if config.kind != "recorded":
        message = f"Unknown kind of source {config.kind!r}: use 'kafka' or 'recorded'."
        raise ConfigError(message)
    if config.path is None:
        message = "A recorded source needs the path of its folder."
        raise ConfigError(message)
    return RecordedSource(spark, config.path, *rule)
