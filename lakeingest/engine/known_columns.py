"""Make columns once that every batch needs: each part of one is a call to the JVM, and each use.

Adapter. A column over names alone belongs to no frame and no session, so it can be used again. It
belongs to a JVM: when Python is connected to another one, it is made anew. So do the sequences in
which columns go to the JVM (``Selection``, ``Addition``). Half of what a small batch cost was such
calls (measured). Spark Connect's columns need no call, and are not kept.

Rejected: to keep frames. Their plans begin with a batch's own rows.

Two things to mind. Never use one alias at two levels of one frame, such as in an aggregation of an
aggregation: both would have one id in Spark's plan. And some settings of a session become part of a
column when it is made (``spark.sql.ansi.enabled``): a process should not change them between runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

_P = ParamSpec("_P")
_T = TypeVar("_T")

_MOST = 256
"""Number of results that a function keeps: of the tables that are written most, say. A result takes
some 100 KB. The oldest goes first."""

_NOTHING = object()

_MEMOS: list[dict[tuple[Hashable, ...], object]] = []
"""What each function keeps."""


class _Same:
    """A column as an argument: it is equal to itself alone."""

    def __init__(self, column: Column) -> None:
        self._column = column

    def __hash__(self) -> int:
        return id(self._column)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._column is other._column


def made_once(make: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a function that returns columns over names alone, in any form.

    Its arguments are hashable, or columns that are kept themselves. With an argument that is not
    hashable, such as a mapping of a batch's own schemas, the columns are made anew.
    """
    memo: dict[tuple[Hashable, ...], object] = {}
    _MEMOS.append(memo)

    @wraps(make)
    def made(*arguments: _P.args, **others: _P.kwargs) -> _T:
        gateway = SparkContext._gateway  # noqa: SLF001 - this is the adapter
        if gateway is None or is_remote():
            return make(*arguments, **others)
        # The key holds the gateway, so no later one has its identity.
        key = (gateway, _by_identity(arguments), _by_identity(tuple(sorted(others.items()))))
        try:
            columns = memo.get(key, _NOTHING)
        except TypeError:
            return make(*arguments, **others)
        if columns is _NOTHING:
            columns = make(*arguments, **others)
            memo[key] = columns
            if len(memo) > _MOST:
                with suppress(StopIteration, RuntimeError):  # Another thread removes it.
                    memo.pop(next(iter(memo)), None)
        return cast("_T", columns)

    return made


def forget() -> None:
    """Make all columns anew: a function that makes some of them is another one now."""
    for memo in _MEMOS:
        memo.clear()


def _by_identity(argument: Any) -> Any:
    if isinstance(argument, Column):
        return _Same(argument)
    return tuple(map(_by_identity, argument)) if isinstance(argument, tuple) else argument


@made_once
def column(name: str) -> Column:
    """Return the column of that name, always the same: what is made from it can be kept, too."""
    return F.col(name)


class Selection:
    """Columns to select from frames, to group them by, or to aggregate groups to."""

    def __init__(self, *columns: Column | str) -> None:
        """Bind the columns; a text is a name."""
        self.columns = columns
        self._sequence: Any = None
        self._further: Any = None

    def of(self, frame: DataFrame) -> DataFrame:
        """Select the columns."""
        if not _is_classic(frame):
            return frame.select(*self.columns)
        return _frame(_java(frame).select(self._of_jvm(frame)), frame)

    def of_groups(self, frame: DataFrame, groups: Selection) -> DataFrame:
        """Group a frame by columns, and aggregate the groups to these columns."""
        if not _is_classic(frame):
            columns = cast("tuple[Column, ...]", self.columns)
            return frame.groupBy(*groups.columns).agg(*columns)
        first, *further = self.columns
        if self._further is None:
            self._further = cast("Any", frame)._jcols(*further)  # noqa: SLF001
        grouped = _java(frame).groupBy(groups._of_jvm(frame))
        return _frame(grouped.agg(cast("Any", first)._jc, self._further), frame)  # noqa: SLF001

    def _of_jvm(self, frame: DataFrame) -> Any:
        if self._sequence is None:
            self._sequence = cast("Any", frame)._jcols(*self.columns)  # noqa: SLF001
        return self._sequence


class Addition:
    """Columns to add to frames, or to replace in them."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        """Bind the columns by their names."""
        self._columns = dict(columns)
        self._sequences: tuple[Any, Any] | None = None

    def of(self, frame: DataFrame) -> DataFrame:
        """Add the columns."""
        if not _is_classic(frame):
            return frame.withColumns(self._columns)
        if self._sequences is None:
            python: Any = frame
            names = python._jseq(list(self._columns))  # noqa: SLF001
            self._sequences = names, python._jcols(*self._columns.values())  # noqa: SLF001
        return _frame(_java(frame).withColumns(*self._sequences), frame)


class Removal:
    """Columns to leave out of frames; a name that a frame does not have is ignored."""

    def __init__(self, *names: str) -> None:
        """Bind the names."""
        self._names = names
        self._sequence: Any = None

    def of(self, frame: DataFrame) -> DataFrame:
        """Leave the columns out."""
        if not _is_classic(frame):
            return frame.drop(*self._names)
        if self._sequence is None:
            self._sequence = cast("Any", frame)._jseq(self._names)  # noqa: SLF001
        return _frame(_java(frame).drop(self._sequence), frame)


class Filter:
    """A condition on the rows of frames."""

    def __init__(self, condition: Column) -> None:
        """Bind the condition."""
        self._condition = condition

    def of(self, frame: DataFrame) -> DataFrame:
        """Keep the rows that meet the condition."""
        return frame.where(self._condition)


class Steps:
    """What is done to a frame, one step after another."""

    def __init__(self, *steps: Selection | Addition | Removal | Filter | Steps) -> None:
        """Bind the steps."""
        self._steps = steps

    def of(self, frame: DataFrame) -> DataFrame:
        """Take the steps."""
        for step in self._steps:
            frame = step.of(frame)
        return frame


def _is_classic(frame: DataFrame) -> bool:
    return hasattr(frame, "_jdf")


def _java(frame: DataFrame) -> Any:
    python: Any = frame
    return python._jdf  # noqa: SLF001 - this is the adapter


def _frame(java: Any, like: DataFrame) -> DataFrame:
    return DataFrame(java, like.sparkSession)
