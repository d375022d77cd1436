"""What a Hudi Streamer configuration says, in our keys.

A pipeline that moves here brings its ``.properties`` file along. Its settings fall into three
kinds: those that mean the same here (translated), those that are promises we keep anyway (checked),
and those about Hudi's own machinery (listed once as without effect, by ``load.py``). Translating by
guess is rejected: where a setting could only be half followed, a warning says so.

Hudi's streamer reads one topic into one table, so its table settings are given to the one topic's
collection, and refused when there are several.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lakeingest.config.hudi_partition import partition_columns
from lakeingest.config.keys import (
    COLLECTION,
    CONNECTOR,
    HUDI_DATA_LOSS,
    HUDI_KEY_GENERATOR,
    HUDI_KEYS,
    HUDI_ORDERING,
    HUDI_PARTITION,
    HUDI_RECORD_KEY,
    HUDI_REGISTRY,
    HUDI_SOURCE_CLASS,
    HUDI_TOPIC,
    REGISTRY_URL,
    TABLE_KEYS,
    TOPIC_PREFIX,
    TOPICS,
    HudiKey,
)
from lakeingest.config.properties import Value

_CONNECTORS = {"PostgresDebeziumSource": "postgresql", "MysqlDebeziumSource": "mysql"}

# What the Debezium payload classes order by; our order by log position is the same, made total.
_ORDERED_BY_POSITION = {"_event_lsn", "_event_seq", "_event_bin_file", "_event_pos", "_event_row"}

# `<prefix>.<schema or database>.<table>`; the prefix itself may hold dots.
_PARTS_OF_A_COLLECTION = 2


_OF_WRITER = tuple(
    f"hoodie.{what}."
    for what in (
        "archive",
        "bucket",
        "bulkinsert",
        "clean",
        "cleaner",
        "clustering",
        "compact",
        "compaction",
        "copyonwrite",
        "embed",
        "index",
        "insert",
        "keep",
        "logfile",
        "markers",
        "memory",
        "metadata",
        "parquet",
        "record.index",
        "rollback",
        "storage",
        "upsert",
        "write.concurrency",
        "write.lock",
        "write.markers",
    )
)


_FOLDERS = "hoodie.datasource.write.hive_style_partitioning"


def is_of_writer(name: str) -> bool:
    """Tell whether a key is about Hudi's files, index and table services, not about what is in it.

    How rows are merged, keyed and ordered is ours to decide and not among them.
    """
    return name.startswith(_OF_WRITER) or name == _FOLDERS


@dataclass
class Translation:
    """Settings of Hudi's in our keys.

    Attributes:
        values: Values by key of ours; never one that the file gives itself.
        warnings: What is not followed to the letter.
        problems: What contradicts itself or cannot be followed.
    """

    values: dict[str, Value] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def translate(found: Mapping[str, Value], ours: Mapping[str, Value]) -> Translation:
    """Translate the ``hoodie.*`` settings that mean something here.

    Args:
        found: Resolved values by Hudi's key; only keys of ``HUDI_KEYS``.
        ours: Resolved values by key of ours, which win.
    """
    result = Translation()
    given = {key: _one_of(key, found, result) for key in HUDI_KEYS}
    for key, value in given.items():
        if value is None:
            continue
        if key is HUDI_ORDERING:
            _check_ordering(value, result)
        elif key is HUDI_DATA_LOSS:
            _check_data_loss(value, result)
        elif key is HUDI_REGISTRY:
            url = value.text.partition("/subjects/")[0]
            result.values[REGISTRY_URL] = replace(value, text=url)
        elif key is HUDI_SOURCE_CLASS:
            _give(CONNECTOR.name, _connector(value, result), ours, result)
        elif key is HUDI_TOPIC:
            _give(TOPICS.name, value, ours, result)
        elif key not in (HUDI_RECORD_KEY, HUDI_PARTITION) and key.becomes:
            _give(key.becomes, value, ours, result)
    _prefix_from_topic(given[HUDI_TOPIC], ours, result)
    _of_the_one_table(given[HUDI_RECORD_KEY], TABLE_KEYS["key"].name, ours, result)
    partition = partition_columns(given[HUDI_PARTITION], given[HUDI_KEY_GENERATOR])
    result.warnings.extend([partition.warning] if partition.warning else [])
    result.problems.extend([partition.problem] if partition.problem else [])
    _of_the_one_table(partition.columns, TABLE_KEYS["partition"].name, ours, result)
    return result


def _one_of(key: HudiKey, found: Mapping[str, Value], result: Translation) -> Value | None:
    present = [found[name] for name in key.names if name in found]
    if len({value.text for value in present}) > 1:
        names = " and ".join(value.key for value in present)
        result.problems.append(f"{names} mean the same and differ: keep one")
    return present[0] if present else None


def _give(name: str, value: Value | None, ours: Mapping[str, Value], result: Translation) -> None:
    if value is None:
        return
    if name not in ours:
        result.values[name] = value
    elif ours[name].text != value.text:
        result.warnings.append(f"{value.key} has no effect: {name} is set")


def _connector(value: Value, result: Translation) -> Value | None:
    connector = _CONNECTORS.get(value.text.rpartition(".")[2])
    if connector is None:
        known = " and ".join(_CONNECTORS)
        result.problems.append(
            f"{value.key}: only {known} have a meaning here; set {CONNECTOR.name} instead"
        )
        return None
    return replace(value, text=connector)


def _prefix_from_topic(topic: Value | None, ours: Mapping[str, Value], result: Translation) -> None:
    if topic is None or TOPIC_PREFIX.name in ours:
        return
    parts = topic.text.rsplit(".", _PARTS_OF_A_COLLECTION)
    if len(parts) > _PARTS_OF_A_COLLECTION:
        result.values[TOPIC_PREFIX.name] = replace(topic, text=parts[0])


def _of_the_one_table(
    value: Value | None, table_key: str, ours: Mapping[str, Value], result: Translation
) -> None:
    if value is None:
        return
    values = {**result.values, **ours}
    topics, prefix = values.get(TOPICS.name), values.get(TOPIC_PREFIX.name)
    start = f"{prefix.text}." if prefix else ""
    collection = topics.text.removeprefix(start) if topics else ""
    one = topics is not None and prefix is not None and topics.text.startswith(start)
    if not one or not collection.replace(".", "").replace("_", "").replace("-", "").isalnum():
        result.problems.append(
            f"{value.key} means one table, but the topics are not one topic of the prefix; "
            f"set {table_key} for each table instead"
        )
        return
    _give(table_key.replace(COLLECTION, collection), value, ours, result)


def _check_ordering(value: Value, result: Translation) -> None:
    columns = {column.strip() for column in value.text.split(",")}
    if not columns <= _ORDERED_BY_POSITION:
        result.warnings.append(
            f"{value.key} is not followed: rows are ordered by their place in the source's log"
        )


def _check_data_loss(value: Value, result: Translation) -> None:
    if value.text.lower() != "true":
        result.warnings.append(f"{value.key} is not followed: a run stops when offsets were lost")
