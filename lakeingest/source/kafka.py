"""Read explicit offset ranges from Kafka with Spark's batch reader.

The driver queries the broker for the existing offsets (``broker.py``), the planner fixes ranges,
and Spark's executors fetch exactly these ranges. Rejected: ``subscribe`` or ``subscribePattern``,
which would list the partitions a second time, at another moment; Structured Streaming (see
``contract.py``); and a Python consumer, which would send every record through the driver.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lakeingest.cast import no_rows
from lakeingest.errors import UnavailableError
from lakeingest.frame_schemas import RECORD
from lakeingest.source.bounds import check_retained, checked_ranges
from lakeingest.source.client_options import ClientOptions, client_options
from lakeingest.source.contract import OffsetRange, TopicPartition, Watermarks
from lakeingest.source.record import as_record
from lakeingest.source.retention import retention_risks
from lakeingest.source.topics import select_topics
from lakeingest.topic_names import TopicNames

if TYPE_CHECKING:
    from lakeingest.source.broker import Broker


class KafkaSource:
    """Topics of a Kafka cluster as a ``contract.Source``.

    Args:
        spark: Session that reads; Spark's Kafka connector must be on its class path.
        options: Settings of the Kafka client by the client's own names (no ``kafka.`` before them);
            ``bootstrap.servers`` is required.
        names: The settings that select topics.
        transaction_topic: The topic of BEGIN and END, or ``None``.

    Raises:
        ConfigError: A setting is missing or invalid, or one of the clients has no equivalent of it.
        UnavailableError: The package ``confluent-kafka`` is not installed.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: Mapping[str, str],
        names: TopicNames,
        transaction_topic: str | None = None,
    ) -> None:
        self._spark = spark
        self._options = client_options(options)
        self._names, self._transaction_topic = names, transaction_topic
        self._broker = _open_broker(self._options)

    def topics(self) -> tuple[str, ...]:
        """Return the data topics that exist now, sorted.

        Raises:
            UnavailableError: No broker answers, or a listed topic does not exist.
            AccessError: The broker refuses the login or the request.
        """
        return select_topics(
            self._broker.topics(), self._names, self._transaction_topic, self._broker.where
        )

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        """Return the bounds of every partition of ``topics``, see ``Broker.watermarks``.

        Raises:
            UnavailableError: No broker answers, or a topic does not exist.
            AccessError: The broker refuses the login or the request.
        """
        return self._broker.watermarks(topics)

    def risks(self, topics: Sequence[str]) -> tuple[str, ...]:
        """Return what the topics' settings may remove; see ``Retaining``."""
        return tuple(retention_risks(self._broker.retention(topics)))

    def read(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        """Return the records of ``ranges`` as ``RECORD``, lazily.

        Query the broker for the bounds once more. If retention removes records of a range between
        this call and the action, the action fails (translate its error with
        ``bounds.data_loss_error``).

        Raises:
            DataError: The log no longer holds a range.
            UnavailableError: No broker answers, a topic is gone, or Spark has no Kafka connector.
        """
        spans = checked_ranges(ranges)
        if not spans:
            return as_record(no_rows(self._spark, RECORD))
        check_retained(spans, self.watermarks(sorted({span.topic for span in spans})))
        settings = {f"kafka.{key}": value for key, value in self._options.reader.items()}
        settings |= {
            "assign": _by_topic(spans, None),
            "startingOffsets": _by_topic(spans, "start"),
            "endingOffsets": _by_topic(spans, "end"),
            "includeHeaders": "true",
            "failOnDataLoss": "true",
        }
        try:
            return as_record(self._spark.read.format("kafka").options(**settings).load())
        except AnalysisException as error:
            if "Failed to find data source" not in str(error):
                raise
            message = (
                "This Spark session has no Kafka connector. Open it with lakeingest's session, or "
                "put spark-sql-kafka-0-10 of your Spark and Scala version on its class path."
            )
            raise UnavailableError(message) from error

    def close(self) -> None:
        """Release the client on the driver. Safe to call twice."""
        self._broker.close()


def _open_broker(options: ClientOptions) -> Broker:
    try:
        from lakeingest.source.broker import Broker
    except ImportError as error:
        message = (
            f"Reading Kafka needs the package confluent-kafka ({error}): "
            "pip install 'lakeingest[kafka]'."
        )
        raise UnavailableError(message) from error
    return Broker(options)


def _by_topic(spans: Sequence[OffsetRange], bound: str | None) -> str:
    """Return the JSON for Spark's reader: partitions per topic, or offsets per partition."""
    if bound is None:
        partitions: dict[str, list[int]] = {}
        for span in spans:
            partitions.setdefault(span.topic, []).append(span.partition)
        return json.dumps(partitions)
    offsets: dict[str, dict[str, int]] = {}
    for span in spans:
        offset = span.start if bound == "start" else span.end
        offsets.setdefault(span.topic, {})[str(span.partition)] = offset
    return json.dumps(offsets)
