"""Recognise secret values, and replace them in all output.

Pydantic's ``SecretStr`` keeps a secret out of lakeingest's own ``repr``. It cannot keep it out of
another program's message: the Kafka client and the JVM print their options. So this module stores
every resolved secret, and the command line scrubs each message and traceback before it prints it.
The rejected way is to scrub by pattern (``password=…``): it misses a token in a URL, and hides
harmless text.

The set of known secrets is process-wide on purpose: an exception does not know its configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakeingest.jaas import jaas_options, unquoted

REDACTED = "**********"
"""The text that replaces a secret."""

_SECRET_KEY = re.compile(
    # But not a name like "lock key", "partition key" or "record key".
    r"password|passphrase|secret|jaas|token|credential|private|key\.pem$|user\.info$"
    r"|(?<!lock|cord|tion)[._-]key$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"([^"]+)"')
# Options of a login that are no secrets; hiding them would hide the cause of an error.
_SHOWN = re.compile(
    r"user(name)?|clientid|scope|keytab|principal|servicename|use\w+|storekey|ticketcache"
    r"|donotprompt|aws(?!\w*(?:secret|token|key|external))\w+"
    r"|oauth\.(?:client\.id|scope|token\.endpoint\.uri)",
    re.IGNORECASE,
)
_SWITCHES = {"true", "false"}
REFERENCE = re.compile(r"\$\{([A-Za-z]+):([^}]*)\}")
"""Matches what names a value instead of showing it: ``${env:NAME}``, ``${file:/path}``."""

_USER = re.compile(r"[^:]*:")
_PASSWORD_IN_URL = re.compile(r"://[^/@\s:]*:[^/@\s]+@")

# Shorter texts occur in ordinary words. To replace them would make messages unreadable, and the
# gaps would reveal the secret.
_SHORTEST = 4

_secrets: set[str] = set()


def is_secret_key(key: str) -> bool:
    """Return whether a configuration key's name marks its value as secret."""
    return not key.startswith("lakeingest.") and _SECRET_KEY.search(key) is not None


def spells_secret(key: str, text: str) -> bool:
    """Return whether a file's line would show a secret, or a part of one, instead of naming it.

    Args:
        key: The configuration key.
        text: Its value as the file would have it; ``${env:NAME}`` and ``${file:/path}`` name one.
    """
    literal = REFERENCE.sub("", text)
    if not is_secret_key(key):
        return _PASSWORD_IN_URL.search(literal) is not None
    if jaas_options(literal):
        return any(_jaas_secrets(literal))
    return bool(_USER.sub("", literal) if key.endswith("user.info") else literal)


def remember(secret: str) -> None:
    """Store ``secret``, so that every later ``scrub`` replaces it.

    Also store the single secrets of a JAAS line, whatever their quotes: a login error repeats the
    password without the rest of the line.
    """
    for text in (secret, *_jaas_secrets(secret)):
        if len(text) >= _SHORTEST:
            _secrets.add(text)


def _jaas_secrets(secret: str) -> Iterator[str]:
    options = jaas_options(secret)
    for name, value in options:
        if not _SHOWN.fullmatch(name) and unquoted(value).lower() not in _SWITCHES:
            # A message may quote either form: as the file has it, or as the client sends it.
            yield from {value.strip("\"'"), unquoted(value)}
    if not options:
        yield from _QUOTED.findall(secret)


def scrub(text: str) -> str:
    """Return ``text`` with every stored secret replaced."""
    # The longest first: otherwise parts of a secret that contains another one would remain.
    for secret in sorted(_secrets, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text
