"""Open the registry that a configuration names, with the right login.

This module is separate from the registries. So lakeingest can read a folder without the HTTP
package, and neither registry depends on the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import SparkSession

from lakeingest.errors import ConfigError, UnavailableError
from lakeingest.source.client_options import client_options
from lakeingest.source.registry.contract import Registry
from lakeingest.source.registry.recorded import RecordedRegistry

if TYPE_CHECKING:
    from lakeingest.source.registry.confluent import ConfluentRegistry


class RegistrySettings(Protocol):
    """The part of a source's configuration that says where its schemas are.

    ``config.model.SourceConfig`` satisfies this protocol and documents each field.
    """

    @property
    def kind(self) -> str:
        """``recorded`` or ``kafka``."""

    @property
    def format(self) -> str:
        """``json`` or ``avro``."""

    @property
    def path(self) -> str | None:
        """The folder of a recorded source."""

    def kafka_client_options(self) -> dict[str, str]:
        """Return the settings of the Kafka client, whose login the registry may inherit."""

    def registry_client_options(self) -> dict[str, str]:
        """Return the settings of the registry's client, by their names ``schema.registry.…``."""

    @property
    def registry_timeout_seconds(self) -> int:
        """How long a registry may be silent, in seconds."""

    @property
    def registry_retries(self) -> int:
        """How often to repeat a request."""


def open_registry(config: RegistrySettings, spark: SparkSession | None = None) -> Registry | None:
    """Open the registry of an Avro source, without a request yet. ``None`` for a JSON source.

    Args:
        config: The part of the configuration that says where the schemas are.
        spark: Session that reads a recorded folder; ``None``: read it as a local folder.

    Raises:
        ConfigError: A setting is missing, or a file that a setting names cannot be used.
        UnavailableError: The package that queries a registry is not installed.
    """
    if config.format != "avro":
        return None
    if config.kind == "recorded":
        if config.path is None:
            message = "A recorded source needs the path of its folder."
            raise ConfigError(message)
        return RecordedRegistry(config.path, spark)
    options = config.registry_client_options()
    if options.pop("schema.registry.basic.auth.credentials.source", None) == "SASL_INHERIT":
        login = _kafka_login(config.kafka_client_options())
        options["schema.registry.basic.auth.user.info"] = login
    return _confluent(options, config.registry_timeout_seconds, config.registry_retries)


def _kafka_login(kafka: Mapping[str, str]) -> str:
    login = client_options(kafka).driver
    if "sasl.username" not in login:
        message = (
            "schema.registry.basic.auth.credentials.source=SASL_INHERIT, but the Kafka settings "
            "hold no user and password: set sasl.jaas.config, or USER_INFO for the registry."
        )
        raise ConfigError(message)
    return f"{login['sasl.username']}:{login.get('sasl.password', '')}"


def _confluent(options: Mapping[str, str], timeout: float, retries: int) -> ConfluentRegistry:
    try:
        from lakeingest.source.registry.confluent import ConfluentRegistry
    except ImportError as error:
        message = (
            f"Asking a schema registry needs the package confluent-kafka[schemaregistry] "
            f"({error}): pip install 'lakeingest[kafka]'."
        )
        raise UnavailableError(message) from error
    return ConfluentRegistry(options, timeout, retries)
