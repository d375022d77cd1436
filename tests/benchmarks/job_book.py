"""Which Spark jobs a session ran, and who asked for them."""

from __future__ import annotations

import functools
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from delta.tables import DeltaMergeBuilder
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from lakeingest.engine.delta.transaction import DeltaTransaction

ACTIONS: tuple[tuple[type, str], ...] = (
    (DataFrame, "collect"),
    (DataFrame, "count"),
    (DataFrame, "first"),
    (DataFrame, "isEmpty"),
    (DataFrame, "localCheckpoint"),
    (DataFrameWriter, "save"),
    (DeltaMergeBuilder, "execute"),
    (DeltaTransaction, "write"),
    (DeltaTransaction, "commit"),
)
"""Calls that ask Spark for jobs."""

_DESCRIPTION = "spark.job.description"
_PACKAGE = "/lakeingest/"


class JobBook:
    """The jobs of a session, each with the lines of lakeingest that asked for it."""

    def __init__(self, spark: SparkSession) -> None:
        """Bind to a session."""
        self._context: Any = spark.sparkContext
        self._store = self._context._jsc.sc().statusStore()
        self._queries = spark._jsparkSession.sharedState().statusStore()
        self._seen: set[int] = set()

    def ended(self) -> Counter[str]:
        """Return who asked for the jobs since the last call."""
        # The store hears of a job a moment after it began.
        self._context._jsc.sc().listenerBus().waitUntilEmpty()
        jobs = self._store.jobsList(None)
        askers: Counter[str] = Counter()
        of_queries = self._of_queries()
        for index in range(jobs.size()):
            job = jobs.apply(index)
            if job.jobId() in self._seen:
                continue
            self._seen.add(job.jobId())
            named = job.description()
            own = named.get() if named.isDefined() else job.name()
            query = of_queries.get(job.jobId(), own)
            askers[own if own == query else f"{query} | {own}"] += 1
        return askers

    def _of_queries(self) -> dict[int, str]:
        """Return the description of each job's query: a broadcast is a job that has none."""
        queries = self._queries.executionsList()
        names = {}
        for index in range(queries.size()):
            query = queries.apply(index)
            jobs = query.jobs().keys().toSeq()
            names.update({jobs.apply(at): query.description() for at in range(jobs.size())})
        return names

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Let each job say who asked for it."""
        with ExitStack() as patches:
            for owner, name in ACTIONS:
                patches.enter_context(patch.object(owner, name, self._named(owner, name)))
            yield

    def _named(self, owner: type, name: str) -> Callable[..., Any]:
        action = getattr(owner, name)

        @functools.wraps(action)
        def ask(*arguments: Any, **options: Any) -> Any:
            if self._context.getLocalProperty(_DESCRIPTION):
                return action(*arguments, **options)
            self._context.setLocalProperty(_DESCRIPTION, f"{asker()} [{name}]")
            try:
                return action(*arguments, **options)
            finally:
                self._context.setLocalProperty(_DESCRIPTION, None)

        return ask


def asker() -> str:
    """Return the innermost two functions of lakeingest's stages on the stack."""
    lines = [
        f"{frame.filename.rpartition(_PACKAGE)[2]}:{frame.name}"
        for frame in traceback.extract_stack()
        if _PACKAGE in frame.filename and "/engine/" not in frame.filename
    ]
    return " > ".join(lines[-2:])
