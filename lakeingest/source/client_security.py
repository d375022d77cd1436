"""Translate encryption and login settings between Kafka's Java client and librdkafka.

The Java client expects a login as a JAAS line and certificates as a key store; librdkafka expects
user, password and PEM files. A user may write either form. This module derives the settings of the
other client, and never overwrites a setting that the user wrote. Sources: Kafka's documentation of
``SslConfigs`` and ``SaslConfigs`` (PEM stores since 2.7), librdkafka's ``CONFIGURATION.md``.

Rejected: to convert a JKS store on the driver. That needs Java or a crypto library for one call,
and would write private keys to a temporary file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field

from lakeingest.errors import ConfigError
from lakeingest.jaas import jaas_options, unquoted

_SECRET = re.compile(r"password|secret|jaas|token$|\.pem$|\.key$|keystore\.key|certificate")
# Only librdkafka knows these settings; Java's client would warn about each of them.
_DRIVER_ONLY = frozenset(
    {
        "broker.address.family",
        "enable.ssl.certificate.verification",
        "sasl.kerberos.keytab",
        "sasl.kerberos.principal",
        "sasl.mechanisms",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.scope",
        "sasl.password",
        "sasl.username",
        "ssl.ca.location",
        "ssl.ca.pem",
        "ssl.certificate.location",
        "ssl.certificate.pem",
        "ssl.key.location",
        "ssl.key.pem",
    }
)
_SHARED = frozenset(
    {
        "sasl.kerberos.service.name",
        "sasl.mechanism",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
    }
)
_TRUST_STORE = "ssl.truststore.location"
_KEY_STORE = "ssl.keystore.location"
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_JAAS = re.compile(r"\s*(?P<module>[\w.$]+)\s+\w+\s*(?P<options>.*?);?\s*", re.DOTALL)
# librdkafka's setting for each option of each login module.
_JAAS_TO_DRIVER = {
    "PlainLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "ScramLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
    "Krb5LoginModule": {
        "keyTab": "sasl.kerberos.keytab",
        "principal": "sasl.kerberos.principal",
    },
}


@dataclass(frozen=True)
class Security:
    """Encryption and login of both clients."""

    reader: Mapping[str, str] = field(repr=False)
    driver: Mapping[str, str] = field(repr=False)


def is_security(key: str) -> bool:
    """Return whether ``key`` is about encryption or login (or only librdkafka knows it)."""
    return key.startswith(("ssl.", "sasl.")) or key in _DRIVER_ONLY


def redact(text: str, settings: Iterable[Mapping[str, str]]) -> str:
    """Return ``text`` with the values of secret settings replaced by ``***``."""
    secrets = {v for mapping in settings for k, v in mapping.items() if v and _SECRET.search(k)}
    # Replace the longest first: one secret may contain another, as a JAAS line contains a password.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def translate(settings: Mapping[str, str]) -> Security:
    """Return the security settings of both clients, derived from the user's settings.

    Raises:
        ConfigError: A setting has no equivalent for the other client. The message names the setting
            and the remedy.
    """
    security_settings = {key: value for key, value in settings.items() if is_security(key)}
    reader = {key: value for key, value in security_settings.items() if key not in _DRIVER_ONLY}
    driver = {
        key: value for key, value in security_settings.items() if key in _DRIVER_ONLY | _SHARED
    }
    if driver.get("ssl.endpoint.identification.algorithm") == "":
        # The Java client writes "do not compare host names" as an empty value.
        driver["ssl.endpoint.identification.algorithm"] = "none"
    mechanism = security_settings.get("sasl.mechanism") or security_settings.get("sasl.mechanisms")
    if mechanism:
        driver.pop("sasl.mechanisms", None)
        reader["sasl.mechanism"] = driver["sasl.mechanism"] = mechanism
    _login(security_settings, mechanism or "", reader, driver)
    _trust(security_settings, reader, driver)
    _identity(security_settings, reader, driver)
    return Security(reader, driver)


def _login(
    settings: Mapping[str, str],
    mechanism: str,
    reader: MutableMapping[str, str],
    driver: MutableMapping[str, str],
) -> None:
    jaas = settings.get("sasl.jaas.config")
    if jaas is not None:
        _read_jaas(jaas, settings, driver)
    elif "sasl.username" in settings:
        module = _LOGIN_MODULES.get(mechanism)
        if module is None:
            message = (
                f"'sasl.username' needs 'sasl.mechanism' to be one of "
                f"{', '.join(_LOGIN_MODULES)}, it is {mechanism!r}."
            )
            raise ConfigError(message)
        user, password = (
            _quoted(settings["sasl.username"]),
            _quoted(settings.get("sasl.password", "")),
        )
        reader["sasl.jaas.config"] = f"{module} required username={user} password={password};"


def _read_jaas(jaas: str, settings: Mapping[str, str], driver: MutableMapping[str, str]) -> None:
    if any(key in settings for key in ("sasl.username", "sasl.oauthbearer.method")):
        return
    parsed = _JAAS.fullmatch(jaas)
    module = parsed["module"].rpartition(".")[2] if parsed else "unreadable text"
    names = _JAAS_TO_DRIVER.get(module)
    if parsed is None or names is None:
        message = (
            f"'sasl.jaas.config' ({module}) has no equal in the client on the driver (librdkafka), "
            f"which knows {', '.join(_JAAS_TO_DRIVER)}. Use a user of mechanism SCRAM or PLAIN, "
            "or a client certificate, for lakeingest."
        )
        raise ConfigError(message)
    for option, value in jaas_options(parsed["options"]):
        if option in names:
            driver.setdefault(names[option], unquoted(value))
    if module == "OAuthBearerLoginModule":
        driver["sasl.oauthbearer.method"] = "oidc"


def _trust(
    settings: Mapping[str, str], reader: MutableMapping[str, str], driver: MutableMapping[str, str]
) -> None:
    """Translate the authorities that sign the broker's certificate."""
    if "ssl.truststore.certificates" in settings:
        driver.setdefault("ssl.ca.pem", settings["ssl.truststore.certificates"])
    elif _TRUST_STORE in settings:
        kind = settings.get("ssl.truststore.type", "JKS")
        if kind.upper() == "PEM":
            driver.setdefault("ssl.ca.location", settings[_TRUST_STORE])
        elif not {"ssl.ca.location", "ssl.ca.pem"} & settings.keys():
            raise _no_equal(_TRUST_STORE, kind, "ssl.ca.location")
    elif "ssl.ca.location" in settings:
        reader["ssl.truststore.type"] = "PEM"
        reader[_TRUST_STORE] = settings["ssl.ca.location"]
    elif "ssl.ca.pem" in settings:
        reader["ssl.truststore.type"] = "PEM"
        reader["ssl.truststore.certificates"] = settings["ssl.ca.pem"]


def _identity(
    settings: Mapping[str, str], reader: MutableMapping[str, str], driver: MutableMapping[str, str]
) -> None:
    """Translate the certificate that the client shows to the broker."""
    if "ssl.keystore.key" in settings:
        driver.setdefault("ssl.key.pem", settings["ssl.keystore.key"])
        driver.setdefault("ssl.certificate.pem", settings.get("ssl.keystore.certificate.chain", ""))
    elif _KEY_STORE in settings:
        path, kind = settings[_KEY_STORE], settings.get("ssl.keystore.type", "JKS")
        if {"ssl.key.location", "ssl.key.pem"} & settings.keys():
            return
        if kind.upper() == "PEM":
            # Java's PEM store is one file with key and chain; librdkafka reads both from it.
            driver.setdefault("ssl.key.location", path)
            driver.setdefault("ssl.certificate.location", path)
        elif kind.upper() == "PKCS12":
            driver[_KEY_STORE] = path
            driver["ssl.keystore.password"] = settings.get("ssl.keystore.password", "")
        else:
            raise _no_equal(_KEY_STORE, kind, "ssl.key.location")
    elif "ssl.key.pem" in settings:
        reader["ssl.keystore.type"] = "PEM"
        reader["ssl.keystore.key"] = settings["ssl.key.pem"]
        reader["ssl.keystore.certificate.chain"] = settings.get("ssl.certificate.pem", "")
    elif "ssl.key.location" in settings:
        if settings.get("ssl.certificate.location") != settings["ssl.key.location"]:
            message = (
                "'ssl.key.location' and 'ssl.certificate.location' are two files; Spark's client "
                "reads one. Put key and certificate chain into one PEM file, and name it by "
                "'ssl.keystore.location' with 'ssl.keystore.type=PEM'."
            )
            raise ConfigError(message)
        reader["ssl.keystore.type"] = "PEM"
        reader[_KEY_STORE] = settings["ssl.key.location"]


def _no_equal(key: str, kind: str, instead: str) -> ConfigError:
    return ConfigError(
        f"{key!r} is a store of type {kind}, which the client on the driver (librdkafka) cannot "
        f"read. Export it as PEM and set '{key.replace('location', 'type')}=PEM' with that file, "
        f"or keep it for Spark and add {instead!r} (a PEM file) for the driver."
    )


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
