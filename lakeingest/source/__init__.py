"""Read records from a Kafka cluster or a recorded folder, behind one contract.

``open_registry`` does the same for the schemas of Avro records.

``open_source`` receives its part of the configuration as a protocol. So this package does not
import ``config/``, and a test can open a source without a whole pipeline.
"""

from __future__ import annotations

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
from lakeingest.topic_names import TopicNames

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


class SourceSettings(Protocol):
    """The part of a source's configuration that says where its records are.

    ``config.model.SourceConfig`` satisfies this protocol and documents each field.
    """

    @property
    def kind(self) -> str:
        """``recorded`` or ``kafka``."""

    @property
    def path(self) -> str | None:
        """The folder of a recorded source."""

    @property
    def names(self) -> TopicNames:
        """The settings that select topics."""

    @property
    def transaction_topic(self) -> str | None:
        """The topic of BEGIN and END."""

    def kafka_client_options(self) -> dict[str, str]:
        """Return the settings of the Kafka client, by the client's own names."""


def open_source(spark: SparkSession, config: SourceSettings) -> Source:
    """Open the source that a configuration describes, without reading anything yet.

    Args:
        spark: Session that reads the records.
        config: The part of the configuration that says where the records are.

    Raises:
        ConfigError: The kind is unknown, a setting is missing, or a client has no equivalent of a
            setting.
        UnavailableError: The package that reads Kafka is not installed.
    """
    if config.kind == "kafka":
        return KafkaSource(
            spark, config.kafka_client_options(), config.names, config.transaction_topic
        )
    if config.kind != "recorded":
        message = f"Unknown kind of source {config.kind!r}: use 'kafka' or 'recorded'."
        raise ConfigError(message)
    if config.path is None:
        message = "A recorded source needs the path of its folder."
        raise ConfigError(message)
    return RecordedSource(spark, config.path, config.names, config.transaction_topic)
