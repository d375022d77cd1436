"""Refuse the records of another connector, or in another format, before anything is read of them.

Connectors order their events by different fields. With a wrong one a run would stop at the first
transaction, with a message about its id, or would find an order in fields that mean something else.
The first record of each topic says which connector wrote it. Only the first run of a lake looks:
what it published is proof for those after it. Rejected: to look where a run fails, because not
every wrong connector makes one fail.
"""

from __future__ import annotations

from pyspark.sql import Row
from pyspark.sql import functions as F

from lakeingest.apply.guards.record_origin import (
    AVRO_BEGINS,
    JSON_BEGINS,
    first_byte,
    with_connector,
)
from lakeingest.apply.window.window import PipelineLog
from lakeingest.connectors import CONNECTORS
from lakeingest.errors import ConfigError
from lakeingest.ledger.publication import Publication
from lakeingest.source.contract import OffsetRange

_LOOKED_AT = 20
"""Topics of which the first record is read."""


def refuse_other_connector(head: Publication, log: PipelineLog) -> None:
    """Stop where the records of a new lake are not of the configured connector or format.

    Args:
        head: The newest publication.
        log: The log.

    Raises:
        ConfigError: They name another connector, or are Avro and not JSON, or the other way round.
    """
    if head.batch:
        return
    first = _first_records(log)
    _refuse_other_format({row["byte"] for row in first} - {None}, avro=log.schemas.needed)
    names = {row["name"] for row in first} - {None}
    configured = log.spec.connector
    connector_names = {name for connector in CONNECTORS.values() for name in connector.records_name}
    if names & {*CONNECTORS[configured].records_name} or not names & connector_names:
        return
    message = (
        f"The records were written by Debezium's connector for {', '.join(sorted(names))}, and "
        f"lakeingest.source.connector says {configured}. Correct it; nothing was written."
    )
    raise ConfigError(message)


def _refuse_other_format(first_bytes: set[str], *, avro: bool) -> None:
    """Stop where all records begin as those of the other format.

    Raises:
        ConfigError: They do.
    """
    if first_bytes == ({JSON_BEGINS} if avro else {AVRO_BEGINS}):
        formats = ("JSON", "avro", "json") if avro else ("Avro", "json", "avro")
        message = (
            "The records are {}, and lakeingest.source.format says {}. Set it to {}; nothing was "
            "read or written."
        ).format(*formats)
        raise ConfigError(message)


def _first_records(log: PipelineLog) -> list[Row]:
    """Return what the first records of the topics say: a row for each different answer.

    Columns: ``name`` (string: of the connector), ``byte`` (string: see ``first_byte``).
    """
    marks = log.source.watermarks(log.source.topics()[:_LOOKED_AT])
    first = [
        OffsetRange(place.topic, place.partition, bounds.earliest, bounds.earliest + 1)
        for place, bounds in marks.items()
        if bounds.high > bounds.earliest
    ]
    if not first:
        return []
    read = with_connector(log.read(first), log.schemas)
    # Two short texts of each topic.
    return read.select(F.col("connector").alias("name"), first_byte()).distinct().collect()
