"""A recorded run cut short, or with records changed on purpose.

The changed records are what a broken or a replaced log would hold. A run cut short at a commit is
as good as a whole one where a test needs few rows, and takes a fraction of its time. Its truth is
the totals after each commit; the database's final rows are those of the whole run.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.envelope.records import recorded
from tests.logs.folder import write_log, write_topic
from tests.recordings.configure import RecordedRun, packaged_run
from tests.recordings.oracle import Oracle, Totals

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


def appended(lines: list[Line], more: Iterable[Line]) -> list[Line]:
    """Return ``lines`` with copies of ``more`` behind it, at the next offset of their partition."""
    result = [*lines]
    for line in more:
        end = max(other["o"] for other in result if other["p"] == line["p"])
        result.append({**line, "o": end + 1})
    return result


@dataclass(frozen=True)
class PartOracle(Oracle):
    """The truth of a pipeline that reads a part of a run.

    Attributes:
        chosen: The tables that it reads; empty: all.
        end: The last commit; None: the run's.
    """

    chosen: tuple[str, ...] = ()
    end: int | None = None

    @property
    def knows_final(self) -> bool:
        return self.end is None

    @cached_property
    def tables(self) -> tuple[str, ...]:
        return self.chosen or Oracle(self.folder).tables

    @cached_property
    def commits(self) -> tuple[Totals, ...] | None:
        commits = Oracle(self.folder).commits
        return commits and tuple(
            {table: measures for table, measures in totals.items() if table in self.tables}
            for totals in commits[: None if self.end is None else self.end + 1]
        )


def short_run(folder: Path, end: int, *tables: str) -> RecordedRun:
    """Return the packaged run (PostgreSQL) up to a commit.

    Args:
        folder: Where its events go; must not exist.
        end: The last of its commits, from 1. 100 have every operation but no change of ``bulk``.
        tables: The tables whose topics it has; by default all.
    """
    run = packaged_run()
    oracle = PartOracle(run.oracle.folder, tables, end)
    marks = f"{run.prefix}.transaction"
    transactions: set[str] = set()
    short: list[Line] = []
    for line in recorded(run.events, marks):
        mark = json.loads(line["v"])
        if len(transactions) == end and mark["status"] == "BEGIN":
            break
        short.append(line)
        if mark["status"] == "END":
            transactions.add(_transaction(mark["id"]))
    topics = [f"{run.prefix}.{run.collection(table)}" for table in oracle.tables]
    of_tables = {topic: _upto(recorded(run.events, topic), transactions) for topic in topics}
    write_log(folder, {marks: short, **of_tables})
    manifest = json.loads((run.events / "manifest.json").read_text("utf-8"))
    bounds = json.loads((folder / "manifest.json").read_text("utf-8"))
    (folder / "manifest.json").write_text(json.dumps({**manifest, **bounds}), "utf-8")
    return replace(run, events=folder, oracle=oracle, tables=tables)


def _transaction(id_: str) -> str:
    """Return the part of ``xid:lsn`` that a transaction's records have in common."""
    return id_.partition(":")[0]


def _upto(lines: Iterable[Line], transactions: Collection[str]) -> Iterator[Line]:
    """Yield each partition up to its first row of a transaction that is not known."""
    ended: set[int] = set()
    for line in lines:
        block = json.loads(line["v"])["transaction"] if line["v"] else None
        if block and _transaction(block["id"]) not in transactions:
            ended.add(line["p"])
        if line["p"] not in ended:
            yield line
