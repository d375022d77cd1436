"""Run one function for several tables at once, and stop promptly when one fails or a person does.

``with ThreadPoolExecutor`` waits for every queued task before an exception goes on; after Ctrl-C
the workers would go on to submit Spark jobs. Here what has not begun is cancelled and nobody waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeVar

WORKERS = 4
"""Tables worked on at once; more than the cores of a small driver, because commits wait on I/O."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return ``function`` of each item, in order.

    Raises:
        Exception: The first failure, once the tasks that run by then are over: a table's commit
            must not land after the run has reported the failure of another.
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
    """Begin ``step`` in a thread; returns what waits for its result, as often as it is called."""
    pool = ThreadPoolExecutor(1)
    answer = pool.submit(step)
    pool.shutdown(wait=False)
    return answer.result


@contextmanager
def in_background(step: Callable[[], Result]) -> Iterator[Callable[[], Result]]:
    """Begin ``step`` in a thread; gives a function that waits for its result.

    When the block ends early nobody waits for the step: it must not write.
    """
    pool = ThreadPoolExecutor(1)
    try:
        yield pool.submit(step).result
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def perhaps_in_background(
    step: Callable[[], Result] | None,
) -> AbstractContextManager[Callable[[], Result] | None]:
    """``in_background`` where there is a step; else a block that gives null."""
    return nullcontext() if step is None else in_background(step)
