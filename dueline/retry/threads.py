"""Threads: calls that run in those of a pool, and in their caller's own where there are no more to be had."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


class Threads:
    """Runs calls in up to `most` threads, which are made as they are needed. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most)

    def spread(self, call: Callable[[A], B], items: Iterable[A], /) -> Iterator[B]:
        """Run a call for each item, several at once; return the results in order. What is alone takes no thread."""
        every = list(items)
        if len(every) <= 1:
            return iter([call(item) for item in every])
        return _results([begun(self._pool, call, item) for item in every])


def begun(pool: ThreadPoolExecutor, call: Callable[[A], B], item: A) -> "Future[B]":
    """Begin a call in a thread of a pool; where that takes none, make it here and now, and return it done.

    Python lets no thread begin once the main thread has ended, nor an operating system beyond its limit.
    """
    result: Future[B] = Future()
    # What a pool could begin no thread for may be in its queue all the same.
    unclaimed = threading.Lock()
    try:
        pool.submit(_carry_out, call, item, result, unclaimed)
    except RuntimeError:
        _carry_out(call, item, result, unclaimed)
    return result


def _results(futures: "Sequence[Future[B]]") -> Iterator[B]:
    """Yield the results in order. What has not begun when one raises never begins."""
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def _carry_out(call: Callable[[A], B], item: A, result: "Future[B]", unclaimed: threading.Lock) -> None:
    if not unclaimed.acquire(blocking=False) or not result.set_running_or_notify_cancel():
        return
    try:
        result.set_result(call(item))
    except BaseException as error:
        result.set_exception(error)
