"""Make a column once that every batch needs: each of its parts is a call to the JVM.

Adapter. A column over names alone belongs to no frame and no session, so it can be used again. It
belongs to a JVM: when Python is connected to another one, it is made anew. Spark Connect's columns
need no call and are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec, cast

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql.utils import is_remote

_P = ParamSpec("_P")


def made_once(make: Callable[_P, Column]) -> Callable[_P, Column]:
    """Decorate a function of hashable arguments that returns a column over names alone."""
    known: dict[tuple[Hashable, ...], Column] = {}

    @wraps(make)
    def column(*arguments: _P.args, **others: _P.kwargs) -> Column:
        gateway = SparkContext._gateway  # noqa: SLF001 - this is the adapter
        if gateway is None or is_remote():
            return make(*arguments, **others)
        # The key holds the gateway, so no later one has its identity.
        key = cast("tuple[Hashable, ...]", (gateway, arguments, tuple(sorted(others.items()))))
        if key not in known:
            known[key] = make(*arguments, **others)
        return known[key]

    return column
