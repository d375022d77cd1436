"""Translate a Hudi Streamer configuration to lakeingest's keys.

A user who migrates a pipeline keeps its ``.properties`` file. The settings are of three kinds.
Some have the same meaning in lakeingest: this module translates them. Some are promises that
lakeingest keeps anyway: ``settings.py`` checks them. Some concern Hudi's own machinery:
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

from lakeingest.config import keys
from lakeingest.config.complaints import Messages
from lakeingest.config.file.properties import Value
from lakeingest.config.streamer import settings as hudi
from lakeingest.config.streamer.partition import partition_columns
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


def translate(
    hudi_values: Mapping[str, Value], own_values: Mapping[str, Value], messages: Messages
) -> dict[str, Value]:
    """Translate the ``hoodie.*`` settings that have a meaning in lakeingest.

    Args:
        hudi_values: Resolved values by Hudi's key; only keys of ``HUDI_KEYS``.
        own_values: Resolved values by lakeingest's key; they override Hudi's.
        messages: Receives what lakeingest cannot follow, or not to the letter.

    Returns:
        Values by lakeingest's key; without the keys that the file sets itself.
    """
    translation = _Translation(own_values, messages)
    translation.read(hudi_values)
    for key in (hudi.TOPIC, hudi.TABLE_NAME, hudi.BASE_PATH, hudi.TABLE_TYPE, hudi.MAX_EVENTS):
        if key in translation.settings and key.becomes:
            translation.set(key.becomes, translation.settings[key])
    translation.connector()
    translation.metadata_columns()
    translation.format()
    translation.registry()
    translation.prefix_from_topic()
    translation.one_table()
    for key, value in translation.settings.items():
        if key.followed or key.refusal:
            key.check(value, messages)
    return translation.values


@dataclass
class _Translation:
    """The translation of one file.

    Attributes:
        own: Resolved values by lakeingest's key.
        messages: Receives the messages.
        settings: The value of each of Hudi's settings.
        values: Values by lakeingest's key.
    """

    own: Mapping[str, Value]
    messages: Messages
    settings: dict[hudi.HudiKey, Value] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)

    def read(self, hudi_values: Mapping[str, Value]) -> None:
        """Find the value of each setting, under any of its names."""
        for key in hudi.HUDI_KEYS:
            present = [hudi_values[name] for name in key.names if name in hudi_values]
            if present:
                self.settings[key] = present[0]
            # Two names of one setting differ. Only for the key generator that is no problem: one of
            # its names holds a class, the other its short name.
            if key is not hudi.KEY_GENERATOR and len({value.text for value in present}) > 1:
                names = " and ".join(value.key for value in present)
                self.messages.problems.append(f"{names} mean the same and differ: keep one")

    def set(self, name: str, value: Value) -> None:
        """Set a key of lakeingest, unless the file sets it itself."""
        if name not in self.own:
            self.values[name] = value
        elif self.own[name].text != value.text:
            self.messages.warnings.append(f"{value.key} has no effect: {name} is set")

    def connector(self) -> None:
        """Take the connector from Hudi's source class, or else from its payload class."""
        source, payload = self.settings.get(hudi.SOURCE_CLASS), self.settings.get(hudi.PAYLOAD)
        if source is not None:
            connector = _CONNECTORS.get(_class_name(source))
            if connector is not None:
                self.set(keys.CONNECTOR, replace(source, text=connector))
                return
            self.messages.problems.append(
                f"{source.key}: only {' and '.join(_CONNECTORS)} have a meaning here; set "
                f"{keys.CONNECTOR} instead"
            )
        elif payload is not None and keys.CONNECTOR not in self.own:
            connector = hudi.PAYLOAD_CONNECTORS.get(_class_name(payload))
            if connector is not None:
                self.values[keys.CONNECTOR] = replace(payload, text=connector)

    def metadata_columns(self) -> None:
        """Choose RFC-39's columns if the file names Hudi's Debezium source or payload.

        Readers of such a table expect these columns, and no deleted rows. Do not choose the columns
        if another setting excludes them.
        """
        own = {name: value.text for name, value in self.own.items()}
        connector = self.values.get(keys.CONNECTOR) or self.own.get(keys.CONNECTOR)
        is_possible = (
            own.get(keys.TARGET_FORMAT) == "hudi"
            and own.get(keys.TRANSACTION_MODE, "metadata") == "metadata"
            and own.get(keys.SNAPSHOT_AGAIN, "stop") == "stop"
            and connector is not None
            and connector.text in _CONNECTORS.values()
            and keys.METADATA_COLUMNS not in own
        )
        classes = {hudi.SOURCE_CLASS: _CONNECTORS, hudi.PAYLOAD: hudi.PAYLOAD_CONNECTORS}
        for key, connectors in classes.items():
            value = self.settings.get(key)
            if is_possible and value is not None and _class_name(value) in connectors:
                self.values.setdefault(keys.METADATA_COLUMNS, replace(value, text="hudi"))

    def format(self) -> None:
        """Take the format of the records from the deserialiser."""
        value = self.settings.get(hudi.DESERIALIZER)
        if value is None:
            return
        form = _FORMATS.get(_class_name(value))
        if form is not None:
            self.set(keys.SOURCE_FORMAT, replace(value, text=form))
        else:
            self.messages.problems.append(
                f"{value.key}: only {', '.join(_FORMATS)} have a meaning here; remove it and set "
                f"{keys.SOURCE_FORMAT}"
            )

    def registry(self) -> None:
        """Take the registry's address from the url of a subject."""
        value = self.settings.get(hudi.REGISTRY) or self.settings.get(hudi.REGISTRY_BASE)
        if value is not None:
            url = value.text.partition("/subjects")[0]
            self.values[keys.REGISTRY_URL] = replace(value, text=url)

    def prefix_from_topic(self) -> None:
        """Take the topic prefix from the topic's name."""
        topic = self.settings.get(hudi.TOPIC)
        if topic is None or keys.TOPIC_PREFIX in self.own:
            return
        parts = topic.text.rsplit(".", _PARTS_OF_A_COLLECTION)
        if len(parts) > _PARTS_OF_A_COLLECTION:
            self.values[keys.TOPIC_PREFIX] = replace(topic, text=parts[0])
        elif keys.TOPICS in self.values and _ONE_NAME.fullmatch(topic.text):
            self.messages.problems.append(
                f"{topic.key}: a topic is <prefix>.<schema or database>.<table>, as the connector "
                "names it. Topics that a router renamed are not supported: BEGIN and END count "
                "rows by the names that the connector gave, so take the router out"
            )
            # Set the prefix, so that it is not reported as missing, too: without a prefix the whole
            # topic would be a table's name.
            self.values[keys.TOPIC_PREFIX] = topic
            del self.values[keys.TOPICS]

    def one_table(self) -> None:
        """Apply the settings of a table to the collection of the one topic."""
        path, generator = (
            self.settings.get(key) for key in (hudi.PARTITION_PATH, hudi.KEY_GENERATOR)
        )
        self._set_of_table("key", self.settings.get(hudi.RECORD_KEY))
        self._set_of_table("partition", partition_columns(path, generator, self.messages))
        base_path, collection = self.settings.get(hudi.BASE_PATH), self._collection()
        if base_path is None or collection is None or keys.TARGET_PATH in self.own:
            return
        name = keys.table_key("path", collection)
        if name not in self.own:
            self.values[name] = Value(base_path.key, _THE_LAKE_ITSELF)

    def _collection(self) -> str | None:
        return one_collection({**self.values, **self.own})

    def _set_of_table(self, suffix: str, value: Value | None) -> None:
        if value is None:
            return
        collection = self._collection()
        if collection is not None:
            self.set(keys.table_key(suffix, collection), value)
            return
        values = {**self.values, **self.own}
        topic = values.get(keys.TOPICS, values.get(keys.TOPIC_PREFIX))
        if topic and topic.key in hudi.TOPIC.names and _ONE_NAME.fullmatch(topic.text):
            return  # The topic's name is malformed; ``prefix_from_topic`` has already reported it.
        self.messages.problems.append(
            f"{value.key} means one table, but the topics are not one topic of the prefix; "
            f"set {keys.table_key(suffix)} for each table instead"
        )


def one_collection(values: Mapping[str, Value]) -> str | None:
    """Return the collection of the only topic; ``None``: there may be several topics.

    Args:
        values: Values by lakeingest's key.
    """
    topics, prefix = values.get(keys.TOPICS), values.get(keys.TOPIC_PREFIX)
    if topics is None or prefix is None or not topics.text.startswith(f"{prefix.text}."):
        return None
    names = TopicNames(prefix.text)
    collection = names.plain(topics.text)
    # If Debezium replaced characters, the topic does not show the collection's name; lakeingest's
    # own settings for the table do.
    for key in values:
        name = keys.split_table_key(key)[0] if key.startswith(keys.TABLE) else collection
        if name != collection and names.topic(name) == topics.text:
            return name
    return collection if _ONE_NAME.fullmatch(collection) else None


def _class_name(value: Value) -> str:
    """Return the name of a Java class without its package."""
    return value.text.rpartition(".")[2]
