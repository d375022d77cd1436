"""Translate a Hudi Streamer configuration to lakeingest's keys.

A user who migrates a pipeline keeps its ``.properties`` file. The settings are of three kinds.
Some have the same meaning in lakeingest: this module translates them. Some are promises that
lakeingest keeps anyway: ``hudi_writing.py`` checks them. Some concern Hudi's own machinery:
``sorting.py`` lists them once as without effect. Translating by guess is rejected: if lakeingest
can follow a setting only in part, a warning says so.

Hudi's streamer reads one topic into one table. So its table settings apply to the collection of the
one topic, and are refused if there are several topics. Its base path stays that table's own folder,
so that readers of the table find it there. The ledger lies in the same folder, below
``_lakeingest``. That disturbs neither Hudi's writer and reader nor its services (tried with 1.2:
both table types, bucket and simple index, with and without its metadata table, compaction, cleaning
and ``insert_overwrite_table``). Rejected: the ledger beside the base path; two pipelines with the
same parent folder would then share one ledger folder.
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

# The path of a table whose base path is the lake's folder, relative to the lake.
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
    """Hudi's settings, translated to lakeingest's keys.

    Attributes:
        values: Values by lakeingest's key; without the keys that the file sets itself.
    """

    values: dict[str, Value] = field(default_factory=dict)


def translate(hudi_values: Mapping[str, Value], own_values: Mapping[str, Value]) -> Translation:
    """Translate the ``hoodie.*`` settings that have a meaning in lakeingest.

    Args:
        hudi_values: Resolved values by Hudi's key; only keys of ``HUDI_KEYS``.
        own_values: Resolved values by lakeingest's key; they override Hudi's.
    """
    result = Translation()
    settings = _by_setting(hudi_values, result)
    for key in _AS_THEY_ARE:
        if key in settings and key.becomes:
            _set(key.becomes, settings[key], own_values, result)
    _connector(settings, own_values, result)
    _metadata_columns(settings, own_values, result)
    _format(settings, own_values, result)
    _registry(settings, result)
    _prefix_from_topic(settings, own_values, result)
    _of_the_one_table(
        settings.get(hudi_keys.RECORD_KEY), TABLE_KEYS["key"].name, own_values, result
    )
    _partition(settings, own_values, result)
    _path_of_the_one_table(settings, own_values, result)
    check(settings, result)
    return result


def _by_setting(hudi_values: Mapping[str, Value], result: Translation) -> dict[HudiKey, Value]:
    """Return the value of each setting, under any of its names."""
    settings: dict[HudiKey, Value] = {}
    for key in HUDI_KEYS:
        present = [hudi_values[name] for name in key.names if name in hudi_values]
        if present:
            settings[key] = present[0]
        # Two names of one setting differ. Only for the key generator that is no problem: one of its
        # names holds a class, the other its short name.
        if key is not hudi_keys.KEY_GENERATOR and len({value.text for value in present}) > 1:
            names = " and ".join(value.key for value in present)
            result.problems.append(f"{names} mean the same and differ: keep one")
    return settings


def _set(name: str, value: Value, own_values: Mapping[str, Value], result: Translation) -> None:
    if name not in own_values:
        result.values[name] = value
    elif own_values[name].text != value.text:
        result.warnings.append(f"{value.key} has no effect: {name} is set")


def _connector(
    settings: Mapping[HudiKey, Value], own_values: Mapping[str, Value], result: Translation
) -> None:
    source, payload = settings.get(hudi_keys.SOURCE_CLASS), settings.get(hudi_keys.PAYLOAD)
    if source is not None:
        connector = _CONNECTORS.get(class_name(source))
        if connector is None:
            sources = " and ".join(_CONNECTORS)
            result.problems.append(
                f"{source.key}: only {sources} have a meaning here; set {CONNECTOR.name} instead"
            )
        else:
            _set(CONNECTOR.name, replace(source, text=connector), own_values, result)
    elif payload is not None and CONNECTOR.name not in own_values:
        connector = PAYLOAD_CONNECTORS.get(class_name(payload))
        if connector is not None:
            result.values[CONNECTOR.name] = replace(payload, text=connector)


def _metadata_columns(
    settings: Mapping[HudiKey, Value], own_values: Mapping[str, Value], result: Translation
) -> None:
    """Choose RFC-39's columns if the file names Hudi's Debezium source or payload.

    Readers of such a table expect these columns, and no deleted rows. Do not choose the columns if
    another setting excludes them.
    """
    source, payload = settings.get(hudi_keys.SOURCE_CLASS), settings.get(hudi_keys.PAYLOAD)
    if source is not None and class_name(source) in _CONNECTORS:
        evidence = source
    elif payload is not None and class_name(payload) in PAYLOAD_CONNECTORS:
        evidence = payload
    else:
        return
    connector = result.values.get(CONNECTOR.name) or own_values.get(CONNECTOR.name)
    is_possible = (
        _text(own_values, TARGET_FORMAT) == "hudi"
        and _text(own_values, TRANSACTION_MODE) in ("", "metadata")
        and _text(own_values, SNAPSHOT_AGAIN) in ("", "stop")
        and connector is not None
        and connector.text in _CONNECTORS.values()
    )
    if is_possible and METADATA_COLUMNS.name not in own_values:
        result.values[METADATA_COLUMNS.name] = replace(evidence, text="hudi")


def _text(own_values: Mapping[str, Value], key: Key) -> str:
    return own_values[key.name].text if key.name in own_values else ""


def _format(
    settings: Mapping[HudiKey, Value], own_values: Mapping[str, Value], result: Translation
) -> None:
    value = settings.get(hudi_keys.DESERIALIZER)
    if value is None:
        return
    events = _FORMATS.get(class_name(value))
    if events is None:
        result.problems.append(
            f"{value.key}: only {', '.join(_FORMATS)} have a meaning here; remove it and set "
            f"{SOURCE_FORMAT.name}"
        )
    else:
        _set(SOURCE_FORMAT.name, replace(value, text=events), own_values, result)


def _registry(settings: Mapping[HudiKey, Value], result: Translation) -> None:
    value = settings.get(hudi_keys.REGISTRY) or settings.get(hudi_keys.REGISTRY_BASE)
    if value is not None:
        url = value.text.partition("/subjects")[0]
        result.values[REGISTRY_URL] = replace(value, text=url)


def _prefix_from_topic(
    settings: Mapping[HudiKey, Value], own_values: Mapping[str, Value], result: Translation
) -> None:
    topic = settings.get(hudi_keys.TOPIC)
    if topic is None or TOPIC_PREFIX.name in own_values:
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
        # Set the prefix, so that it is not reported as missing, too: without a prefix the whole
        # topic would be a table's name.
        result.values[TOPIC_PREFIX.name] = topic
        del result.values[TOPICS.name]


def one_collection(values: Mapping[str, Value]) -> str | None:
    """Return the collection of the only topic; ``None``: there may be several topics.

    Args:
        values: Values by lakeingest's key.
    """
    topics, prefix = values.get(TOPICS.name), values.get(TOPIC_PREFIX.name)
    if topics is None or prefix is None or not topics.text.startswith(f"{prefix.text}."):
        return None
    names = TopicNames(prefix.text)
    collection = names.plain(topics.text)
    # If Debezium replaced characters, the topic does not show the collection's name; lakeingest's
    # own settings for the table do.
    for key in values:
        name = split_table_key(key)[0] if key.startswith(TABLE) else collection
        if name != collection and names.topic(name) == topics.text:
            return name
    return collection if _ONE_NAME.fullmatch(collection) else None


def _partition(
    settings: Mapping[HudiKey, Value], own_values: Mapping[str, Value], result: Translation
) -> None:
    partition = partition_columns(
        settings.get(hudi_keys.PARTITION_PATH), settings.get(hudi_keys.KEY_GENERATOR)
    )
    result.warnings.extend([partition.warning] if partition.warning else [])
    result.problems.extend([partition.problem] if partition.problem else [])
    _of_the_one_table(partition.columns, TABLE_KEYS["partition"].name, own_values, result)


def _of_the_one_table(
    value: Value | None, table_key: str, own_values: Mapping[str, Value], result: Translation
) -> None:
    if value is None:
        return
    values = {**result.values, **own_values}
    collection = one_collection(values)
    topic = values.get(TOPICS.name, values.get(TOPIC_PREFIX.name))
    of_hudi = topic is not None and topic.key in hudi_keys.TOPIC.names
    if collection is None and topic and of_hudi and _ONE_NAME.fullmatch(topic.text):
        return  # The topic's name is malformed; ``_prefix_from_topic`` has already reported it.
    if collection is None:
        result.problems.append(
            f"{value.key} means one table, but the topics are not one topic of the prefix; "
            f"set {table_key} for each table instead"
        )
        return
    _set(table_key.replace(COLLECTION, collection), value, own_values, result)


def _path_of_the_one_table(
    settings: Mapping[HudiKey, Value], own_values: Mapping[str, Value], result: Translation
) -> None:
    base_path, collection = (
        settings.get(hudi_keys.BASE_PATH),
        one_collection({**result.values, **own_values}),
    )
    if base_path is None or collection is None or TARGET_PATH.name in own_values:
        return
    name = TABLE_KEYS["path"].name.replace(COLLECTION, collection)
    if name not in own_values:
        result.values[name] = Value(base_path.key, _THE_LAKE_ITSELF)
