"""Whose keys are they: ours, Hudi's, the registry's, or else the Kafka client's.

A key that begins with ``lakeingest.`` must be known. Any other is handed on by its beginning, and
one that nobody knows goes to the Kafka client, unless it looks like a misspelt one of ours, Hudi's,
the registry's or the client's own, or is a topic that got among the keys.
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

# Spark and Connect put one of these before the client's settings.
_CLIENTS = ("kafka", "consumer")

_OF_MANY = both_names("ingestion.")


@dataclass
class Sorted(Said):
    """The settings of a configuration, by whom they concern.

    Attributes:
        values: By key of ours, Hudi's translated; among them the registry's url if Hudi's settings
            name it.
        registry_keys: Keys of the registry.
        kafka_keys: Keys of the Kafka client.
        meant: By misspelt key, the one that it was probably meant to be.
        hudi_options: Settings of Hudi's writer.
        likely: Those of the warnings that may be the cause of a problem.
    """

    values: dict[str, Value] = field(default_factory=dict)
    registry_keys: list[str] = field(default_factory=list)
    kafka_keys: list[str] = field(default_factory=list)
    hudi_options: dict[str, Value] = field(default_factory=dict)
    meant: dict[str, str] = field(default_factory=dict)
    likely: list[str] = field(default_factory=list)


def sort_keys(properties: Properties) -> Sorted:
    """Sort the settings; what is wrong with their names is among the problems."""
    result = Sorted(list(properties.warnings), list(properties.problems))
    ours: dict[str, Value] = {}
    hudis: dict[str, Value] = {}
    hudi_keys: list[str] = []
    for name in properties.entries:
        if name.startswith(keys.OURS):
            _take(name, _unknown(name), ours, properties, result)
        elif name in HUDI_NAMES:
            _take(name, None, hudis, properties, result)
        elif name.startswith(keys.HUDIS):
            hudi_keys.append(name)
        elif is_registry_key(name):
            result.registry_keys.append(name)
        else:
            result.kafka_keys.append(name)
    translation = translate(hudis, ours)
    result.problems.extend(translation.problems)
    result.warnings.extend(translation.warnings)
    result.values = {**translation.values, **ours}
    _refuse_strays(properties, result)
    _sort_hudis(hudi_keys, ours, properties, result)
    return result


def _refuse_strays(properties: Properties, result: Sorted) -> None:
    """Take out of the Kafka client's keys what nobody can have meant as one."""
    prefix = result.values.get(keys.TOPIC_PREFIX.name)
    known = {*kafka_names(), *hudi_names(), *(f"{PREFIX}{name}" for name in NATIVE)}
    strays = {}
    for name in result.kafka_keys:
        if name in known:
            continue
        client, _, bare = name.partition(".")
        if client in _CLIENTS and bare in known:
            meant: str | None = bare
        else:
            meant = keys.meant_as_ours(name) or misspelt(name, known)
        if meant is not None:
            strays[name] = f"unknown key {name}; did you mean {meant}?"
            result.meant[name] = meant
        elif prefix is not None and _is_topic(properties.entries[name], prefix.text):
            strays[name] = (
                f"{name} is a key here, but begins as a topic does; to continue the list of the "
                f"line before, end that with a comma and a backslash, and no blank behind it"
            )
    result.problems.extend(strays.values())
    result.kafka_keys = [name for name in result.kafka_keys if name not in strays]


def _is_topic(entry: Entry, prefix: str) -> bool:
    """Tell whether a key is a line of a list of topics: such a line has nothing but its end.

    With a value it may be a setting of the client's, whatever the topics' prefix (``ssl``).
    """
    return entry.key.startswith(f"{prefix}.") and not entry.text.strip(" \t\r\f,\\")


def _sort_hudis(
    names: list[str], ours: dict[str, Value], properties: Properties, result: Sorted
) -> None:
    has_hudi_tables = any(
        name.endswith(".format") and value.text == "hudi" for name, value in ours.items()
    )
    of_many = [name for name in sorted(names) if name.startswith(_OF_MANY)]
    if of_many:  # Without a topic of its own such a file would be all topics of the prefix.
        result.likely.append(
            f"without effect here: {', '.join(of_many)}; lakeingest hoodie-multi-table-streamer "
            "reads the files of many tables"
        )
    without_effect = []
    for name in sorted({*names}.difference(of_many)):
        of_writer = has_hudi_tables and is_of_writer(name)
        meant = misspelt(name, hudi_names())
        if of_writer:
            _take(name, None, result.hudi_options, properties, result)
        elif meant is None:
            without_effect.append(name)
        if meant is not None:
            what = "unknown to Hudi, handed on as it is" if of_writer else "without effect here"
            result.likely.append(f"{what}: {name}; did you mean {meant}?")
    for name, value in result.hudi_options.items():
        if is_secret_key(name):
            remember(value.text)
    check_writer(result.hudi_options, result)
    result.warnings.extend(result.likely)
    if without_effect:
        result.warnings.append(f"without effect here: {', '.join(without_effect)}")


def _take(
    name: str, unknown: str | None, into: dict[str, Value], properties: Properties, result: Sorted
) -> None:
    if unknown is not None:
        result.problems.append(unknown)
        return
    try:
        value = properties.value(name)
    except ConfigError as error:
        result.problems.append(str(error))
        return
    if value.text.strip(", "):
        into[name] = value
    elif name in HUDI_NAMES:
        return  # Hudi takes an empty value for none.
    elif name.startswith(keys.HUDIS):
        result.warnings.append(f"{name} has no value and is left out: Hudi's default is taken")
    else:
        result.problems.append(f"{name} has no value: give one or remove the key")


def _unknown(name: str) -> str | None:
    """Return what is wrong with the name of a key of ours, None if it is known."""
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
