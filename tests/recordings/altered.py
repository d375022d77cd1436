"""A recorded run with records changed on purpose: what a broken or a replaced log would hold."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.envelope.records import recorded
from tests.recordings.configure import RecordedRun
from tests.source.folder import write_topic

Line = dict[str, Any]
"""One recorded record: ``p`` partition, ``o`` offset, ``k`` key, ``v`` value (text) and others."""

Edit = Callable[[list[Line]], Iterable[Line]]
"""Makes the lines of a topic anew."""


def altered(run: RecordedRun, folder: Path, **edits: Edit) -> RecordedRun:
    """Return a copy of ``run`` in ``folder`` in which some topics are edited.

    Args:
        run: What to copy.
        folder: Where to; must not exist.
        edits: By the last part of the topic's name.
    """
    shutil.copytree(run.events, folder)
    # Without its bounds the manifest says nothing about the changed files; they are looked at.
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    (folder / "manifest.json").write_text(json.dumps({**manifest, "topics": {}}), "utf-8")
    for name, edit in edits.items():
        (path,) = (folder / "topics").glob(f"*.{name}.jsonl.gz")
        topic = path.name.removesuffix(".jsonl.gz")
        write_topic(folder, topic, edit(list(recorded(folder, topic))))
    return replace(run, events=folder)


def appended(found: list[Line], more: Iterable[Line]) -> list[Line]:
    """Return ``found`` with copies of ``more`` behind it, at the next offset of their partition."""
    result = [*found]
    for line in more:
        end = max(other["o"] for other in result if other["p"] == line["p"])
        result.append({**line, "o": end + 1})
    return result
