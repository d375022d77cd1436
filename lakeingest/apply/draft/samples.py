"""See from the newest records of each topic what a configuration must say about its table.

They show connector, key and, where they have schemas, types. Types that only values suggest are a
guess: a run stops before it publishes one of them (``table/guesses.py``). The catalogue of the
database knows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from lakeingest.apply.guards.record_origin import AVRO_BEGINS, first_byte, with_connector
from lakeingest.apply.window.window import PipelineLog
from lakeingest.connectors import CONNECTORS, Connector
from lakeingest.decode.seen_modes import MICROS, MILLIS, NANOS
from lakeingest.decode.wire import Samples
from lakeingest.errors import DataError
from lakeingest.plan.inference import InferredType, inferred_types, readable_counts
from lakeingest.source import OffsetRange, Source
from lakeingest.topic_names import TopicNames

_SAMPLED = 1_000
"""Records of each partition that are looked at, the newest ones."""

_ROWS = 20
"""Rows of each topic that come to the driver."""

_USUAL = Connector()

_MOMENT = re.compile(r"[+-]?\d{4,}-\d\d-\d\dT\d\d:\d\d")


@dataclass(frozen=True)
class TopicSample:
    """What the newest records of a table's topic show, and the catalogue about it.

    Attributes:
        collection: The table.
        connector: As the records name it; None: they do not.
        has_schema: Whether they have schemas, in them or in a registry.
        key: Fields of the record key; empty: there is none.
        types: Types that the values suggest, by column; empty where records have schemas.
        rows: Some of the newest rows, as JSON has them; none where records have schemas.
        catalogue: Types as the catalogue writes them, by column; empty: it was not asked.
        declared: Declarations of the columns that the catalogue describes (``catalogue_types``).
        assumed: Those of ``declared`` that no value shows, with the connector's setting whose
            default is assumed.
    """

    collection: str
    connector: str | None = None
    has_schema: bool = False
    key: tuple[str, ...] = ()
    types: Mapping[str, InferredType] = field(default_factory=dict)
    rows: Sequence[Mapping[str, object]] = ()
    catalogue: Mapping[str, str] = field(default_factory=dict)
    declared: Mapping[str, str] = field(default_factory=dict)
    assumed: Mapping[str, str] = field(default_factory=dict)

    def values(self, column: str) -> list[object]:
        """Return the values of a column in ``rows``, without nulls."""
        return [row[column] for row in self.rows if row.get(column) is not None]

    def hint(self, column: str) -> str:
        """Return what the newest value of a column may be besides what it seems to be."""
        return hint(next(iter(self.values(column)), None))


def newest_records(source: Source) -> DataFrame:
    """Return the newest records of each data topic: columns of ``RECORD``, lazily.

    Raises:
        DataError: There are none.
        LakeingestError: The source cannot be read.
    """
    ranges = [
        OffsetRange(
            place.topic, place.partition, max(bounds.earliest, bounds.high - _SAMPLED), bounds.high
        )
        for place, bounds in source.watermarks(source.topics()).items()
        if bounds.high > bounds.earliest
    ]
    if not ranges:
        message = "The topics have no records yet, so nothing can be learned from them."
        raise DataError(message)
    return source.read(ranges).where(F.col("value").isNotNull())


def is_avro(records: DataFrame) -> bool:
    """Return whether all records begin as a registry's Avro does."""
    # At most 256 rows.
    return {row[0] for row in records.select(first_byte()).distinct().collect()} == {AVRO_BEGINS}


def topic_samples(log: PipelineLog, records: DataFrame, names: TopicNames) -> list[TopicSample]:
    """Return what the records of each topic show.

    Args:
        log: The log, with the format of the records; its connector may be a wrong one.
        records: See ``newest_records``.
        names: The topics' names.

    Raises:
        DataError: The records of a topic cannot be read in this format.
        LakeingestError: A schema cannot be read.
    """
    wire = log.schemas.format
    # A delete may show the key alone, and a truncate nothing.
    newest = Window.partitionBy("topic").orderBy(
        F.col("op").isin("r", "c", "u").desc_nulls_last(), F.col("offset").desc()
    )
    read = (
        with_connector(records, log.schemas)
        .withColumn("nth", F.row_number().over(newest))
        .where(F.col("nth") <= _ROWS)
        .select(
            *("topic", "nth", "key", "value", "source", "malformed"),
            wire.schema_tag(F.col("value")).alias("value_tag"),
            wire.key_tag(F.col("key")).alias("key_tag"),
        )
    )
    by_topic: dict[str, list[Row]] = {}
    # A few records of each topic.
    for row in read.orderBy("topic", "nth").collect():
        by_topic.setdefault(row["topic"], []).append(row)
    return [
        _sample(log, rows, records.where(F.col("topic") == topic), names)
        for topic, rows in by_topic.items()
    ]


def _sample(
    log: PipelineLog, rows: Sequence[Row], records: DataFrame, names: TopicNames
) -> TopicSample:
    newest = rows[0]
    if newest["malformed"]:
        message = (
            f"The newest record of topic '{newest['topic']}' cannot be read like those of the "
            "other topics. Leave the topic out: --set lakeingest.source.topics=…"
        )
        raise DataError(message)
    value_tags, key_tags = (
        frozenset([bytes(newest[tag])] if newest[tag] else []) for tag in ("value_tag", "key_tag")
    )
    keys = (bytes(newest["key"]),) if newest["key"] else ()
    values = (bytes(newest["value"]),)
    shape = log.schemas.format.table_shape(Samples(values, keys, value_tags, key_tags))
    connector = newest["source"]["connector"] if newest["source"] else None
    collection = _collection(newest["topic"], newest["source"], names)
    if value_tags:
        return TopicSample(collection, connector, True, shape.key)
    events = [json.loads(bytes(row["value"])) for row in rows if not row["malformed"]]
    return TopicSample(
        collection,
        connector,
        key=shape.key,
        types=inferred_types(readable_counts(records, shape.fields).first(), shape.fields),
        rows=[event.get("after") or event.get("before") or {} for event in events],
    )


def _collection(topic: str, source: Row | None, names: TopicNames) -> str:
    """Return the table: its topic's name lacks the characters that Kafka does not allow."""
    if source is None or not source["table"]:
        return names.plain(topic)
    parts = [source["schema"] or source["db"], source["table"]]
    if source["schema"] and CONNECTORS.get(source["connector"], _USUAL).name_parts > len(parts):
        parts.insert(0, source["db"])
    return ".".join(parts)


def hint(value: object) -> str:
    """Return what a value may be besides the number or text that it is.

    Args:
        value: As JSON has it.
    """
    if isinstance(value, int):
        for unit, span in (("milli", MILLIS), ("micro", MICROS), ("nano", NANOS)):
            if value in span:
                return f"most likely TIMESTAMP_NTZ, in {unit}seconds"
        return "a number, or DATE in days, or TIME"
    if isinstance(value, (dict, list)):
        return "a struct, an array, or a decimal of variable scale"
    if isinstance(value, str) and _MOMENT.match(value):
        return "most likely TIMESTAMP, with its zone"
    if isinstance(value, str) and value:
        return "a text, or DECIMAL or BINARY in base64, or JSON"
    return "no value seen"
