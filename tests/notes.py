"""What a commit of a table says about itself, for tests that ask little of it."""

from __future__ import annotations

from typing import Any

from lakeingest.commit_note import CommitNote, token


def commit_note(collection: str, *, writer: int = 1, batch: int = 1, **more: Any) -> CommitNote:
    """Return the note of a writer's batch; ``more``: fields of ``CommitNote``."""
    identity: dict[str, Any] = {"run": f"run {writer}", "token": token(writer, batch)}
    progress = {"batch": batch, "end_offset": batch, "end_position": ""}
    return CommitNote(**{"pipeline": "shop", **identity, **progress, **more}, collection=collection)
