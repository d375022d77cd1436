"""Records out of Kafka, in explicit ranges of offsets, by Spark's batch reader.

The driver asks the broker which offsets there are (``broker.py``), the planner fixes ranges, and
Spark's executors fetch exactly these. Rejected: ``subscribe`` or ``subscribePattern``, which would
settle the partitions a second time, at another moment; Structured Streaming (see ``contract.py``);
and a Python consumer, which would bring every record through the driver.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from lakeingest import frame_schemas
from lakeingest.errors import UnavailableError
from lakeingest.source.bounds import check_retained, wanted_ranges
from lakeingest.source.client_options import ClientOptions, client_options
from lakeingest.source.contract import OffsetRange, TopicPartition, Watermarks
from lakeingest.source.record import as_record
from lakeingest.source.topics import TopicRule

if TYPE_CHECKING:
    from lakeingest.source.broker import Broker


class KafkaSource:
    """Topics of a Kafka cluster as a ``contract.Source``.

    Args:
        spark: Session that reads; Spark's Kafka connector must be on its class path.
        options: Settings of the Kafka client by the client's own names (no ``kafka.`` before them);
            ``bootstrap.servers`` is required.
        topic_prefix: Debezium's ``topic.prefix``.
        topics: Data topics that must exist; empty for those that pattern or prefix select.
        topic_pattern: Regular expression over whole topic names, or None.
        transaction_topic: The topic of BEGIN and END, or None.
        retired: Topics that are not read any more.

    Raises:
        ConfigError: A setting is missing, cannot be right, or has no equal in one of the clients.
        UnavailableError: The package ``confluent-kafka`` is not installed.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: Mapping[str, str],
        topic_prefix: str,
        topics: tuple[str, ...] = (),
        topic_pattern: str | None = None,
        transaction_topic: str | None = None,
        retired: tuple[str, ...] = (),
    ) -> None:
        self._spark = spark
        self._options = client_options(options)
        self._rule = TopicRule(topic_prefix, topics, topic_pattern, transaction_topic, retired)
        self._broker = _open_broker(self._options)

    def topics(self) -> tuple[str, ...]:
        """Return the data topics that exist now, sorted.

        Raises:
            UnavailableError: No broker answers, or a listed topic does not exist.
            AccessError: The broker refuses the login or the question.
        """
        return self._rule.select(self._broker.topics(), self._broker.where)

    def watermarks(self, topics: Sequence[str]) -> Mapping[TopicPartition, Watermarks]:
        """Return the bounds of every partition of ``topics``; up to the last stable offset.

        Raises:
            UnavailableError: No broker answers, or a topic does not exist.
            AccessError: The broker refuses the login or the question.
        """
        return self._broker.watermarks(topics)

    def read(self, ranges: Sequence[OffsetRange]) -> DataFrame:
        """Return the records of ``ranges`` as ``RECORD``, lazily.

        The bounds are asked for once more, now; what retention removes between now and the action
        fails in the action (translate it with ``bounds.data_loss_error``).

        Raises:
            DataError: The log does not hold a range any more.
            UnavailableError: No broker answers, a topic is gone, or Spark has no Kafka connector.
        """
        wanted = wanted_ranges(ranges)
        if not wanted:
            return self._spark.createDataFrame([], frame_schemas.RECORD)
        check_retained(wanted, self.watermarks(sorted({span.topic for span in wanted})))
        settings = {f"kafka.{key}": value for key, value in self._options.reader.items()}
        settings |= {
            "assign": _by_topic(wanted, None),
            "startingOffsets": _by_topic(wanted, "start"),
            "endingOffsets": _by_topic(wanted, "end"),
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


def _by_topic(wanted: Sequence[OffsetRange], bound: str | None) -> str:
    """Return the JSON that Spark's reader wants: partitions per topic, or offsets per partition."""
    if bound is None:
        listed: dict[str, list[int]] = {}
        for span in wanted:
            listed.setdefault(span.topic, []).append(span.partition)
        return json.dumps(listed)
    offsets: dict[str, dict[str, int]] = {}
    for span in wanted:
        offset = span.start if bound == "start" else span.end
        offsets.setdefault(span.topic, {})[str(span.partition)] = offset
    return json.dumps(offsets)
