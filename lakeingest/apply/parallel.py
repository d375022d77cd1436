"""Run one function for several tables in parallel; stop promptly on a failure or on Ctrl-C.

``with ThreadPoolExecutor`` waits for every queued task before an exception leaves it. After Ctrl-C
its workers would go on submitting Spark jobs. Here every task that has not begun is cancelled, and
nobody waits.

What a function reads here is no ``cached_property`` that runs a job: Python 3.10 and 3.11 hold one
lock for all objects of its class meanwhile, so that the tables would wait for one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

WORKERS = 4
"""Tables in parallel; more than the cores of a small driver, because commits wait on I/O."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return ``function`` of each item, in order.

    Raises:
        Exception: The first failure. It is raised when the running tasks are over: a table's commit
            must not land after the run has reported the failure of another table.
    """
    pool = ThreadPoolExecutor(WORKERS)
    try:
        futures = [pool.submit(function, item) for item in items]
        wait(futures, return_when=FIRST_EXCEPTION)
        failed = next((f for f in futures if f.done() and f.exception() is not None), None)
        if failed is not None:
            pool.shutdown(wait=True, cancel_futures=True)
            failed.result()
        return [future.result() for future in futures]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def start_in_background(step: Callable[[], Result]) -> Callable[[], Result]:
    """Start ``step`` in a thread; return a function that waits for its result.

    The function may be called several times.
    """
    pool = ThreadPoolExecutor(1)
    future = pool.submit(step)
    pool.shutdown(wait=False)
    return future.result


@contextmanager
def in_background(step: Callable[[], Result]) -> Iterator[Callable[[], Result]]:
    """Start ``step`` in a thread; yield a function that waits for its result.

    When the block ends early, nobody waits for the step: it must not write.
    """
    pool = ThreadPoolExecutor(1)
    try:
        yield pool.submit(step).result
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def perhaps_in_background(
    step: Callable[[], Result] | None,
) -> AbstractContextManager[Callable[[], Result] | None]:
    """Return ``in_background`` if there is a step; else a block that yields None."""
    return nullcontext() if step is None else in_background(step)
