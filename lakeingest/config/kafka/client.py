"""Read the settings of the Kafka client: every key that belongs to nobody else, as it is."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import SecretStr

from lakeingest.config.complaints import Messages
from lakeingest.config.file.properties import Properties
from lakeingest.config.spelling import names_of
from lakeingest.errors import ConfigError

BROKERS = "bootstrap.servers"

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


def kafka_options(
    names: Sequence[str], properties: Properties, messages: Messages
) -> dict[str, SecretStr]:
    """Return the settings of the Kafka client.

    Args:
        names: The client's keys.
        properties: The properties with their values.
        messages: Receives what is wrong.
    """
    # Do not read records of a Kafka transaction that was rolled back (exactly-once Connect).
    options = {_ISOLATION: "read_committed"}
    for name in names:
        try:
            text = properties.value(name).text
        except ConfigError as error:
            messages.problems.append(str(error))
            continue
        if not text.strip(", ") and name not in _MAY_BE_EMPTY:
            messages.problems.append(f"{name} has no value: give one or remove the key")
        elif name != _OFFSET_RESET:
            options[name] = text
        elif text != "earliest":
            messages.problems.append(
                f"{_OFFSET_RESET} can only be earliest (set it, or remove the key): a pipeline "
                "starts at the beginning of its topics and stops when offsets it needs were lost, "
                "it never skips"
            )
    unknown = unknown_names(names)
    if unknown:
        messages.warnings.append(f"unknown to Kafka's clients, handed on as it is: {unknown}")
    if options[_ISOLATION] == "read_uncommitted":
        messages.warnings.append(f"{_ISOLATION}=read_uncommitted: rolled-back records are read")
    return {name: SecretStr(text) for name, text in options.items()}


def unknown_names(names: Sequence[str]) -> str:
    """Return the names that no Kafka client knows, as text; empty: there are none."""
    return ", ".join(sorted({*names} - names_of("kafka")))
