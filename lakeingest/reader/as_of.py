"""Parse a caller's ``as_of``: a batch, a time, or a source transaction.

The type decides: a number is a batch, a ``datetime`` is a time, text is the id of a transaction.
Rejected: read a text of digits as a batch. PostgreSQL's transaction ids are such texts, and the
reader would show the batch of that number without an error. One exception helps people who type:
text that begins with an ISO date is a time. If an id looks like a date (MariaDB's GTID
``2026-10-11``), put ``tx:`` before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone

from lakeingest.errors import UsageError

AsOf = int | str | datetime | None

TRANSACTION = "tx:"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class SourceTransaction:
    """A transaction, by its id in the source."""

    id: str


def parse_as_of(as_of: int | str | datetime) -> int | datetime | SourceTransaction:
    """Parse ``as_of`` to a batch, a time or a transaction; a time without a zone is in UTC.

    Raises:
        UsageError: The text begins like a date but is not an ISO time, it has no id, or the value
            is of another type.
    """
    if isinstance(as_of, int) and not isinstance(as_of, bool):
        return as_of
    if isinstance(as_of, datetime):
        return _with_zone(as_of)
    if not isinstance(as_of, str):
        message = (
            f"{as_of!r} names no publication: write a number (a batch), a time, or the id of a "
            f"source transaction ({TRANSACTION}753)"
        )
        raise UsageError(message)
    text = as_of.strip()
    if not text.removeprefix(TRANSACTION).strip():
        message = f"'{text}' has no id: write one, such as {TRANSACTION}753"
        raise UsageError(message)
    if text.startswith(TRANSACTION):
        return SourceTransaction(text.removeprefix(TRANSACTION).strip())
    if not _DATE.match(text):
        return SourceTransaction(text)
    try:
        # Python 3.10 does not parse the `Z`.
        return _with_zone(datetime.fromisoformat(text.replace("Z", "+00:00")))
    except ValueError:
        message = f"'{text}' is no ISO time; for a transaction id write {TRANSACTION}{text}"
        raise UsageError(message) from None


def _with_zone(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
