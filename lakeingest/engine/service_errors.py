"""Classify failures of other services than storage: Kafka, metastore, Spark's executors, engine.

A class has the meaning that its library gives it: Kafka's ``RetriableException`` and Delta's
``DeltaConcurrentModificationException`` are the libraries' own classes of temporary failures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from lakeingest.engine.java_errors import JavaError
from lakeingest.errors import AccessError, LakeingestError, TransientError, UnavailableError

_KAFKA_REFUSED = frozenset(
    {
        "org.apache.kafka.common.errors.AuthenticationException",
        "org.apache.kafka.common.errors.AuthorizationException",
    }
)
_KAFKA_AWAY = frozenset(
    {
        "org.apache.kafka.common.errors.RetriableException",
        "org.apache.kafka.common.errors.TimeoutException",
        "org.apache.kafka.common.errors.DisconnectException",
        "org.apache.kafka.common.config.ConfigException",
    }
)
_NO_ADDRESS = "No resolvable bootstrap urls"
_POLL = re.compile(r"Cannot fetch record for offset \d+ in \d+ milliseconds")
"""Message of Spark's ``KafkaDataConsumer`` in a ``java.util.concurrent.TimeoutException``."""

_METASTORE = "org.apache.thrift.transport.TTransportException"
_CONFLICT = (
    "org.apache.spark.sql.delta.DeltaConcurrentModificationException",
    "io.delta.exceptions.DeltaConcurrentModificationException",
)
_LOST = frozenset(
    {
        "org.apache.spark.shuffle.FetchFailedException",
        "org.apache.spark.shuffle.MetadataFetchFailedException",
        "org.apache.spark.storage.BlockNotFoundException",
    }
)
_EXECUTOR = re.compile(
    r"^Job aborted due to stage failure: [^\n]{0,200}Lost task [^\n]{0,100}\): ExecutorLostFailure"
)
_CHECKPOINT = re.compile(r"^(Checkpoint block rdd_\d+_\d+ not found|[^\n]*\bCheckpoint block rdd_)")


def service_error(thrown: Iterable[JavaError]) -> LakeingestError | None:
    """Return the error of a service that Java exceptions describe; None: not about a service.

    Args:
        thrown: Java exceptions, outermost first (``java_errors``).
    """
    errors = (_error_of(exception) for exception in thrown)
    return next((error for error in errors if error is not None), None)


def _error_of(java: JavaError) -> LakeingestError | None:
    classes = set(java.classes)
    if not _KAFKA_REFUSED.isdisjoint(classes):
        return AccessError(
            f"Kafka refused Spark's reader ({java.name}). Check the login settings and the rights "
            "of its user, on the executors, too. The lake stands at its last publication."
        )
    if _is_kafka_away(java, classes):
        return UnavailableError(
            f"Kafka did not answer Spark's reader ({java.name}). Check that the brokers run and "
            "that the executors reach them. The lake stands at its last publication; run again."
        )
    if _METASTORE in classes:
        return UnavailableError(
            f"The metastore did not answer ({java.name}). Check that it runs and is reachable. The "
            "lake stands at its last publication; run again."
        )
    if not classes.isdisjoint(_CONFLICT):
        return TransientError(
            f"Another writer changed a Delta table at the same time ({java.name}). The lake stands "
            "at its last publication; run again, or run maintenance when the pipeline is idle."
        )
    if not _LOST.isdisjoint(classes) or _EXECUTOR.match(java.text) or _CHECKPOINT.match(java.text):
        return TransientError(
            "Spark lost an executor with rows of this window. The lake stands at its last "
            "publication; run again, with more memory for executors if it comes again."
        )
    return None


def _is_kafka_away(java: JavaError, classes: set[str]) -> bool:
    if java.name == "org.apache.kafka.common.config.ConfigException":
        return _NO_ADDRESS in java.text
    if java.name == "java.util.concurrent.TimeoutException":
        return _POLL.search(java.text) is not None
    return not _KAFKA_AWAY.isdisjoint(classes)
