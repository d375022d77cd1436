"""Draft a pipeline's configuration from what its topics hold.

The newest records of each topic say connector, format and, where they have schemas, types. Types
that only values suggest are drafted as comments: a run stops before it publishes one of them
(``table/guesses.py``), so nobody takes a guess for a fact. Rejected: to ask the user on the
terminal. A file can be read, kept and compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakeingest.apply.run_session import run_session
from lakeingest.apply.table.guesses import column_list
from lakeingest.config import keys
from lakeingest.config.load import load_config
from lakeingest.config.model import PipelineConfig
from lakeingest.connectors import CONNECTORS
from lakeingest.engine.storage_errors import storage
from lakeingest.errors import ConfigError, DataError
from lakeingest.plan.inference import InferredType, inferred_types, readable_counts
from lakeingest.source import MissingTopicError, OffsetRange, Source, open_source

_SAMPLED = 1_000
"""Records of each partition that are looked at, the newest ones."""

_ANY_CONNECTOR = "postgresql"
"""Stands for the connector until a record names it; topics are named alike for all."""

_MILLIS, _MICROS, _NANOS = range(10**11, 10**14), range(10**14, 10**17), range(10**17, 10**20)
"""Numbers of the moments between 1973 and 5138, in each unit of time."""

_MOMENT = re.compile(r"[+-]?\d{4,}-\d\d-\d\dT\d\d:\d\d")


@dataclass(frozen=True)
class TopicSample:
    """What the newest records of a table's topic show.

    Attributes:
        collection: The table.
        connector: As the records name it; None: they do not.
        avro: Whether they are in Avro.
        has_schema: Whether they have schemas, in them or in a registry.
        key: Fields of the record key; empty: there is none, or only a registry knows.
        types: Types that the values suggest, by column; empty where records have schemas.
        hints: What else the columns' values may be, as text.
    """

    collection: str
    connector: str | None = None
    avro: bool = False
    has_schema: bool = False
    key: tuple[str, ...] = ()
    types: Mapping[str, InferredType] = field(default_factory=dict)
    hints: Mapping[str, str] = field(default_factory=dict)


def draft(spark: SparkSession, settings: Mapping[str, str]) -> str:
    """Return the text of a configuration.

    Args:
        spark: Session that can read the source.
        settings: Properties that say where the records are, the topic prefix and the target; they
            are part of the text.

    Raises:
        ConfigError: A setting is missing or wrong, or the records do not name one connector.
        LakeingestError: The source cannot be read.
    """
    config = provisional(settings)
    own = run_session(spark)
    with ExitStack() as resources:
        resources.enter_context(storage(config.source.path or ""))
        source = resources.enter_context(closing(open_source(own, config.source)))
        samples = _samples(source, config)
        whole = _has_topic(source, config.source.ends_topic)
    return draft_text(settings, samples, whole=whole)


def provisional(settings: Mapping[str, str]) -> PipelineConfig:
    """Return a configuration that finds the topics; its connector may be a wrong one."""
    return load_config({keys.CONNECTOR: _ANY_CONNECTOR, **settings})


def draft_text(settings: Mapping[str, str], samples: Sequence[TopicSample], *, whole: bool) -> str:
    """Return the text of a configuration.

    Args:
        settings: See ``draft``.
        samples: One for each table.
        whole: Whether there is a transaction topic.

    Raises:
        ConfigError: The records do not name one connector that lakeingest knows.
    """
    found = dict(settings)
    if keys.CONNECTOR not in found:
        found[keys.CONNECTOR] = _connector(samples)
    if any(sample.avro for sample in samples):
        found.setdefault(keys.SOURCE_FORMAT, "avro")
    lines = [
        "# Written by lakeingest init. Read it, then: lakeingest validate, lakeingest run.",
        *(f"{key}={value}" for key, value in sorted(found.items())),
    ]
    if found.get(keys.SOURCE_FORMAT) == "avro" and keys.REGISTRY_URL not in found:
        lines += [
            "",
            "# The records are in Avro. Where is their registry?",
            f"#{keys.REGISTRY_URL}=",
        ]
    if not whole and keys.TRANSACTION_MODE not in found:
        lines += [
            "",
            "# There is no transaction topic, so whole transactions cannot be told. Set",
            "# provide.transaction.metadata=true in the connector, or apply each event alone:",
            f"#{keys.TRANSACTION_MODE}=none",
        ]
    for sample in sorted(samples, key=lambda sample: sample.collection):
        lines += ["", *_table_lines(sample)]
    return "\n".join(lines) + "\n"


def _table_lines(sample: TopicSample) -> Iterator[str]:
    key = f"key ({', '.join(sample.key)})" if sample.key else "no key seen"
    if sample.avro or sample.has_schema:
        yield f"# {sample.collection}: {key}, types from its schema"
        return
    if not sample.types:
        yield f"# {sample.collection}: {key}; no row seen, so declare its columns"
        yield f"#{keys.table_key('schema', sample.collection)}="
        return
    yield f"# {sample.collection}: {key}. Its records have no schema, so these types are a guess:"
    for name, inferred in sample.types.items():
        if not inferred.certain:
            yield f"#   {name}: {sample.hints.get(name, hint(None))}"
    yield "# Correct them as the source has them, then take the # away:"
    kinds = {name: inferred.kind for name, inferred in sample.types.items()}
    yield f"#{keys.table_key('schema', sample.collection)}={column_list(kinds)}"


def _connector(samples: Sequence[TopicSample]) -> str:
    names = sorted({sample.connector for sample in samples if sample.connector})
    if len(names) == 1 and names[0] in CONNECTORS:
        return names[0]
    what = f"name {', '.join(names)}" if names else "do not name their connector"
    message = (
        f"The records {what}. Name it: --set {keys.CONNECTOR}=… ({', '.join(sorted(CONNECTORS))})."
    )
    raise ConfigError(message)


def _has_topic(source: Source, topic: str | None) -> bool:
    if topic is None:
        return False
    try:
        source.watermarks([topic])
    except MissingTopicError:
        return False
    return True


def _samples(source: Source, config: PipelineConfig) -> list[TopicSample]:
    topics = source.topics()
    ranges = [
        OffsetRange(
            place.topic, place.partition, max(bounds.earliest, bounds.high - _SAMPLED), bounds.high
        )
        for place, bounds in source.watermarks(topics).items()
        if bounds.high > bounds.earliest
    ]
    if not ranges:
        message = "The topics have no records yet, so nothing can be learned from them."
        raise DataError(message)
    records = source.read(ranges).where(F.col("value").isNotNull())
    newest = records.groupBy("topic").agg(
        F.max_by(F.struct("key", "value"), "offset").alias("newest")
    )
    names = config.source.names
    # One record of each topic.
    return [
        _sample(
            names.plain(row["topic"]), row["newest"], records.where(F.col("topic") == row["topic"])
        )
        for row in newest.collect()
    ]


def _sample(collection: str, newest: Any, records: DataFrame) -> TopicSample:
    value = bytes(newest["value"])
    if value[:1] == b"\0":
        return TopicSample(collection, avro=True)
    event, has_schema = _payload(value)
    key, _ = _payload(bytes(newest["key"] or b"{}"))
    source = event.get("source") or {}
    row = event.get("after") or event.get("before") or {}
    types: dict[str, InferredType] = {}
    if not has_schema and row:
        types = inferred_types(readable_counts(records, list(row)).first(), list(row))
    hints = {name: hint(value) for name, value in row.items()}
    connector = source.get("connector")
    return TopicSample(collection, connector, False, has_schema, tuple(key), types, hints)


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


def _payload(octets: bytes) -> tuple[Mapping[str, Any], bool]:
    """Return a JSON object without its schema, and whether it had one; empty if it is none."""
    try:
        read = json.loads(octets)
    except ValueError:
        return {}, False
    if not isinstance(read, dict):
        return {}, False
    if read.keys() == {"schema", "payload"}:
        return read["payload"] or {}, True
    return read, False
