"""Encryption and login, between the names of Kafka's Java client and those of librdkafka.

The Java client takes a login as a line of JAAS and certificates as a key store; librdkafka takes
user, password and PEM files. Both ways of writing are accepted, the other client's is derived, and
what a user gives for one client explicitly is never overwritten. Sources: Kafka's documentation of
``SslConfigs`` and ``SaslConfigs`` (PEM stores since 2.7), librdkafka's ``CONFIGURATION.md``.

Rejected: to convert a JKS store on the driver. It needs a Java or a crypto library for one call,
and would put private keys into a temporary file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field

from lakeingest.errors import ConfigError
from lakeingest.jaas import jaas_options, unquoted

_SECRET = re.compile(r"password|secret|jaas|token$|\.pem$|\.key$|keystore\.key|certificate")
# Known to librdkafka only; Java's client would warn about each of them.
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
# Which option of which login module is which setting of librdkafka.
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
    """Return whether ``key`` is about encryption or login (or known to librdkafka only)."""
    return key.startswith(("ssl.", "sasl.")) or key in _DRIVER_ONLY


def redact(text: str, settings: Iterable[Mapping[str, str]]) -> str:
    """Return ``text`` with the values of secret settings replaced by ``***``."""
    secrets = {v for some in settings for k, v in some.items() if v and _SECRET.search(k)}
    # Longest first: one secret may contain another, as a JAAS line contains its password.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def translate(given: Mapping[str, str]) -> Security:
    """Return the security settings of both clients out of the user's.

    Raises:
        ConfigError: A setting has no equal for the other client; says which and the way out.
    """
    own = {key: value for key, value in given.items() if is_security(key)}
    reader = {key: value for key, value in own.items() if key not in _DRIVER_ONLY}
    driver = {key: value for key, value in own.items() if key in _DRIVER_ONLY | _SHARED}
    if driver.get("ssl.endpoint.identification.algorithm") == "":
        # The Java client writes "do not compare host names" as an empty value.
        driver["ssl.endpoint.identification.algorithm"] = "none"
    mechanism = own.get("sasl.mechanism") or own.get("sasl.mechanisms")
    if mechanism:
        driver.pop("sasl.mechanisms", None)
        reader["sasl.mechanism"] = driver["sasl.mechanism"] = mechanism
    _login(own, mechanism or "", reader, driver)
    _trust(own, reader, driver)
    _identity(own, reader, driver)
    return Security(reader, driver)


def _login(
    own: Mapping[str, str],
    mechanism: str,
    reader: MutableMapping[str, str],
    driver: MutableMapping[str, str],
) -> None:
    jaas = own.get("sasl.jaas.config")
    if jaas is not None:
        _read_jaas(jaas, own, driver)
    elif "sasl.username" in own:
        module = _LOGIN_MODULES.get(mechanism)
        if module is None:
            message = (
                f"'sasl.username' needs 'sasl.mechanism' to be one of "
                f"{', '.join(_LOGIN_MODULES)}, it is {mechanism!r}."
            )
            raise ConfigError(message)
        user, password = _quoted(own["sasl.username"]), _quoted(own.get("sasl.password", ""))
        reader["sasl.jaas.config"] = f"{module} required username={user} password={password};"


def _read_jaas(jaas: str, own: Mapping[str, str], driver: MutableMapping[str, str]) -> None:
    if any(key in own for key in ("sasl.username", "sasl.oauthbearer.method")):
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
    own: Mapping[str, str], reader: MutableMapping[str, str], driver: MutableMapping[str, str]
) -> None:
    """Which authorities sign the broker's certificate."""
    if "ssl.truststore.certificates" in own:
        driver.setdefault("ssl.ca.pem", own["ssl.truststore.certificates"])
    elif _TRUST_STORE in own:
        kind = own.get("ssl.truststore.type", "JKS")
        if kind.upper() == "PEM":
            driver.setdefault("ssl.ca.location", own[_TRUST_STORE])
        elif not {"ssl.ca.location", "ssl.ca.pem"} & own.keys():
            raise _no_equal(_TRUST_STORE, kind, "ssl.ca.location")
    elif "ssl.ca.location" in own:
        reader["ssl.truststore.type"] = "PEM"
        reader[_TRUST_STORE] = own["ssl.ca.location"]
    elif "ssl.ca.pem" in own:
        reader["ssl.truststore.type"] = "PEM"
        reader["ssl.truststore.certificates"] = own["ssl.ca.pem"]


def _identity(
    own: Mapping[str, str], reader: MutableMapping[str, str], driver: MutableMapping[str, str]
) -> None:
    """The certificate that the client shows to the broker."""
    if "ssl.keystore.key" in own:
        driver.setdefault("ssl.key.pem", own["ssl.keystore.key"])
        driver.setdefault("ssl.certificate.pem", own.get("ssl.keystore.certificate.chain", ""))
    elif _KEY_STORE in own:
        path, kind = own[_KEY_STORE], own.get("ssl.keystore.type", "JKS")
        if {"ssl.key.location", "ssl.key.pem"} & own.keys():
            return
        if kind.upper() == "PEM":
            # Java's PEM store is one file with key and chain; librdkafka reads each out of it.
            driver.setdefault("ssl.key.location", path)
            driver.setdefault("ssl.certificate.location", path)
        elif kind.upper() == "PKCS12":
            driver[_KEY_STORE] = path
            driver["ssl.keystore.password"] = own.get("ssl.keystore.password", "")
        else:
            raise _no_equal(_KEY_STORE, kind, "ssl.key.location")
    elif "ssl.key.pem" in own:
        reader["ssl.keystore.type"] = "PEM"
        reader["ssl.keystore.key"] = own["ssl.key.pem"]
        reader["ssl.keystore.certificate.chain"] = own.get("ssl.certificate.pem", "")
    elif "ssl.key.location" in own:
        if own.get("ssl.certificate.location") != own["ssl.key.location"]:
            message = (
                "'ssl.key.location' and 'ssl.certificate.location' are two files; Spark's client "
                "reads one. Put key and certificate chain into one PEM file, and name it by "
                "'ssl.keystore.location' with 'ssl.keystore.type=PEM'."
            )
            raise ConfigError(message)
        reader["ssl.keystore.type"] = "PEM"
        reader[_KEY_STORE] = own["ssl.key.location"]


def _no_equal(key: str, kind: str, instead: str) -> ConfigError:
    return ConfigError(
        f"{key!r} is a store of type {kind}, which the client on the driver (librdkafka) cannot "
        f"read. Export it as PEM and set '{key.replace('location', 'type')}=PEM' with that file, "
        f"or keep it for Spark and add {instead!r} (a PEM file) for the driver."
    )


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
