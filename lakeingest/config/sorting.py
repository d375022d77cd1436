"""Sort keys by their owner: lakeingest, Hudi, the registry, or else the Kafka client.

lakeingest must know every key that begins with ``lakeingest.``. The prefix of any other key decides
its owner. An unknown key goes to the Kafka client, with two exceptions, which are errors: it looks
like a misspelt key of lakeingest, Hudi, the registry or the client; or it is a line of a list of
topics.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lakeingest.config import keys
from lakeingest.config.foreign_names import hudi_names, kafka_names, misspelt
from lakeingest.config.hudi import translate
from lakeingest.config.hudi_keys import HUDI_NAMES, both_names
from lakeingest.config.hudi_writing import Said, check_writer, is_of_writer
from lakeingest.config.properties import Entry, Properties, Value
from lakeingest.config.redaction import is_secret_key, remember
from lakeingest.config.registry import NATIVE, PREFIX, is_registry_key
from lakeingest.errors import ConfigError

# Prefixes that Spark and Connect use for the client's settings.
_CLIENTS = ("kafka", "consumer")

_OF_MANY = both_names("ingestion.")


@dataclass
class Sorted(Said):
    """The settings of a configuration, by their owner.

    Attributes:
        values: Values by lakeingest's keys, with Hudi's keys translated. If Hudi's settings name
            the registry's url, it is among them.
        registry_keys: Keys of the registry.
        kafka_keys: Keys of the Kafka client.
        meant: Map from a misspelt key to the key that the user probably meant.
        hudi_options: Settings of Hudi's writer.
        likely: The warnings that may be the cause of a problem.
    """

    values: dict[str, Value] = field(default_factory=dict)
    registry_keys: list[str] = field(default_factory=list)
    kafka_keys: list[str] = field(default_factory=list)
    hudi_options: dict[str, Value] = field(default_factory=dict)
    meant: dict[str, str] = field(default_factory=dict)
    likely: list[str] = field(default_factory=list)


def sort_keys(properties: Properties) -> Sorted:
    """Sort the settings by owner; the result's problems include wrong names."""
    result = Sorted(list(properties.warnings), list(properties.problems))
    own_values: dict[str, Value] = {}
    hudi_values: dict[str, Value] = {}
    hudi_keys: list[str] = []
    for name in properties.entries:
        if name.startswith(keys.OURS):
            _store(name, _unknown_key_problem(name), own_values, properties, result)
        elif name in HUDI_NAMES:
            _store(name, None, hudi_values, properties, result)
        elif name.startswith(keys.HUDIS):
            hudi_keys.append(name)
        elif is_registry_key(name):
            result.registry_keys.append(name)
        else:
            result.kafka_keys.append(name)
    translation = translate(hudi_values, own_values)
    result.problems.extend(translation.problems)
    result.warnings.extend(translation.warnings)
    result.values = {**translation.values, **own_values}
    _refuse_strays(properties, result)
    _sort_hudi_keys(hudi_keys, own_values, properties, result)
    return result


def _refuse_strays(properties: Properties, result: Sorted) -> None:
    """Remove misspelt keys and lines of topics from the Kafka client's keys, as problems."""
    prefix = result.values.get(keys.TOPIC_PREFIX.name)
    known_names = {*kafka_names(), *hudi_names(), *(f"{PREFIX}{name}" for name in NATIVE)}
    strays = {}
    for name in result.kafka_keys:
        if name in known_names:
            continue
        client, _, bare = name.partition(".")
        if client in _CLIENTS and bare in known_names:
            intended: str | None = bare
        else:
            intended = keys.meant_as_ours(name) or misspelt(name, known_names)
        if intended is not None:
            strays[name] = f"unknown key {name}; did you mean {intended}?"
            result.meant[name] = intended
        elif prefix is not None and _is_topic(properties.entries[name], prefix.text):
            strays[name] = (
                f"{name} is a key here, but begins as a topic does; to continue the list of the "
                f"line before, end that with a comma and a backslash, and no blank behind it"
            )
    result.problems.extend(strays.values())
    result.kafka_keys = [name for name in result.kafka_keys if name not in strays]


def _is_topic(entry: Entry, prefix: str) -> bool:
    """Return whether a key is a line of a list of topics: such a line has no value.

    A key with a value may be a setting of the client, even if it begins with the topic prefix
    (``ssl``).
    """
    return entry.key.startswith(f"{prefix}.") and not entry.text.strip(" \t\r\f,\\")


def _sort_hudi_keys(
    names: list[str], own_values: dict[str, Value], properties: Properties, result: Sorted
) -> None:
    has_hudi_tables = any(
        name.endswith(".format") and value.text == "hudi" for name, value in own_values.items()
    )
    of_many = [name for name in sorted(names) if name.startswith(_OF_MANY)]
    if of_many:  # Such a file names no topic, so lakeingest would read all topics of the prefix.
        result.likely.append(
            f"without effect here: {', '.join(of_many)}; lakeingest hoodie-multi-table-streamer "
            "reads the files of many tables"
        )
    without_effect = []
    for name in sorted({*names}.difference(of_many)):
        of_writer = has_hudi_tables and is_of_writer(name)
        intended = misspelt(name, hudi_names())
        if of_writer:
            _store(name, None, result.hudi_options, properties, result)
        elif intended is None:
            without_effect.append(name)
        if intended is not None:
            effect = "unknown to Hudi, handed on as it is" if of_writer else "without effect here"
            result.likely.append(f"{effect}: {name}; did you mean {intended}?")
    for name, value in result.hudi_options.items():
        if is_secret_key(name):
            remember(value.text)
    check_writer(result.hudi_options, result)
    result.warnings.extend(result.likely)
    if without_effect:
        result.warnings.append(f"without effect here: {', '.join(without_effect)}")


def _store(
    name: str, problem: str | None, values: dict[str, Value], properties: Properties, result: Sorted
) -> None:
    if problem is not None:
        result.problems.append(problem)
        return
    try:
        value = properties.value(name)
    except ConfigError as error:
        result.problems.append(str(error))
        return
    if value.text.strip(", "):
        values[name] = value
    elif name in HUDI_NAMES:
        return  # For Hudi an empty value means no value.
    elif name.startswith(keys.HUDIS):
        result.warnings.append(f"{name} has no value and is left out: Hudi's default is taken")
    else:
        result.problems.append(f"{name} has no value: give one or remove the key")


def _unknown_key_problem(name: str) -> str | None:
    """Return the message about an unknown key of lakeingest; ``None``: the key is known."""
    if name in keys.KNOWN_NAMES:
        return None
    if name.startswith(keys.TABLE):
        collection, suffix = keys.split_table_key(name)
        if collection and suffix in keys.TABLE_KEYS:
            return None
        if not collection:
            return f"{name} names no collection; write {keys.TABLE}{keys.COLLECTION}.schema"
        pipelines = keys.of_all_tables(name)
        if pipelines is not None:
            return f"unknown key {name}: it is one for all tables, set {pipelines}"
    near = keys.nearest_key(name)
    hint = f"did you mean {near}?" if near else "see lakeingest config-reference"
    return f"unknown key {name}; {hint}"
