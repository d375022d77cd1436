"""Actions of a Delta log's entry, as the protocol writes them (Delta's ``PROTOCOL.md``, "Actions").

Pure. Only the actions that ``versions.py`` commits itself are here; all others are Delta's.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable
from typing import Any

from lakeingest.engine.delta.deletion_vectors import with_wide_bounds

Action = dict[str, Any]


def now_ms() -> int:
    """Return the time (milliseconds)."""
    return int(time.time() * 1000)


def lines(actions: Iterable[Action]) -> list[str]:
    """Return the lines of an entry."""
    return [json.dumps(action, separators=(",", ":")) for action in actions]


def commit_info(operation: str, metadata: str, now: int, **parameters: str) -> Action:
    """Return the ``commitInfo`` of a commit.

    Args:
        operation: The operation, as Delta names its own.
        metadata: Its ``userMetadata``.
        now: Time of the commit (milliseconds).
        **parameters: Its ``operationParameters``.
    """
    return {
        "commitInfo": {
            "timestamp": now,
            "operation": operation,
            "operationParameters": parameters,
            "isolationLevel": "Serializable",
            "isBlindAppend": False,
            "userMetadata": metadata,
            "engineInfo": "lakeingest",
            "txnId": str(uuid.uuid4()),
        }
    }


def addition(
    template: Action, vector: dict[str, object] | None = None, *, changes_rows: bool = True
) -> Action:
    """Return the body of an ``add``.

    Args:
        template: An ``add`` of the same file.
        vector: Its ``deletionVector``; None: it hides no row.
        changes_rows: Whether the commit changes rows (``dataChange``).
    """
    body = {key: value for key, value in template.items() if key != "deletionVector"}
    body["dataChange"] = changes_rows
    if vector is not None:
        body["deletionVector"] = vector
        body["stats"] = with_wide_bounds(str(template.get("stats") or "{}"))
    return body


def removal(added: Action, *, changes_rows: bool = True) -> Action:
    """Return the body of a ``remove``, given the ``add`` that it ends; see ``addition``."""
    keys = ("path", "partitionValues", "size", "tags", "deletionVector")
    return {
        **{key: added[key] for key in keys if key in added},
        "deletionTimestamp": now_ms(),
        "dataChange": changes_rows,
        "extendedFileMetadata": True,
    }
