"""See from the newest records of each topic what a configuration must say about its table.

They show connector, key and, where they have schemas, types. Types that only values suggest are a
guess: a run stops before it publishes one of them (``table/guesses.py``). The catalogue of the
database knows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lakeingest.apply.record_origin import AVRO_BEGINS, first_byte, with_connector
from lakeingest.apply.window.window import PipelineLog
from lakeingest.decode.catalogue_types import declaration
from lakeingest.decode.wire import Samples
from lakeingest.errors import DataError
from lakeingest.plan.inference import InferredType, inferred_types, readable_counts
from lakeingest.source import OffsetRange, Source
from lakeingest.source.catalogue import Catalogue
from lakeingest.topic_names import TopicNames

_SAMPLED = 1_000
"""Records of each partition that are looked at, the newest ones."""

_MILLIS, _MICROS, _NANOS = range(10**11, 10**14), range(10**14, 10**17), range(10**17, 10**20)
"""Numbers of the moments between 1973 and 5138, in each unit of time."""

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
        hints: What else the columns' values may be, as text.
        catalogue: Types as the catalogue writes them, by column; empty: it was not asked.
        declared: Declarations of the columns that the catalogue describes (``catalogue_types``).
    """

    collection: str
    connector: str | None = None
    has_schema: bool = False
    key: tuple[str, ...] = ()
    types: Mapping[str, InferredType] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)
    catalogue: Mapping[str, str] = field(default_factory=dict)
    declared: Mapping[str, str] = field(default_factory=dict)


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


def topic_samples(
    log: PipelineLog, records: DataFrame, names: TopicNames, catalogue: Catalogue | None
) -> list[TopicSample]:
    """Return what the records of each topic show.

    Args:
        log: The log, with the format of the records; its connector may be a wrong one.
        records: See ``newest_records``.
        names: The topics' names.
        catalogue: Of the source database, if it was asked.

    Raises:
        LakeingestError: A schema cannot be read.
    """
    wire = log.schemas.format
    read = with_connector(records, log.schemas)
    newest = F.struct(
        "key", "value", "connector", wire.schema_tag(F.col("value")), wire.key_tag(F.col("key"))
    )
    # A delete may show the key alone, and a truncate nothing.
    age = F.struct(F.col("op").isin("r", "c", "u"), "offset")
    # One record of each topic.
    rows = read.groupBy("topic").agg(F.max_by(newest, age).alias("newest")).collect()
    return [
        _sample(log, row, records.where(F.col("topic") == row["topic"]), names, catalogue)
        for row in rows
    ]


def _sample(
    log: PipelineLog,
    row: Row,
    records: DataFrame,
    names: TopicNames,
    catalogue: Catalogue | None,
) -> TopicSample:
    key, value, connector, *tags = row["newest"]
    value_tags, key_tags = (frozenset([bytes(tag)] if tag else []) for tag in tags)
    collection = _collection(row["topic"], names, catalogue)
    keys = (bytes(key),) if key else ()
    shape = log.schemas.format.table_shape(Samples((bytes(value),), keys, value_tags, key_tags))
    if value_tags:
        return TopicSample(collection, connector, True, shape.key)
    types = inferred_types(readable_counts(records, shape.fields).first(), shape.fields)
    event = json.loads(bytes(value))
    values = event.get("after") or event.get("before") or {}
    written = catalogue.tables.get(collection, {}) if catalogue else {}
    kinds = {name: types[name].kind if name in types else None for name in types or written}
    return TopicSample(
        collection,
        connector,
        key=shape.key,
        types=types,
        hints={name: hint(value) for name, value in values.items()},
        catalogue=written,
        declared=_declared(log, kinds, written, catalogue.family if catalogue else ""),
    )


def _collection(topic: str, names: TopicNames, catalogue: Catalogue | None) -> str:
    """Return the table of a topic, whose name lacks the characters that Kafka does not allow."""
    tables = catalogue.tables if catalogue else ()
    return next((name for name in tables if names.topic(name) == topic), names.plain(topic))


def _declared(
    log: PipelineLog, kinds: Mapping[str, str | None], written: Mapping[str, str], family: str
) -> dict[str, str]:
    declarations = {
        name: declaration(family, written[name], log.spec.encodings, kind)
        for name, kind in kinds.items()
        if name in written
    }
    return {name: text for name, text in declarations.items() if text is not None}


def hint(value: object) -> str:
    """Return what a value may be besides the number or text that it is.

    Args:
        value: As JSON has it.
    """
    if isinstance(value, int):
        for unit, span in (("milli", _MILLIS), ("micro", _MICROS), ("nano", _NANOS)):
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
