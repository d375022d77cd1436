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

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from lakeingest.config import keys
from lakeingest.config.complaints import complaints, error_about
from lakeingest.config.fields import ConfigModel
from lakeingest.config.foreign_names import kafka_names
from lakeingest.config.hudi_keys import TOPIC
from lakeingest.config.idle import idle_tables
from lakeingest.config.model import PipelineConfig, SourceConfig, TargetConfig
from lakeingest.config.properties import Properties, Value, from_mapping, read_properties
from lakeingest.config.redaction import is_secret_key, remember
from lakeingest.config.registry import URL, registry_settings
from lakeingest.config.schema_changes import SchemaChanges, TableSchemaChanges
from lakeingest.config.sorting import Sorted, sort_keys
from lakeingest.config.topic_names import are_names, items
from lakeingest.errors import ConfigError

BROKERS = "bootstrap.servers"

_REQUIRED = (keys.PIPELINE_NAME, keys.CONNECTOR, keys.TOPIC_PREFIX, keys.TARGET_PATH)

_ISOLATION = "isolation.level"
_OFFSET_RESET = "auto.offset.reset"
# For these settings an empty value means "none", or "do not check".
_MAY_BE_EMPTY = frozenset(
    {
        "config.providers",
        "interceptor.classes",
        "metric.reporters",
        "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm",
    }
)


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
    findings = sort_keys(properties)
    values, registry_keys, kafka_keys = findings.values, findings.registry_keys, findings.kafka_keys
    hudi_url = values.pop(URL, None)
    kind = _kind(values, kafka_keys, findings)
    present = {*values, *properties.entries, *findings.meant.values()}
    _report_missing(present, kind, kafka_keys, findings)
    kafka_options = _kafka_options(kafka_keys, properties, kind, findings)
    if hudi_url is not None or URL in registry_keys:
        values.setdefault(keys.SOURCE_FORMAT.name, Value(URL, "avro"))
    source_format = values.get(keys.SOURCE_FORMAT.name)
    registry_options: dict[str, SecretStr] = {}
    if kind == "kafka" and source_format is not None and source_format.text == "avro":
        registry_options = _registry_options(registry_keys, properties, hudi_url, findings)
    else:
        _warn_of_unused_registry(registry_keys, hudi_url, kind, findings)
    try:
        config = _config(values, kind, kafka_options, registry_options, findings)
    except ValidationError as error:
        others = bool(findings.problems)
        findings.problems.extend(complaints(error, values, others=others))
        raise error_about(properties.origin, findings.problems, findings.likely) from None
    if findings.problems:
        raise error_about(properties.origin, findings.problems, findings.likely)
    return config


def _kind(values: Mapping[str, Value], kafka_keys: Sequence[str], findings: Sorted) -> str:
    """Return the kind of source, from its key or from the settings that only one kind has."""
    if keys.SOURCE_KIND.name in values:
        return values[keys.SOURCE_KIND.name].text
    has_path, has_brokers = keys.SOURCE_PATH.name in values, BROKERS in kafka_keys
    if has_path and has_brokers:
        findings.problems.append(
            f"{keys.SOURCE_PATH.name} and {BROKERS} are both set: "
            f"say which one is meant by {keys.SOURCE_KIND.name}=recorded or kafka"
        )
    misspelt = BROKERS in findings.meant.values() and not has_path
    return "kafka" if has_brokers or misspelt or _is_of_hudi(values, has_path) else "recorded"


def _is_of_hudi(values: Mapping[str, Value], has_path: bool) -> bool:
    """Return whether the topic is Hudi Streamer's setting, whose source is always Kafka."""
    topics = values.get(keys.TOPICS.name)
    return topics is not None and topics.key in TOPIC.names and not has_path


def _report_missing(
    present: Collection[str], kind: str, kafka_keys: Sequence[str], findings: Sorted
) -> None:
    missing = [key.name for key in _REQUIRED if key.name not in present]
    if kind == "recorded" and keys.SOURCE_PATH.name not in present:
        missing.append(f"{keys.SOURCE_PATH.name} (or {BROKERS} for Kafka)")
        unknown = _unknown(kafka_keys)
        if unknown:
            findings.likely.append(f"unknown, here and to Kafka's clients: {unknown}")
    if kind == "kafka" and BROKERS not in present:
        missing.append(BROKERS)
    if missing:
        findings.problems.append(f"missing: {', '.join(missing)}")
    if kind == "kafka" and keys.SOURCE_PATH.name in present:
        findings.warnings.append(f"{keys.SOURCE_PATH.name} has no effect: the source is Kafka")


def _kafka_options(
    names: Sequence[str], properties: Properties, kind: str, findings: Sorted
) -> dict[str, SecretStr]:
    if kind != "kafka":
        if names:
            findings.warnings.append(
                f"without effect on a recorded source: {', '.join(sorted(names))}"
            )
        return {}
    # Do not read records of a Kafka transaction that was rolled back (exactly-once Connect).
    options = {_ISOLATION: SecretStr("read_committed")}
    for name in names:
        try:
            value = properties.value(name)
        except ConfigError as error:
            findings.problems.append(str(error))
            continue
        if is_secret_key(name):
            remember(value.text)
        if not value.text.strip(", ") and name not in _MAY_BE_EMPTY:
            findings.problems.append(f"{name} has no value: give one or remove the key")
        elif name == _OFFSET_RESET:
            _check_offset_reset(value, findings)
        else:
            options[name] = SecretStr(value.text)
    unknown = _unknown(names)
    if unknown:
        findings.warnings.append(f"unknown to Kafka's clients, handed on as it is: {unknown}")
    if options[_ISOLATION].get_secret_value() == "read_uncommitted":
        findings.warnings.append(f"{_ISOLATION}=read_uncommitted: rolled-back records are read")
    return options


def _unknown(names: Sequence[str]) -> str:
    return ", ".join(sorted({*names} - kafka_names()))


def _registry_options(
    names: Sequence[str], properties: Properties, hudi_url: Value | None, findings: Sorted
) -> dict[str, SecretStr]:
    settings = registry_settings(names, properties, hudi_url)
    findings.warnings.extend(settings.warnings)
    findings.problems.extend(settings.problems)
    if hudi_url is None and URL not in (*names, *findings.meant.values()):
        findings.problems.append(f"missing: {URL} (or {keys.SOURCE_FORMAT.name}=json)")
    return settings.options


def _warn_of_unused_registry(
    names: Sequence[str], hudi_url: Value | None, kind: str, findings: Sorted
) -> None:
    unused = sorted([*names, *([hudi_url.key] if hudi_url else [])])
    if unused and kind == "recorded":
        findings.warnings.append(
            f"without effect on a recorded source, whose schemas are in its registry.json: "
            f"{', '.join(unused)}"
        )
    elif unused:
        findings.warnings.append(f"without effect on a source in JSON: {', '.join(unused)}")


def _check_offset_reset(value: Value, findings: Sorted) -> None:
    if value.text != "earliest":
        findings.problems.append(
            f"{_OFFSET_RESET} can only be earliest (set it, or remove the key): a pipeline starts "
            f"at the beginning of its topics and stops when offsets it needs were lost, it never "
            f"skips"
        )


def _config(
    values: Mapping[str, Value],
    kind: str,
    kafka_options: Mapping[str, SecretStr],
    registry_options: Mapping[str, SecretStr],
    findings: Sorted,
) -> PipelineConfig:
    source = _fields(SourceConfig, values)
    source["kind"] = kind
    source["kafka_options"] = kafka_options
    source["registry_options"] = registry_options
    topics = values.get(keys.TOPICS.name)
    if topics is not None and not are_names(topics.text):
        source["topic_pattern"] = topics.text
        del source["topics"]
        source["referenced"] |= {"topic_pattern"} if topics.referenced else set()
    if "topic_prefix" in source["referenced"] and "transaction_topic" not in source:
        source["referenced"] |= {"transaction_topic"}  # The topic's default holds the prefix.
    pipeline = _fields(PipelineConfig, values)
    pipeline["source"] = source
    pipeline["target"] = _fields(TargetConfig, values)
    pipeline["target"]["hudi_options"] = {
        name: SecretStr(value.text) for name, value in findings.hudi_options.items()
    }
    pipeline["schema_changes"] = _fields(SchemaChanges, values)
    pipeline["tables"] = _tables(values)
    _warn_of_unused_table_type(values, pipeline["tables"], findings)
    config = PipelineConfig.model_validate(pipeline)
    warnings = dict.fromkeys([*findings.warnings, *idle_tables(config)])
    return config.model_copy(update={"warnings": tuple(warnings)})


def _fields(model: type[ConfigModel], values: Mapping[str, Value]) -> dict[str, Any]:
    return _model_fields(
        {key: values[key.name] for key in keys.KEYS if key.model is model and key.name in values}
    )


def _tables(values: Mapping[str, Value]) -> dict[str, dict[str, Any]]:
    values_by_table: dict[str, dict[keys.Key, Value]] = {}
    for name, value in values.items():
        if name.startswith(keys.TABLE):
            collection, suffix = keys.split_table_key(name)
            values_by_table.setdefault(collection, {})[keys.TABLE_KEYS[suffix]] = value
    return {collection: _table(fields) for collection, fields in values_by_table.items()}


def _table(values: Mapping[keys.Key, Value]) -> dict[str, Any]:
    policies = {key: value for key, value in values.items() if key.model is TableSchemaChanges}
    others = {key: value for key, value in values.items() if key not in policies}
    return {**_model_fields(others), "schema_changes": _model_fields(policies)}


def _model_fields(values: Mapping[keys.Key, Value]) -> dict[str, Any]:
    """Return model fields from values, with the names of the fields that hold references."""
    fields: dict[str, Any] = {
        key.field: items(value.text) if key.is_list else value.text for key, value in values.items()
    }
    fields["referenced"] = {key.field for key, value in values.items() if value.referenced}
    return fields


def _warn_of_unused_table_type(
    values: Mapping[str, Value], tables: Mapping[str, Mapping[str, Any]], findings: Sorted
) -> None:
    """Warn of Hudi's table type if no table is Hudi's, unless the setting is Hudi's own key."""
    name = keys.HUDI_TABLE_TYPE.name
    table_type, target = values.get(name), values.get(keys.TARGET_FORMAT.name)
    formats = [table.get("format") for table in tables.values()]
    if table_type is None or table_type.key != name or "hudi" in (target and target.text, *formats):
        return
    findings.warnings.append(
        f"{name} has no effect: no table is Hudi's; set {keys.TARGET_FORMAT.name}=hudi if they "
        "are to be"
    )
