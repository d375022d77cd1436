"""Read the settings of the schema registry, by the names of Java's serialisers.

A file for a Java consumer says everything about its registry. So this module accepts those names,
after ``schema.registry.`` or (login only) without it. lakeingest uses Confluent's Python client,
which knows PEM files and one login. If another Java setting has the same meaning, this module
translates it to a setting of that client; otherwise it refuses the setting and names the remedy. A
name that neither client knows gives a warning: it may have a meaning for another tool.

This module removes credentials from the urls, once for all. Rejected: to leave them in, as the
client would accept. The client logs every request with its whole url, and every message of
lakeingest would show it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from urllib.parse import SplitResult, unquote, urlsplit

from pydantic import SecretStr

from lakeingest.config.complaints import Messages
from lakeingest.config.file.properties import Properties, Value
from lakeingest.config.keys import REGISTRY as PREFIX
from lakeingest.config.keys import REGISTRY_URL as URL
from lakeingest.config.redaction import remember
from lakeingest.config.spelling import nearest
from lakeingest.errors import ConfigError

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
"""Names that may follow ``schema.registry.``, with their meaning."""

# Java's key and trust stores, with the client's settings to which a PEM store is translated.
_STORES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ssl.truststore": ("ssl.ca.location",),
        "ssl.keystore": ("ssl.certificate.location", "ssl.key.location"),
    }
)
_STORE_PARTS = (".location", ".type", ".certificates", ".certificate.chain", ".key", ".password")
# Java's settings without effect in lakeingest; they must not count as misspelt.
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


def is_registry_key(name: str) -> bool:
    """Return whether a key is about the registry."""
    return name.startswith((PREFIX, "basic.auth.", "bearer.auth."))


def registry_options(
    names: Iterable[str], properties: Properties, hudi_url: Value | None, messages: Messages
) -> dict[str, SecretStr]:
    """Return the settings of the registry's client, by their whole names.

    The url holds no credentials.

    Args:
        names: The keys for which ``is_registry_key`` holds.
        properties: The properties with their values.
        hudi_url: The registry's url from a Hudi Streamer file, used if there is no other.
        messages: Receives what is without effect, missing, contradictory or without equivalent.
    """
    values = _values(names, properties, messages)
    if hudi_url is not None and values.setdefault("url", hudi_url).text != hudi_url.text:
        messages.warnings.append(f"{hudi_url.key} has no effect: {URL} is set")
    for store, pem_settings in _STORES.items():
        _replace_store(store, pem_settings, values, messages)
    if "url" in values:
        _login(values, _remove_credentials(values, messages), messages)
    _token(values, messages)
    if "ssl.certificate.location" not in values:
        messages.problems.extend(
            f"{values[name].key} needs {PREFIX}ssl.certificate.location"
            for name in ("ssl.key.location", "ssl.key.password")
            if name in values
        )
    return {f"{PREFIX}{name}": SecretStr(value.text) for name, value in values.items()}


def _values(names: Iterable[str], properties: Properties, messages: Messages) -> dict[str, Value]:
    values: dict[str, Value] = {}
    # The names with the prefix first: they override the names without it.
    for name in sorted(names, key=lambda name: not name.startswith(PREFIX)):
        bare_name = name.removeprefix(PREFIX)
        is_of_store = any(bare_name.removeprefix(store) in _STORE_PARTS for store in _STORES)
        if bare_name not in NATIVE and (not is_of_store or bare_name in _ONLY_JAVAS):
            messages.warnings.append(_unknown_warning(name, bare_name))
            continue
        try:
            value = properties.value(name)
        except ConfigError as error:
            messages.problems.append(str(error))
            continue
        if not value.text:
            messages.problems.append(f"{name} has no value: give one or remove the key")
        elif values.setdefault(bare_name, value).text != value.text:
            messages.warnings.append(f"{name} has no effect: {values[bare_name].key} is set")
    return values


def _unknown_warning(name: str, bare_name: str) -> str:
    nearest_name = None if bare_name in _ONLY_JAVAS else nearest(bare_name, NATIVE, likeness=0.75)
    return f"without effect here: {name}" + (
        f"; did you mean {PREFIX}{nearest_name}?" if nearest_name else ""
    )


def _replace_store(
    store: str, pem_settings: tuple[str, ...], values: dict[str, Value], messages: Messages
) -> None:
    """Translate a PEM store to the client's settings, and refuse any other store."""
    parts = {part: values.pop(f"{store}{part}", None) for part in _STORE_PARTS}
    location, kind = parts[".location"], parts[".type"]
    if any(name in values for name in pem_settings):
        return  # Explicit PEM files override the store.
    instead = " and ".join(f"{PREFIX}{name}" for name in pem_settings)
    pem = parts[".certificates"] or parts[".key"] or parts[".certificate.chain"]
    if location is not None and kind is not None and kind.text.upper() == "PEM":
        values.update(dict.fromkeys(pem_settings, location))
    elif location is not None:
        messages.problems.append(
            f"{location.key} is no PEM file (its type is {kind.text if kind else 'JKS'}), and the "
            f"registry's client reads nothing else: export it as PEM and name it by {instead}"
        )
    elif pem is not None:
        messages.problems.append(
            f"{pem.key} holds the PEM text itself, and the registry's client reads files only: "
            f"write it to a file and name it by {instead}"
        )


def _remove_credentials(values: dict[str, Value], messages: Messages) -> str | None:
    """Remove ``user:password@`` from the urls, and return it decoded if there is one."""
    url = values["url"]
    urls, logins = [], set()
    for text in filter(None, (part.strip().rstrip("/") for part in url.text.split(","))):
        parts = _split(text)
        if parts is None:
            messages.problems.append(f"{url.key}: every address begins with http:// or https://")
            return None
        info, _, host = parts.netloc.rpartition("@")
        urls.append(parts._replace(netloc=host).geturl())
        if info:
            _remember_login(info)
            user, _, password = info.partition(":")
            logins.add(f"{unquote(user)}:{unquote(password)}")
    values["url"] = Value(url.key, ",".join(urls), url.referenced)
    if len(logins) > 1:
        messages.problems.append(
            f"{url.key} holds different users; give one by {PREFIX}{_USER_INFO}"
        )
    return logins.pop() if logins else None


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        # Reading ``port`` validates it.
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if usable else None


def _login(values: dict[str, Value], url_login: str | None, messages: Messages) -> None:
    source, info = values.pop(_SOURCE, None), values.pop(_USER_INFO, None)
    source_name = source.text.upper() if source is not None else None
    if source is not None and source_name not in _SOURCES:
        messages.problems.append(f"{source.key} must be one of {', '.join(_SOURCES)}")
    elif source is not None and source_name == "SASL_INHERIT":
        values[_SOURCE] = Value(source.key, "SASL_INHERIT")
    elif source is not None and source_name == "USER_INFO" and info is None:
        messages.problems.append(f"missing: {PREFIX}{_USER_INFO} ({source.key} says it is there)")
    elif source_name is None and info is not None and url_login is not None:
        messages.problems.append(f"{info.key} and {URL} both hold a user: keep one")
    elif info is not None and source_name != "URL":
        if ":" not in info.text:
            messages.problems.append(f"{info.key} is not of the form user:password")
        values[_USER_INFO] = info
    elif url_login is not None:
        values[_USER_INFO] = Value(URL, url_login)
    if info is not None and source_name in {"URL", "SASL_INHERIT"}:
        messages.warnings.append(f"{info.key} has no effect: {PREFIX}{_SOURCE} is {source_name}")
    if _USER_INFO in values:
        _remember_login(values[_USER_INFO].text)


def _token(values: dict[str, Value], messages: Messages) -> None:
    source, token = values.pop(_TOKEN_SOURCE, None), values.get(_TOKEN)
    if source is not None and source.text.upper() != "STATIC_TOKEN":
        messages.problems.append(f"{source.key}: only STATIC_TOKEN is known here")
    elif source is not None and token is None:
        messages.problems.append(f"missing: {PREFIX}{_TOKEN} ({source.key} says it is there)")
    if token is None:
        return
    remember(token.text)
    if _USER_INFO in values or _SOURCE in values:
        messages.problems.append(f"{token.key} and a user for the registry exclude each other")
    # A header allows no other character, and the HTTP client's error would quote the token.
    if not (token.text.isascii() and token.text.isprintable()):
        messages.problems.append(f"{token.key} is no token: it holds other than printable ASCII")


def _remember_login(info: str) -> None:
    remember(info)
    remember(info.partition(":")[2])
