"""Name the places where a test kills the process: the numbered steps of the commit protocol.

``LAKEINGEST_FAILPOINT=name`` or ``name:n`` sends SIGKILL to this process at the (n-th) passage. It
is SIGKILL and no exception: nothing may run after it, neither a ``finally`` nor an exit hook. The
list is the contract with the fault tests, which pass every name at least once.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from threading import Lock

ADOPTION_FAILPOINTS = (
    "0.before-adoption",
    "0.frontier-claimed",
    "0.first-adopted",
    "0.adopted",
)
"""Places in the adoption of another writer's tables, which precedes a lake's first batch."""

FAILPOINTS = (
    "1.recovered",
    "2.planned",
    "2.claimed",
    "2.first-table-fenced",
    "2.fenced",
    "3.before-first-commit",
    "3.after-first-commit",
    "3.after-last-commit",
    "4.before-publication",
    "4.after-publication",
)
"""Step of DESIGN §8 and the place in it, in the order in which a batch passes the places."""

VERSIONS_FAILPOINT = "3.before-version"
"""Place before each of the versions that a batch makes at once, its files being written."""

MAINTENANCE_FAILPOINTS = (
    "5.first-table-tidied",
    "5.tidied",
    "5.before-publication",
    "5.after-publication",
    "5.announced",
    "5.first-table-expired",
    "5.expired",
)
"""Places in the maintenance of a lake, which no batch passes."""

VARIABLE = "LAKEINGEST_FAILPOINT"

_passages: Counter[str] = Counter()
_lock = Lock()


def failpoint(name: str) -> None:
    """Kill this process if the environment names this place."""
    setting = os.environ.get(VARIABLE)
    if setting is None:
        return
    place, _, nth = setting.partition(":")
    if place != name:
        return
    with _lock:
        _passages[name] += 1
        is_due = _passages[name] == int(nth or 1)
    if is_due:
        os.kill(os.getpid(), signal.SIGKILL)
