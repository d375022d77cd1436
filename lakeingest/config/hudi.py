"""What a Hudi Streamer configuration says, in our keys.

A pipeline that moves here brings its ``.properties`` file along. Its settings fall into three
kinds: those that mean the same here (translated), those that are promises we keep anyway (checked,
``hudi_writing.py``), and those about Hudi's own machinery (listed once as without effect, by
``sorting.py``). Translating by guess is rejected: where a setting could only be half followed, a
warning says so.

Hudi's streamer reads one topic into one table, so its table settings are given to the one topic's
collection, and refused when there are several. Its base path is that table's own folder, and stays
so: who reads the table there goes on. The ledger lies in the same folder, below ``_lakeingest``;
neither Hudi's writer and reader nor its services mind (tried with 1.2: both table types, bucket and
simple index, with and without its metadata table, compaction, cleaning and
``insert_overwrite_table``). Rejected: the ledger beside the base path, where a second pipeline of
the same parent folder would meet it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lakeingest.config import hudi_keys
from lakeingest.config.hudi_keys import HUDI_KEYS, HudiKey
from lakeingest.config.hudi_partition import partition_columns
from lakeingest.config.hudi_writing import PAYLOAD_CONNECTORS, Said, check, class_name
from lakeingest.config.keys import (
    COLLECTION,
    CONNECTOR,
    METADATA_COLUMNS,
    REGISTRY_URL,
    SNAPSHOT_AGAIN,
    SOURCE_FORMAT,
    TABLE,
    TABLE_KEYS,
    TARGET_FORMAT,
    TARGET_PATH,
    TOPIC_PREFIX,
    TOPICS,
    TRANSACTION_MODE,
    Key,
    split_table_key,
)
from lakeingest.config.properties import Value
from lakeingest.topic_names import TopicNames

_CONNECTORS = {"PostgresDebeziumSource": "postgresql", "MysqlDebeziumSource": "mysql"}

_FORMATS = {
    "KafkaAvroDeserializer": "avro",
    "KafkaAvroSchemaDeserializer": "avro",
    "StringDeserializer": "json",
}

# `<prefix>.<schema or database>.<table>`; the prefix itself may hold dots.
_PARTS_OF_A_COLLECTION = 2

_ONE_NAME = re.compile(r"[\w.-]+")

# Where a base path is a table's own folder, seen from the lake.
_THE_LAKE_ITSELF = "."

_AS_THEY_ARE = (
    hudi_keys.TOPIC,
    hudi_keys.TABLE_NAME,
    hudi_keys.BASE_PATH,
    hudi_keys.TABLE_TYPE,
    hudi_keys.MAX_EVENTS,
)


@dataclass
class Translation(Said):
    """Settings of Hudi's in our keys.

    Attributes:
        values: Values by key of ours; never one that the file gives itself.
    """

    values: dict[str, Value] = field(default_factory=dict)


def translate(found: Mapping[str, Value], ours: Mapping[str, Value]) -> Translation:
    """Translate the ``hoodie.*`` settings that mean something here.

    Args:
        found: Resolved values by Hudi's key; only keys of ``HUDI_KEYS``.
        ours: Resolved values by key of ours, which win.
    """
    result = Translation()
    given = _given(found, result)
    for key in _AS_THEY_ARE:
        if key in given and key.becomes:
            _give(key.becomes, given[key], ours, result)
    _connector(given, ours, result)
    _metadata_columns(given, ours, result)
    _format(given, ours, result)
    _registry(given, result)
    _prefix_from_topic(given, ours, result)
    _of_the_one_table(given.get(hudi_keys.RECORD_KEY), TABLE_KEYS["key"].name, ours, result)
    _partition(given, ours, result)
    _path_of_the_one_table(given, ours, result)
    check(given, result)
    return result


def _given(found: Mapping[str, Value], result: Translation) -> dict[HudiKey, Value]:
    """Return the settings' values, whichever of their names they have."""
    given: dict[HudiKey, Value] = {}
    for key in HUDI_KEYS:
        present = [found[name] for name in key.names if name in found]
        if present:
            given[key] = present[0]
        # Two names of one setting; a class and its short name are no contradiction worth a stop.
        if key is not hudi_keys.KEY_GENERATOR and len({value.text for value in present}) > 1:
            names = " and ".join(value.key for value in present)
            result.problems.append(f"{names} mean the same and differ: keep one")
    return given


def _give(name: str, value: Value, ours: Mapping[str, Value], result: Translation) -> None:
    if name not in ours:
        result.values[name] = value
    elif ours[name].text != value.text:
        result.warnings.append(f"{value.key} has no effect: {name} is set")


def _connector(
    given: Mapping[HudiKey, Value], ours: Mapping[str, Value], result: Translation
) -> None:
    source, payload = given.get(hudi_keys.SOURCE_CLASS), given.get(hudi_keys.PAYLOAD)
    if source is not None:
        connector = _CONNECTORS.get(class_name(source))
        if connector is None:
            known = " and ".join(_CONNECTORS)
            result.problems.append(
                f"{source.key}: only {known} have a meaning here; set {CONNECTOR.name} instead"
            )
        else:
            _give(CONNECTOR.name, replace(source, text=connector), ours, result)
    elif payload is not None and CONNECTOR.name not in ours:
        connector = PAYLOAD_CONNECTORS.get(class_name(payload))
        if connector is not None:
            result.values[CONNECTOR.name] = replace(payload, text=connector)


def _metadata_columns(
    given: Mapping[HudiKey, Value], ours: Mapping[str, Value], result: Translation
) -> None:
    """Keep a Hudi table as its readers know it, where Hudi's own source or payload is named.

    They find RFC-39's columns there, and no deleted row. Not where a setting bars it.
    """
    source, payload = given.get(hudi_keys.SOURCE_CLASS), given.get(hudi_keys.PAYLOAD)
    if source is not None and class_name(source) in _CONNECTORS:
        named = source
    elif payload is not None and class_name(payload) in PAYLOAD_CONNECTORS:
        named = payload
    else:
        return
    connector = result.values.get(CONNECTOR.name) or ours.get(CONNECTOR.name)
    can_be = (
        _said(ours, TARGET_FORMAT) == "hudi"
        and _said(ours, TRANSACTION_MODE) in ("", "metadata")
        and _said(ours, SNAPSHOT_AGAIN) in ("", "stop")
        and connector is not None
        and connector.text in _CONNECTORS.values()
    )
    if can_be and METADATA_COLUMNS.name not in ours:
        result.values[METADATA_COLUMNS.name] = replace(named, text="hudi")


def _said(ours: Mapping[str, Value], key: Key) -> str:
    return ours[key.name].text if key.name in ours else ""


def _format(given: Mapping[HudiKey, Value], ours: Mapping[str, Value], result: Translation) -> None:
    value = given.get(hudi_keys.DESERIALIZER)
    if value is None:
        return
    events = _FORMATS.get(class_name(value))
    if events is None:
        result.problems.append(
            f"{value.key}: only {', '.join(_FORMATS)} have a meaning here; remove it and set "
            f"{SOURCE_FORMAT.name}"
        )
    else:
        _give(SOURCE_FORMAT.name, replace(value, text=events), ours, result)


def _registry(given: Mapping[HudiKey, Value], result: Translation) -> None:
    value = given.get(hudi_keys.REGISTRY) or given.get(hudi_keys.REGISTRY_BASE)
    if value is not None:
        url = value.text.partition("/subjects")[0]
        result.values[REGISTRY_URL] = replace(value, text=url)


def _prefix_from_topic(
    given: Mapping[HudiKey, Value], ours: Mapping[str, Value], result: Translation
) -> None:
    topic = given.get(hudi_keys.TOPIC)
    if topic is None or TOPIC_PREFIX.name in ours:
        return
    parts = topic.text.rsplit(".", _PARTS_OF_A_COLLECTION)
    if len(parts) > _PARTS_OF_A_COLLECTION:
        result.values[TOPIC_PREFIX.name] = replace(topic, text=parts[0])
    elif TOPICS.name in result.values and _ONE_NAME.fullmatch(topic.text):
        result.problems.append(
            f"{topic.key}: a topic is <prefix>.<schema or database>.<table>, as the connector "
            "names it. Topics that a router renamed are not supported: BEGIN and END count rows by "
            "the names that the connector gave, so take the router out"
        )
        # Nor is the prefix missing: with none the topic would be a table's.
        result.values[TOPIC_PREFIX.name] = topic
        del result.values[TOPICS.name]


def one_collection(values: Mapping[str, Value]) -> str | None:
    """Return the collection of the only topic; null where there may be several.

    Args:
        values: By key of ours.
    """
    topics, prefix = values.get(TOPICS.name), values.get(TOPIC_PREFIX.name)
    if topics is None or prefix is None or not topics.text.startswith(f"{prefix.text}."):
        return None
    names = TopicNames(prefix.text)
    collection = names.plain(topics.text)
    # A topic does not tell a name that it cannot hold; settings of ours for the table do.
    for key in values:
        name = split_table_key(key)[0] if key.startswith(TABLE) else collection
        if name != collection and names.topic(name) == topics.text:
            return name
    return collection if _ONE_NAME.fullmatch(collection) else None


def _partition(
    given: Mapping[HudiKey, Value], ours: Mapping[str, Value], result: Translation
) -> None:
    found = partition_columns(
        given.get(hudi_keys.PARTITION_PATH), given.get(hudi_keys.KEY_GENERATOR)
    )
    result.warnings.extend([found.warning] if found.warning else [])
    result.problems.extend([found.problem] if found.problem else [])
    _of_the_one_table(found.columns, TABLE_KEYS["partition"].name, ours, result)


def _of_the_one_table(
    value: Value | None, table_key: str, ours: Mapping[str, Value], result: Translation
) -> None:
    if value is None:
        return
    known = {**result.values, **ours}
    collection = one_collection(known)
    topic = known.get(TOPICS.name, known.get(TOPIC_PREFIX.name))
    of_hudi = topic is not None and topic.key in hudi_keys.TOPIC.names
    if collection is None and topic and of_hudi and _ONE_NAME.fullmatch(topic.text):
        return  # It is one topic, and is told of as none of a table's.
    if collection is None:
        result.problems.append(
            f"{value.key} means one table, but the topics are not one topic of the prefix; "
            f"set {table_key} for each table instead"
        )
        return
    _give(table_key.replace(COLLECTION, collection), value, ours, result)


def _path_of_the_one_table(
    given: Mapping[HudiKey, Value], ours: Mapping[str, Value], result: Translation
) -> None:
    base_path, collection = (
        given.get(hudi_keys.BASE_PATH),
        one_collection({**result.values, **ours}),
    )
    if base_path is None or collection is None or TARGET_PATH.name in ours:
        return
    name = TABLE_KEYS["path"].name.replace(COLLECTION, collection)
    if name not in ours:
        result.values[name] = Value(base_path.key, _THE_LAKE_ITSELF)
