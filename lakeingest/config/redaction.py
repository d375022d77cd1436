"""What must never be read by a person: which values are secret, and how they are blanked out.

Pydantic's ``SecretStr`` keeps a secret out of our own ``repr``. It cannot keep it out of a message
that someone else writes: the Kafka client and the JVM print the options they were given. So every
secret that was resolved is also remembered here, and the command line scrubs each message and each
traceback it prints. The rejected way is to scrub by pattern (``password=…``): it misses a token in
a URL, and blanks out harmless text.

The set of known secrets is process-wide on purpose: an exception does not carry the configuration
it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakeingest.jaas import jaas_options, unquoted

REDACTED = "**********"
"""What is shown in place of a secret."""

_SECRET_KEY = re.compile(
    # Not those whose key is another thing's: a lock's, a partition's, a record's.
    r"password|passphrase|secret|jaas|token|credential|private|key\.pem$"
    r"|(?<!lock|cord|tion)[._-]key$",
    re.IGNORECASE,
)
_QUOTED = re.compile(r'"([^"]+)"')
# What a login names besides its secrets; blanked out, it would hide the cause of the error.
_SHOWN = re.compile(
    r"user(name)?|clientid|scope|keytab|principal|servicename|use\w+|storekey|ticketcache"
    r"|donotprompt|aws(?!\w*(?:secret|token|key|external))\w+"
    r"|oauth\.(?:client\.id|scope|token\.endpoint\.uri)",
    re.IGNORECASE,
)
_SWITCHES = {"true", "false"}

# Shorter texts occur in ordinary words, so blanking them out would make messages unreadable and
# would tell by its holes what the secret was.
_SHORTEST = 4

_known: set[str] = set()


def is_secret_key(key: str) -> bool:
    """Tell whether the value of a configuration key is to be hidden because of the key's name."""
    return _SECRET_KEY.search(key) is not None


def remember(secret: str) -> None:
    """Have ``secret`` blanked out by every later ``scrub``.

    The secrets in a JAAS line are remembered on their own as well, however they are quoted there: a
    login error repeats the password without the line around it.
    """
    for text in (secret, *_inside(secret)):
        if len(text) >= _SHORTEST:
            _known.add(text)


def _inside(secret: str) -> Iterator[str]:
    options = jaas_options(secret)
    for name, value in options:
        if not _SHOWN.fullmatch(name) and unquoted(value).lower() not in _SWITCHES:
            # Either form may be quoted by others: as it was written, and as it is sent.
            yield from {value.strip("\"'"), unquoted(value)}
    if not options:
        yield from _QUOTED.findall(secret)


def scrub(text: str) -> str:
    """Return ``text`` with every remembered secret blanked out."""
    # Longest first: a secret that contains another one would otherwise be left in pieces.
    for secret in sorted(_known, key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text
