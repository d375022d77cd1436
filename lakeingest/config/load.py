"""Turn a file and overrides into a ``PipelineConfig``, or into one error that names all problems.

All errors of a file are reported together: a user who migrates a pipeline corrects the file in one
pass, not key by key. The steps:

1. read the file and apply the ``--set`` overrides;
2. sort the keys: lakeingest's, Hudi's, the registry's; the rest belongs to the Kafka client;
3. translate Hudi's keys (lakeingest's own keys override them);
4. report missing keys;
5. validate through the models, even after other problems, and turn their errors into messages about
   keys (``complaints.py``).

Relative paths stay as they are: relative to the working directory, like the path of the
configuration file itself. Rejected: to resolve them against the file's folder; a notebook may load
the same settings without a file, and so without a folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from lakeingest.config import keys
from lakeingest.config.file.properties import Properties, Value, from_mapping, read_properties
from lakeingest.config.kafka.client import BROKERS, kafka_options, unknown_names
from lakeingest.config.kafka.registry import registry_options
from lakeingest.config.model import PipelineConfig, SourceConfig, TableConfig, TargetConfig
from lakeingest.config.model.consistency import slow_versions, unread_tables, unseen_compression
from lakeingest.config.model.fields import ConfigModel
from lakeingest.config.model.maintenance import MaintenanceConfig
from lakeingest.config.model.schema_changes import SchemaChanges
from lakeingest.config.model.source import are_topic_names
from lakeingest.config.sorting import SortedKeys, sort_keys
from lakeingest.config.streamer.settings import TOPIC

_REQUIRED = (keys.PIPELINE_NAME, keys.CONNECTOR, keys.TOPIC_PREFIX, keys.TARGET_PATH)


def load_config(
    path: str | Path | Mapping[str, str], overrides: Sequence[str] = ()
) -> PipelineConfig:
    """Load and validate the configuration of a pipeline.

    Args:
        path: A ``.properties`` file, or the settings themselves as a mapping.
        overrides: ``key=value`` texts that replace settings of the file.

    Returns:
        The configuration. Relative paths in it are relative to the working directory.

    Raises:
        ConfigError: The file is missing, a key is unknown or missing, or a value is invalid. The
            message names all problems. It never holds a secret or a value from a reference.
        UsageError: An override has not the form ``key=value``.
    """
    properties = from_mapping(path) if isinstance(path, Mapping) else read_properties(path)
    return load_properties(properties.overridden(overrides))


def load_properties(properties: Properties) -> PipelineConfig:
    """Validate properties that a caller has read; see ``load_config``."""
    settings = sort_keys(properties)
    hudi_url = settings.values.pop(keys.REGISTRY_URL, None)
    kind = _kind(settings)
    _report_missing(properties, kind, settings)
    _warn_of_unused_table_type(settings)
    source: dict[str, Any] = {keys.SOURCE_KIND: kind}
    if kind == "kafka":
        source["kafka_options"] = kafka_options(settings.kafka_keys, properties, settings)
    elif settings.kafka_keys:
        names = ", ".join(sorted(settings.kafka_keys))
        settings.warnings.append(f"without effect on a recorded source: {names}")
    source["registry_options"] = _registry(properties, kind, hudi_url, settings)
    try:
        config = PipelineConfig.model_validate(_fields(settings.values, source, settings))
    except ValidationError as error:
        settings.add_errors(error, settings.values)
        raise settings.error(properties.origin) from None
    if settings.problems:
        raise settings.error(properties.origin)
    own = (*unread_tables(config), *slow_versions(config), *unseen_compression(config))
    warnings = dict.fromkeys([*settings.warnings, *own])
    return config.model_copy(update={"warnings": tuple(warnings)})


def _kind(settings: SortedKeys) -> str:
    """Return the kind of source, from its key or from the settings that only one kind has."""
    if keys.SOURCE_KIND in settings.values:
        return settings.values[keys.SOURCE_KIND].text
    has_path, has_brokers = keys.SOURCE_PATH in settings.values, BROKERS in settings.kafka_keys
    if has_path and has_brokers:
        settings.problems.append(
            f"{keys.SOURCE_PATH} and {BROKERS} are both set: "
            f"say which one is meant by {keys.SOURCE_KIND}=recorded or kafka"
        )
    topics = settings.values.get(keys.TOPICS)
    is_of_hudi = topics is not None and topics.key in TOPIC.names  # Its source is always Kafka.
    may_be_kafka = is_of_hudi or BROKERS in settings.meant.values()
    return "kafka" if has_brokers or (may_be_kafka and not has_path) else "recorded"


def _report_missing(properties: Properties, kind: str, settings: SortedKeys) -> None:
    present = {*settings.values, *properties.entries, *settings.meant.values()}
    missing = [key for key in _REQUIRED if key not in present]
    if kind == "recorded" and keys.SOURCE_PATH not in present:
        missing.append(f"{keys.SOURCE_PATH} (or {BROKERS} for Kafka)")
        unknown = unknown_names(settings.kafka_keys)
        if unknown:
            settings.likely.append(f"unknown, here and to Kafka's clients: {unknown}")
    if kind == "kafka" and BROKERS not in present:
        missing.append(BROKERS)
    if missing:
        settings.problems.append(f"missing: {', '.join(missing)}")
    if kind == "kafka" and keys.SOURCE_PATH in present:
        settings.warnings.append(f"{keys.SOURCE_PATH} has no effect: the source is Kafka")


def _registry(
    properties: Properties, kind: str, hudi_url: Value | None, settings: SortedKeys
) -> dict[str, SecretStr]:
    """Return the settings of the registry, and choose Avro if there is one."""
    names = settings.registry_keys
    if hudi_url is not None or keys.REGISTRY_URL in names:
        settings.values.setdefault(keys.SOURCE_FORMAT, Value(keys.REGISTRY_URL, "avro"))
    source_format = settings.values.get(keys.SOURCE_FORMAT)
    if kind == "kafka" and source_format is not None and source_format.text == "avro":
        options = registry_options(names, properties, hudi_url, settings)
        if hudi_url is None and keys.REGISTRY_URL not in (*names, *settings.meant.values()):
            settings.problems.append(f"missing: {keys.REGISTRY_URL} (or {keys.SOURCE_FORMAT}=json)")
        return options
    unused = ", ".join(sorted([*names, *([hudi_url.key] if hudi_url else [])]))
    if unused and kind == "recorded":
        settings.warnings.append(
            f"without effect on a recorded source, whose schemas are in its registry.json: {unused}"
        )
    elif unused:
        settings.warnings.append(f"without effect on a source in JSON: {unused}")
    return {}


def _warn_of_unused_table_type(settings: SortedKeys) -> None:
    """Warn of Hudi's table type if no table is Hudi's, unless the setting is Hudi's own key."""
    name, values = keys.HUDI_TABLE_TYPE, settings.values
    formats = [values[key].text for key in values if key.endswith(".format")]
    if name in values and values[name].key == name and "hudi" not in formats:
        settings.warnings.append(
            f"{name} has no effect: no table is Hudi's; set {keys.TARGET_FORMAT}=hudi if they "
            "are to be"
        )


def _fields(
    values: Mapping[str, Value], source: Mapping[str, Any], settings: SortedKeys
) -> dict[str, Any]:
    """Return the input of the whole model."""
    pipeline: dict[keys.Key, Value] = {}
    tables: dict[str, dict[keys.Key, Value]] = {}
    for name, value in values.items():
        if name.startswith(keys.TABLE):
            collection, suffix = keys.split_table_key(name)
            tables.setdefault(collection, {})[keys.TABLE_KEYS[suffix]] = value
        elif name in keys.BY_NAME:
            pipeline[keys.BY_NAME[name]] = value
    source = {**_inputs(SourceConfig, pipeline), **source}
    topics = values.get(keys.TOPICS)
    if topics is not None and not are_topic_names(topics.text):
        source["topic_pattern"] = topics.text
        del source[keys.TOPICS]
        source["referenced"] |= {"topic_pattern"} if topics.referenced else set()
    if "topic_prefix" in source["referenced"] and keys.TRANSACTION_TOPIC not in source:
        source["referenced"] |= {"transaction_topic"}  # The topic's default holds the prefix.
    hudi_options = {name: SecretStr(value.text) for name, value in settings.hudi_options.items()}
    return {
        **_inputs(PipelineConfig, pipeline),
        "source": source,
        "target": {**_inputs(TargetConfig, pipeline), "hudi_options": hudi_options},
        "schema_changes": _inputs(SchemaChanges, pipeline),
        "maintenance": _inputs(MaintenanceConfig, pipeline),
        "tables": {
            collection: {
                **_inputs(TableConfig, of_table),
                "schema_changes": _inputs(SchemaChanges, of_table),
            }
            for collection, of_table in tables.items()
        },
    }


def _inputs(model: type[ConfigModel], values: Mapping[keys.Key, Value]) -> dict[str, Any]:
    """Return one model's part of the values, with the names of the fields that hold references."""
    own = {key: value for key, value in values.items() if key.model is model}
    inputs: dict[str, Any] = {
        key.alias: _items(value.text) if key.is_list else value.text for key, value in own.items()
    }
    return {**inputs, "referenced": {key.field for key, value in own.items() if value.referenced}}


def _items(text: str) -> tuple[str, ...]:
    """Return the non-empty items of a comma-separated list."""
    return tuple(item.strip() for item in text.split(",") if item.strip())
