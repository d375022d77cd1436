"""The settings of the schema registry, by the names that Java's serialisers give them.

A file that fed a Java consumer says all there is to know about its registry, so those names are
read as they are, with ``schema.registry.`` before them or (login only) without. The client here is
Confluent's for Python, which knows PEM files and one login. What Java says otherwise is put into
its words when the meaning is the same, and refused with the way out when it is not. What is left
of a name that neither client knows is a warning: it may have meant something to another tool.

Credentials are taken out of the urls here, once. Rejected: to leave them in, as the client would
accept; it logs every request with its whole url, and so would every message of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import SecretStr

from lakeingest.config.keys import REGISTRY, REGISTRY_URL, nearest
from lakeingest.config.properties import Properties, Value
from lakeingest.config.redaction import is_secret_key, remember
from lakeingest.errors import ConfigError

PREFIX, URL = REGISTRY, REGISTRY_URL

NATIVE: Mapping[str, str] = MappingProxyType(
    {
        "url": "Addresses, separated by commas; the next one is asked when one does not answer. "
        "Needed for Avro from Kafka. A path (`/apis/ccompat/v7`) belongs to it.",
        "basic.auth.user.info": "`user:password`.",
        "basic.auth.credentials.source": "`USER_INFO`, `URL` (`user:password@` in the address) or "
        "`SASL_INHERIT` (the login of the Kafka client); if not given, whichever there is.",
        "bearer.auth.token": "A token, instead of user and password.",
        "bearer.auth.credentials.source": "Only `STATIC_TOKEN`.",
        "bearer.auth.logical.cluster": "Confluent Cloud's name of the registry.",
        "bearer.auth.identity.pool.id": "Confluent Cloud's identity pool.",
        "ssl.ca.location": "PEM file with the authorities that signed the registry's certificate. "
        "If not given, the usual public ones.",
        "ssl.certificate.location": "PEM file with the certificate shown to the registry.",
        "ssl.key.location": "PEM file with its key, if the certificate's file does not hold it.",
        "ssl.key.password": "Password of that key.",
    }
)
"""What may follow ``schema.registry.``, with its meaning."""

# Java's key and trust stores; PEM ones are translated.
_STORES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ssl.truststore": ("ssl.ca.location",),
        "ssl.keystore": ("ssl.certificate.location", "ssl.key.location"),
    }
)
_STORE_PARTS = (".location", ".type", ".certificates", ".certificate.chain", ".key", ".password")
# Known to Java and without effect here, so not to be taken for misspelt.
_ONLY_JAVAS = frozenset({f"{store}.password" for store in _STORES}) | {
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.protocol",
    "ssl.provider",
}
_SOURCES = ("USER_INFO", "URL", "SASL_INHERIT")
_USER_INFO, _SOURCE = "basic.auth.user.info", "basic.auth.credentials.source"
_TOKEN, _TOKEN_SOURCE = "bearer.auth.token", "bearer.auth.credentials.source"


@dataclass
class RegistrySettings:
    """What a configuration says about its registry.

    Attributes:
        options: Settings by the names of ``NATIVE`` with ``schema.registry.`` before them; the url
            holds no credentials.
        warnings: What has no effect.
        problems: What is missing, contradicts itself or has no equal here.
    """

    options: dict[str, SecretStr] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def is_registry_key(name: str) -> bool:
    """Tell whether a key is about the registry."""
    return name.startswith((PREFIX, "basic.auth.", "bearer.auth."))


def registry_settings(
    names: Iterable[str], properties: Properties, of_hudi: Value | None
) -> RegistrySettings:
    """Read the settings of the registry.

    Args:
        names: The keys for which ``is_registry_key`` holds.
        properties: Where their values are.
        of_hudi: The registry's url as a Hudi Streamer file gives it, used when there is no other.
    """
    result = RegistrySettings()
    values = _values(names, properties, of_hudi, result)
    for store, wanted in _STORES.items():
        _without_store(store, wanted, values, result)
    if "url" in values:
        _login(values, _without_credentials(values, result), result)
    _token(values, result)
    if "ssl.certificate.location" not in values:
        result.problems.extend(
            f"{values[name].key} needs {PREFIX}ssl.certificate.location"
            for name in ("ssl.key.location", "ssl.key.password")
            if name in values
        )
    result.options = {f"{PREFIX}{name}": SecretStr(value.text) for name, value in values.items()}
    return result


def _values(
    names: Iterable[str],
    properties: Properties,
    of_hudi: Value | None,
    result: RegistrySettings,
) -> dict[str, Value]:
    values: dict[str, Value] = {}
    # The longer names first: what is said of the registry by name wins.
    for name in sorted(names, key=lambda name: not name.startswith(PREFIX)):
        short = name.removeprefix(PREFIX)
        stores = [store for store in _STORES if short.removeprefix(store) in _STORE_PARTS]
        if short not in NATIVE and (not stores or short in _ONLY_JAVAS):
            result.warnings.append(_unknown(name, short))
            continue
        try:
            value = properties.value(name)
        except ConfigError as error:
            result.problems.append(str(error))
            continue
        if is_secret_key(name):
            remember(value.text)
        if not value.text:
            result.problems.append(f"{name} has no value: give one or remove the key")
        elif short not in values:
            values[short] = value
        elif values[short].text != value.text:
            result.warnings.append(f"{name} has no effect: {values[short].key} is set")
    if of_hudi is not None and values.setdefault("url", of_hudi).text != of_hudi.text:
        result.warnings.append(f"{of_hudi.key} has no effect: {URL} is set")
    return values


def _unknown(name: str, short: str) -> str:
    near = None if short in _ONLY_JAVAS else nearest(short, NATIVE, likeness=0.75)
    return f"without effect here: {name}" + (f"; did you mean {PREFIX}{near}?" if near else "")


def _without_store(
    store: str, wanted: tuple[str, ...], values: dict[str, Value], result: RegistrySettings
) -> None:
    """Put a PEM store into the words of the client, and refuse any other."""
    given = {part: values.pop(f"{store}{part}", None) for part in _STORE_PARTS}
    location, kind = given[".location"], given[".type"]
    if any(name in values for name in wanted):
        return  # PEM files that were named are what counts.
    instead = " and ".join(f"{PREFIX}{name}" for name in wanted)
    pasted = given[".certificates"] or given[".key"] or given[".certificate.chain"]
    if location is not None and kind is not None and kind.text.upper() == "PEM":
        values.update(dict.fromkeys(wanted, location))
    elif location is not None:
        result.problems.append(
            f"{location.key} is no PEM file (its type is {kind.text if kind else 'JKS'}), and the "
            f"registry's client reads nothing else: export it as PEM and name it by {instead}"
        )
    elif pasted is not None:
        result.problems.append(
            f"{pasted.key} holds the PEM text itself, and the registry's client reads files only: "
            f"write it to a file and name it by {instead}"
        )


def _without_credentials(values: dict[str, Value], result: RegistrySettings) -> str | None:
    """Take ``user:password@`` out of the urls, and return it decoded if there was one."""
    url = values["url"]
    plain, found = [], set()
    for text in filter(None, (part.strip().rstrip("/") for part in url.text.split(","))):
        parts = _split(text)
        if parts is None:
            result.problems.append(f"{url.key}: every address begins with http:// or https://")
            return None
        info, _, host = parts.netloc.rpartition("@")
        plain.append(parts._replace(netloc=host).geturl())
        if info:
            _remember_login(info)
            user, _, password = info.partition(":")
            found.add(f"{unquote(user)}:{unquote(password)}")
    values["url"] = Value(url.key, ",".join(plain), url.referenced)
    if len(found) > 1:
        result.problems.append(f"{url.key} holds different users; give one by {PREFIX}{_USER_INFO}")
    return found.pop() if found else None


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        # Asking for the port checks it.
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None


def _login(values: dict[str, Value], in_url: str | None, result: RegistrySettings) -> None:
    source, info = values.pop(_SOURCE, None), values.pop(_USER_INFO, None)
    said = source.text.upper() if source is not None else None
    if source is not None and said not in _SOURCES:
        result.problems.append(f"{source.key} is none of {', '.join(_SOURCES)}")
    elif source is not None and said == "SASL_INHERIT":
        values[_SOURCE] = Value(source.key, "SASL_INHERIT")
    elif source is not None and said == "USER_INFO" and info is None:
        result.problems.append(f"missing: {PREFIX}{_USER_INFO} ({source.key} says it is there)")
    elif said is None and info is not None and in_url is not None:
        result.problems.append(f"{info.key} and {URL} both hold a user: keep one")
    elif info is not None and said != "URL":
        if ":" not in info.text:
            result.problems.append(f"{info.key} is not of the form user:password")
        values[_USER_INFO] = info
    elif in_url is not None:
        values[_USER_INFO] = Value(URL, in_url)
    if info is not None and said in {"URL", "SASL_INHERIT"}:
        result.warnings.append(f"{info.key} has no effect: {PREFIX}{_SOURCE} is {said}")
    if _USER_INFO in values:
        _remember_login(values[_USER_INFO].text)


def _token(values: dict[str, Value], result: RegistrySettings) -> None:
    source, token = values.pop(_TOKEN_SOURCE, None), values.get(_TOKEN)
    if source is not None and source.text.upper() != "STATIC_TOKEN":
        result.problems.append(f"{source.key}: only STATIC_TOKEN is known here")
    elif source is not None and token is None:
        result.problems.append(f"missing: {PREFIX}{_TOKEN} ({source.key} says it is there)")
    if token is None:
        return
    remember(token.text)
    if _USER_INFO in values or _SOURCE in values:
        result.problems.append(f"{token.key} and a user for the registry exclude each other")
    # Another character cannot stand in a header; the error about it would quote the token.
    if not (token.text.isascii() and token.text.isprintable()):
        result.problems.append(f"{token.key} is no token: it holds other than printable ASCII")


def _remember_login(info: str) -> None:
    remember(info)
    remember(info.partition(":")[2])
