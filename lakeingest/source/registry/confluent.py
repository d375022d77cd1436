"""A registry that speaks Confluent's protocol (Confluent, Karapace, Apicurio's ``ccompat``).

Confluent's Python client does the talking: TLS, logins, paths, the shapes of answers. Of its own
patience nothing is used (read in 2.16): it waits for ever unless told otherwise; it repeats all its
requests to the first address, half a minute, before it tries the second, and does so again for the
next schema; it repeats them for a certificate that will not become valid. So there is one client
per address here, without retries, and one loop over all of them: every address is asked in turn,
the last good one first, and only when all of them failed and one may recover is there a wait.

What went wrong is told apart by what to do: a login that is refused, an id that nobody knows, a
registry that is away, and something that answers but is no registry (a proxy, a wrong path).

This module imports ``confluent_kafka`` at the top and is itself imported only when a registry is
opened, so that everything else works without that package.
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
_PASSING = frozenset({408, 425, 429})
_SERVER_ERROR = 500
# Three digits of HTTP and two of its own: a registry that says so knows what it was asked for.
_OF_A_REGISTRY = 40400


class _TroubleError(Exception):
    """One address gave no usable answer; ``passing`` if it may give one later."""

    def __init__(self, said: str, *, passing: bool) -> None:
        super().__init__(said)
        self.passing = passing


class _NotFoundError(Exception):
    """An address answered that it has not what was asked for; the code is the registry's own."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class ConfluentRegistry:
    """A schema registry as a ``registry.Registry``.

    Args:
        options: Settings by the names of ``config.registry.NATIVE``, ``schema.registry.`` before
            each; the url holds no credentials.
        timeout_seconds: How long an address may be silent.
        retries: How often all addresses are asked again.
        pause_seconds: The first wait between; each is twice the one before, and up to half of it
            is left to chance, so that many drivers do not come back at once.

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
        own = {key.removeprefix(_PREFIX): value for key, value in options.items()}
        self._urls = tuple(url.strip() for url in own.pop("url").split(","))
        self._timeout_seconds = timeout_seconds
        self._retries = retries
        self._pause_seconds = pause_seconds
        self._secrets = _secrets(own)
        self._clients = {url: _client(url, own, timeout_seconds) for url in self._urls}
        self._schemas = WholeSchemas(self._registered, self._version)

    @property
    def where(self) -> str:
        """The registry as it stands in a message."""
        return f"the schema registry at {', '.join(self._clients)}"

    def schema(self, schema_id: int) -> str:
        """Return the schema of an id; see ``Registry.schema``."""
        return self._schemas.text(schema_id)

    def check(self) -> None:
        """Ask which types of schemas there are: needs a login, reads nothing.

        Raises:
            AccessError: The registry refuses the login or the question.
            UnavailableError: The registry does not answer, or something else answers.
        """
        what = "list the types of schemas"
        try:
            self._ask(what, _types)
        except _NotFoundError:
            said = "there is no schemas/types, so this is another service or not the whole path"
            raise self._unavailable(what, said) from None

    def close(self) -> None:
        """Close the connections. Safe to call twice."""
        for client in self._clients.values():
            client.close()

    def _registered(self, schema_id: int) -> Registered:
        return self._found(
            f"the schema id {schema_id}",
            lambda client: client.get_schema(schema_id),
            "Whoever wrote the record may use another registry: check schema.registry.url.",
        )

    def _version(self, subject: str, version: int) -> Registered:
        return self._found(
            f"{subject} version {version}",
            # Deleted ones too: what was written with them is still in the topics.
            lambda client: client.get_version(subject, version, deleted=True).schema,
            "Another schema refers to it.",
        )

    def _found(self, what: str, question: _Question[Schema], hint: str) -> Registered:
        try:
            schema = self._ask(f"get {what}", lambda client: _checked(question(client)))
        except _NotFoundError as error:
            if error.code < _OF_A_REGISTRY:
                # Everything is missing on a wrong path: that is not the record's fault.
                self.check()
            message = f"There is no {what} in {self.where}. {hint}"
            raise DataError(message) from None
        kind = schema.schema_type or "AVRO"
        if kind != "AVRO":
            message = f"In {self.where} {what} is of type {kind}; lakeingest reads AVRO only."
            raise DataError(message)
        return Registered(
            str(schema.schema_str),
            tuple(
                (str(other.subject), int(other.version or 0)) for other in schema.references or ()
            ),
        )

    def _ask(self, what: str, question: _Question[_Answer]) -> _Answer:
        pause = self._pause_seconds
        for retries_left in range(self._retries, -1, -1):
            troubles = []
            for url in self._urls:
                try:
                    answer = self._once(url, question)
                except _TroubleError as trouble:
                    troubles.append(trouble)
                else:
                    # The good one first from now on.
                    self._urls = (url, *(other for other in self._urls if other != url))
                    return answer
            said = "; ".join(map(str, troubles))
            if not retries_left or not any(trouble.passing for trouble in troubles):
                break
            seconds = pause * random.uniform(0.5, 1)
            _LOG.warning("Cannot %s: %s. Asking again in %.1f s.", what, said, seconds)
            time.sleep(seconds)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        raise self._unavailable(what, said)

    def _once(self, url: str, question: _Question[_Answer]) -> _Answer:
        try:
            return question(self._clients[url])
        except SchemaRegistryError as error:
            raise self._refusal(url, error) from None
        except httpx2.TimeoutException:
            said = f"{url} gave no answer within {self._timeout_seconds:g} s"
            raise _TroubleError(said, passing=True) from None
        except httpx2.TransportError as error:
            said = f"{url} cannot be reached ({self._quoted(str(error))})"
            if not _is_about_certificate(error):
                raise _TroubleError(said, passing=True) from None
            said += ": name the authority that signed it by schema.registry.ssl.ca.location"
            raise _TroubleError(said, passing=False) from None
        except (httpx2.RequestError, AttributeError, KeyError, TypeError, ValueError):
            # The client takes an answer of status 200 for the registry's, whatever it holds.
            said = f"{url} answered, but not as a schema registry does (a proxy, a login page?)"
            raise _TroubleError(said, passing=False) from None

    def _refusal(self, url: str, error: SchemaRegistryError) -> Exception:
        status = error.http_status_code
        code = error.error_code if isinstance(error.error_code, int) else -1
        # Without a code the text is a whole page of something between.
        said = f" ({self._quoted(str(error.error_message))})" if code >= 0 else ""
        if status in _REFUSED:
            return AccessError(
                f"The schema registry at {url} refuses access: status {status}{said}. Check "
                "schema.registry.basic.auth.user.info (or bearer.auth.token) and its rights."
            )
        if status == _NOT_FOUND:
            return _NotFoundError(code)
        passing = status in _PASSING or status >= _SERVER_ERROR
        return _TroubleError(f"{url} answered with status {status}{said}", passing=passing)

    def _quoted(self, text: str) -> str:
        """Return what another program said, without our secrets and not at any length."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"

    def _unavailable(self, what: str, said: str) -> UnavailableError:
        return UnavailableError(
            f"Cannot {what} of {self.where}: {said}. Check that it is up, that schema.registry.url "
            "is its address with its path, and that it can be reached from here."
        )


def _secrets(own: Mapping[str, str]) -> tuple[str, ...]:
    found = {own[name] for name in _SECRETS if name in own}
    info = own.get("basic.auth.user.info", "")
    found |= {info.partition(":")[2], base64.b64encode(info.encode()).decode()}
    # Longest first: one secret may contain another.
    return tuple(sorted(filter(None, found), key=len, reverse=True))


def _client(url: str, own: Mapping[str, str], timeout_seconds: float) -> SchemaRegistryClient:
    settings: dict[str, object] = {**own, "url": url, "timeout": timeout_seconds, "max.retries": 0}
    if "bearer.auth.token" in own:
        settings["bearer.auth.credentials.source"] = "STATIC_TOKEN"
        # The client insists on it; only Confluent Cloud looks at it.
        settings.setdefault("bearer.auth.logical.cluster", "")
    if "ssl.certificate.location" in own:
        # Without one, OpenSSL would ask for it on the terminal.
        settings.setdefault("ssl.key.password", "")
    for name in _FILES:
        if name in own and not Path(own[name]).exists():
            message = f"{_PREFIX}{name}: there is no {own[name]}."
            raise ConfigError(message)
    try:
        return SchemaRegistryClient(settings)
    except OSError as error:
        given = ", ".join(f"{_PREFIX}{name}" for name in _FILES if name in own)
        message = (
            f"The PEM files of {given} cannot be used: {error}. Check that they are PEM, that key "
            "and certificate belong together, and schema.registry.ssl.key.password."
        )
        raise ConfigError(message) from None


def _types(client: SchemaRegistryClient) -> None:
    if not isinstance(client.get_schema_types(), list):
        message = "no list"
        raise TypeError(message)


def _checked(schema: Schema) -> Schema:
    """Return a schema that is one: the client takes any object for a schema without a text."""
    if (schema.schema_type or "AVRO") == "AVRO":
        json.loads(str(schema.schema_str))
    return schema


def _is_about_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
