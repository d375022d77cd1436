"""Query a registry with Confluent's protocol (Confluent, Karapace, Apicurio's ``ccompat``).

Confluent's Python client handles TLS, logins, paths and the format of responses. Its own timeouts
and retries are not used (read in version 2.16). It waits for ever without an explicit timeout. It
repeats all its requests to the first address, for half a minute, before it tries the second, and
does so again for the next schema. It even repeats them for an invalid certificate. So this module
has one client per address, without retries, and one loop over all addresses. The loop tries each
address in turn, the last good one first. It waits only if all addresses failed and one of them may
recover.

Errors differ by their remedy: the registry refuses the login, nobody knows the id, the registry is
away, or the answer comes from something that is no registry (a proxy, a wrong path).

This module imports ``confluent_kafka`` at the top. Other modules import this one only to open a
registry, so that everything else works without that package.
"""

from __future__ import annotations

import base64
import json
import logging
import random
import ssl
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import httpx2
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError

from lakeingest.errors import AccessError, ConfigError, DataError, UnavailableError
from lakeingest.source.registry.contract import Registered, WholeSchemas

_LOG = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")
_Question = Callable[[SchemaRegistryClient], _Answer]

_PREFIX = "schema.registry."
_FILES = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
_SECRETS = ("basic.auth.user.info", "bearer.auth.token", "ssl.key.password")
_LONGEST_PAUSE_SECONDS = 20.0
_LONGEST_QUOTE = 200

_REFUSED = frozenset({401, 403})
_NOT_FOUND = 404
_TRANSIENT = frozenset({408, 425, 429})
_SERVER_ERROR = 500
# Three digits of HTTP and two of the registry: with such a code the address is a real registry.
_OF_A_REGISTRY = 40400


class _TroubleError(Exception):
    """One address gave no usable answer; ``transient``: it may give one later."""

    def __init__(self, details: str, *, transient: bool) -> None:
        super().__init__(details)
        self.transient = transient


class _NotFoundError(Exception):
    """An address answered that the schema does not exist; ``code`` is the registry's own code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ConfluentRegistry:
    """A schema registry as a ``registry.Registry``.

    Args:
        options: Settings by the names of ``config.registry.NATIVE``, each after the prefix
            ``schema.registry.``; the url holds no credentials.
        timeout_seconds: How long an address may be silent.
        retries: How often to try all addresses again.
        pause_seconds: The first wait between two rounds. Each wait is twice the one before. Up to
            half of a wait is random, so that many drivers do not come back at once.

    Raises:
        ConfigError: A file that the settings name cannot be used.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        timeout_seconds: float,
        retries: int,
        pause_seconds: float = 1.0,
    ) -> None:
        settings = {key.removeprefix(_PREFIX): value for key, value in options.items()}
        self._urls = tuple(url.strip() for url in settings.pop("url").split(","))
        self._timeout_seconds = timeout_seconds
        self._retries = retries
        self._pause_seconds = pause_seconds
        self._secrets = _secrets(settings)
        self._clients = {url: _client(url, settings, timeout_seconds) for url in self._urls}
        self._schemas = WholeSchemas(self._registered, self._version)

    @property
    def where(self) -> str:
        """The registry's name for messages."""
        return f"the schema registry at {', '.join(self._clients)}"

    def schema(self, schema_id: int) -> str:
        """Return the schema of an id; see ``Registry.schema``."""
        return self._schemas.text(schema_id)

    def check(self) -> None:
        """Request the list of schema types: needs a login, reads no schema.

        Raises:
            AccessError: The registry refuses the login or the request.
            UnavailableError: The registry does not answer, or something else answers.
        """
        action = "list the types of schemas"
        try:
            self._ask(action, _types)
        except _NotFoundError:
            details = "there is no schemas/types, so this is another service or not the whole path"
            raise self._unavailable(action, details) from None

    def close(self) -> None:
        """Close the connections. Safe to call twice."""
        for client in self._clients.values():
            client.close()

    def _registered(self, schema_id: int) -> Registered:
        return self._get(
            f"the schema id {schema_id}",
            lambda client: client.get_schema(schema_id),
            "Whoever wrote the record may use another registry: check schema.registry.url.",
        )

    def _version(self, subject: str, version: int) -> Registered:
        return self._get(
            f"{subject} version {version}",
            # Include deleted schemas: the topics still hold records in them.
            lambda client: client.get_version(subject, version, deleted=True).schema,
            "Another schema refers to it.",
        )

    def _get(self, name: str, question: _Question[Schema], hint: str) -> Registered:
        try:
            schema = self._ask(f"get {name}", lambda client: _parsable(question(client)))
        except _NotFoundError as error:
            if error.code < _OF_A_REGISTRY:
                # With a wrong path every schema is missing; then the record is not at fault.
                self.check()
            message = f"There is no {name} in {self.where}. {hint}"
            raise DataError(message) from None
        kind = schema.schema_type or "AVRO"
        if kind != "AVRO":
            message = f"In {self.where} {name} is of type {kind}; lakeingest reads AVRO only."
            raise DataError(message)
        return Registered(
            str(schema.schema_str),
            tuple(
                (str(other.subject), int(other.version or 0)) for other in schema.references or ()
            ),
        )

    def _ask(self, action: str, question: _Question[_Answer]) -> _Answer:
        pause = self._pause_seconds
        for retries_left in range(self._retries, -1, -1):
            troubles, absent = [], None
            for url in self._urls:
                try:
                    answer = self._ask_address(url, question)
                except _TroubleError as trouble:
                    troubles.append(trouble)
                except _NotFoundError as error:
                    # Another address may have read what this one has not yet.
                    absent = error
                else:
                    # From now on, try the good address first.
                    self._urls = (url, *(other for other in self._urls if other != url))
                    return answer
            if absent is not None and not troubles:
                raise absent
            details = "; ".join(map(str, troubles))
            if not retries_left or not any(trouble.transient for trouble in troubles):
                break
            seconds = pause * random.uniform(0.5, 1)
            _LOG.warning("Cannot %s: %s. Asking again in %.1f s.", action, details, seconds)
            time.sleep(seconds)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        raise self._unavailable(action, details)

    def _ask_address(self, url: str, question: _Question[_Answer]) -> _Answer:
        try:
            return question(self._clients[url])
        except SchemaRegistryError as error:
            raise self._refusal(url, error) from None
        except httpx2.TimeoutException:
            details = f"{url} gave no answer within {self._timeout_seconds:g} s"
            raise _TroubleError(details, transient=True) from None
        except httpx2.TransportError as error:
            details = f"{url} cannot be reached ({self._clean(str(error))})"
            if not _is_about_certificate(error):
                raise _TroubleError(details, transient=True) from None
            details += ": name the authority that signed it by schema.registry.ssl.ca.location"
            raise _TroubleError(details, transient=False) from None
        except (httpx2.RequestError, AttributeError, KeyError, TypeError, ValueError):
            # The client accepts any response with status 200 as the registry's.
            details = f"{url} answered, but not as a schema registry does (a proxy, a login page?)"
            raise _TroubleError(details, transient=False) from None

    def _refusal(self, url: str, error: SchemaRegistryError) -> Exception:
        status = error.http_status_code
        code = error.error_code if isinstance(error.error_code, int) else -1
        # Without a code the text is a whole page from something in between, such as a proxy.
        details = f" ({self._clean(str(error.error_message))})" if code >= 0 else ""
        if status in _REFUSED:
            return AccessError(
                f"The schema registry at {url} refuses access: status {status}{details}. Check "
                "schema.registry.basic.auth.user.info (or bearer.auth.token) and its rights."
            )
        if status == _NOT_FOUND:
            return _NotFoundError(code)
        transient = status in _TRANSIENT or status >= _SERVER_ERROR
        return _TroubleError(f"{url} answered with status {status}{details}", transient=transient)

    def _clean(self, text: str) -> str:
        """Return another program's text, shortened and without lakeingest's secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"

    def _unavailable(self, action: str, details: str) -> UnavailableError:
        return UnavailableError(
            f"Cannot {action} of {self.where}: {details}. Check that it is up, that "
            "schema.registry.url is its address with its path, and that it can be reached from "
            "here."
        )


def _secrets(settings: Mapping[str, str]) -> tuple[str, ...]:
    secrets = {settings[name] for name in _SECRETS if name in settings}
    info = settings.get("basic.auth.user.info", "")
    secrets |= {info.partition(":")[2], base64.b64encode(info.encode()).decode()}
    # The longest first: one secret may contain another.
    return tuple(sorted(filter(None, secrets), key=len, reverse=True))


def _client(url: str, settings: Mapping[str, str], timeout_seconds: float) -> SchemaRegistryClient:
    client_settings: dict[str, object] = {
        **settings,
        "url": url,
        "timeout": timeout_seconds,
        "max.retries": 0,
    }
    if "bearer.auth.token" in settings:
        client_settings["bearer.auth.credentials.source"] = "STATIC_TOKEN"
        # The client requires this setting; only Confluent Cloud uses it.
        client_settings.setdefault("bearer.auth.logical.cluster", "")
    if "ssl.certificate.location" in settings:
        # Without a password, OpenSSL would prompt for it on the terminal.
        client_settings.setdefault("ssl.key.password", "")
    for name in _FILES:
        if name in settings and not Path(settings[name]).exists():
            message = f"{_PREFIX}{name}: there is no {settings[name]}."
            raise ConfigError(message)
    try:
        return SchemaRegistryClient(client_settings)
    except OSError as error:
        names = ", ".join(f"{_PREFIX}{name}" for name in _FILES if name in settings)
        message = (
            f"The PEM files of {names} cannot be used: {error}. Check that they are PEM, that key "
            "and certificate belong together, and schema.registry.ssl.key.password."
        )
        raise ConfigError(message) from None


def _types(client: SchemaRegistryClient) -> None:
    if not isinstance(client.get_schema_types(), list):
        message = "no list"
        raise TypeError(message)


def _parsable(schema: Schema) -> Schema:
    """Parse a schema's text as a check: the client accepts any object as a schema without text."""
    if (schema.schema_type or "AVRO") == "AVRO":
        json.loads(str(schema.schema_str))
    return schema


def _is_about_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
