"""Sort keys by their owner: lakeingest, Hudi, the registry, or else the Kafka client.

lakeingest must know every key that begins with ``lakeingest.``. The prefix of any other key decides
its owner. An unknown key goes to the Kafka client, with two exceptions, which are errors: it looks
like a misspelt key of lakeingest, Hudi, the registry or the client; or it is a line of a list of
topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakeingest.config import keys
from lakeingest.config.complaints import Messages
from lakeingest.config.file.properties import Entry, Properties, Value
from lakeingest.config.hudi.writer import is_of_writer, writer_warnings
from lakeingest.config.kafka.registry import NATIVE, is_registry_key
from lakeingest.config.spelling import misspelt, names_of
from lakeingest.config.streamer.settings import HUDI_NAMES, both_names
from lakeingest.config.streamer.translation import translate
from lakeingest.errors import ConfigError

# Prefixes that Spark and Connect use for the client's settings.
_CLIENTS = ("kafka", "consumer")

_OF_MANY_TABLES = both_names("ingestion.")


@dataclass
class SortedKeys(Messages):
    """The settings of a configuration, by their owner.

    Attributes:
        values: Values by lakeingest's keys, with Hudi's keys translated. If Hudi's settings name
            the registry's url, it is among them.
        registry_keys: Keys of the registry.
        kafka_keys: Keys of the Kafka client.
        hudi_options: Settings of Hudi's writer.
        meant: Map from a misspelt key to the key that the user probably meant.
    """

    values: dict[str, Value] = field(default_factory=dict)
    registry_keys: list[str] = field(default_factory=list)
    kafka_keys: list[str] = field(default_factory=list)
    hudi_options: dict[str, Value] = field(default_factory=dict)
    meant: dict[str, str] = field(default_factory=dict)

    def store(self, name: str, values: dict[str, Value], properties: Properties) -> None:
        """Resolve a value and store it, or report that there is none."""
        try:
            value = properties.value(name)
        except ConfigError as error:
            self.problems.append(str(error))
            return
        if value.text.strip(", "):
            values[name] = value
        elif name in HUDI_NAMES:
            return  # For Hudi an empty value means no value.
        elif name.startswith(keys.HUDIS):
            self.warnings.append(f"{name} has no value and is left out: Hudi's default is taken")
        else:
            self.problems.append(f"{name} has no value: give one or remove the key")


def sort_keys(properties: Properties) -> SortedKeys:
    """Sort the settings by owner; the result's problems include wrong names."""
    result = SortedKeys([*properties.warnings], [*properties.problems])
    own_values: dict[str, Value] = {}
    streamer_values: dict[str, Value] = {}
    hudi_names: list[str] = []
    for name in properties.entries:
        if name.startswith(keys.OURS):
            problem = keys.unknown_key_problem(name)
            if problem is None:
                result.store(name, own_values, properties)
            else:
                result.problems.append(problem)
        elif name in HUDI_NAMES:
            result.store(name, streamer_values, properties)
        elif name.startswith(keys.HUDIS):
            hudi_names.append(name)
        elif is_registry_key(name):
            result.registry_keys.append(name)
        else:
            result.kafka_keys.append(name)
    result.values = {**translate(streamer_values, own_values, result), **own_values}
    _refuse_strays(properties, result)
    _sort_hudi_keys(sorted(hudi_names), properties, result)
    return result


def _refuse_strays(properties: Properties, result: SortedKeys) -> None:
    """Remove misspelt keys and lines of topics from the Kafka client's keys, as problems."""
    prefix = result.values.get(keys.TOPIC_PREFIX)
    registry_names = {f"{keys.REGISTRY}{name}" for name in NATIVE}
    known_names = names_of("kafka") | names_of("hudi") | HUDI_NAMES | registry_names
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
                f"{name} is a key here, but begins like a topic; to continue the list of the "
                "line before, end that line with a comma and a backslash, and no blank behind it"
            )
    result.problems.extend(strays.values())
    result.kafka_keys = [name for name in result.kafka_keys if name not in strays]


def _is_topic(entry: Entry, prefix: str) -> bool:
    """Return whether a key is a line of a list of topics: such a line has no value.

    A key with a value may be a setting of the client, even if it begins with the topic prefix
    (``ssl``).
    """
    return entry.key.startswith(f"{prefix}.") and not entry.text.strip(" \t\r\f,\\")


def _sort_hudi_keys(names: Sequence[str], properties: Properties, result: SortedKeys) -> None:
    has_hudi_tables = any(
        name.endswith(".format") and name.startswith(keys.OURS) and value.text == "hudi"
        for name, value in result.values.items()
    )
    of_many_tables = [name for name in names if name.startswith(_OF_MANY_TABLES)]
    if of_many_tables:  # Such a file names no topic, so lakeingest would read all of the prefix.
        result.likely.append(
            f"without effect here: {', '.join(of_many_tables)}; lakeingest "
            "hoodie-multi-table-streamer reads the files of many tables"
        )
    without_effect = []
    for name in names:
        if name.startswith(_OF_MANY_TABLES):
            continue
        intended = misspelt(name, names_of("hudi") | HUDI_NAMES)
        effect = "without effect here"
        if has_hudi_tables and is_of_writer(name):
            result.store(name, result.hudi_options, properties)
            effect = "unknown to Hudi, handed on as it is"
        elif intended is None:
            without_effect.append(name)
        if intended is not None:
            result.likely.append(f"{effect}: {name}; did you mean {intended}?")
    options = {name: value.text for name, value in result.hudi_options.items()}
    result.warnings.extend([*writer_warnings(options), *result.likely])
    if without_effect:
        result.warnings.append(f"without effect here: {', '.join(without_effect)}")
