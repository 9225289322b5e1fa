"""Calls that are tried again where that may help, and several at once."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from dueline.errors import RETRYABLE, DuelineError
from dueline.ports import Clock
from dueline.retry import Backoff, Patience

LANES = 8

A = TypeVar("A")
B = TypeVar("B")


class Calls:
    """Calls again and again, while `patience` lasts, after Throttled and Unavailable.

    So whatever is called must be safe to call twice.
    """

    def __init__(self, *, patience: Patience, clock: Clock, jitter: Callable[[], float]) -> None:
        self._patience = patience
        self._clock = clock
        self._jitter = jitter

    def ask(self, call: Callable[[], A]) -> A:
        """Return what a call returns. Raises what it raised last."""
        backoff = self._backoff()
        while True:
            try:
                return call()
            except RETRYABLE as error:
                if not backoff.wait([error]):
                    raise

    def ask_for_each(
        self,
        call: Callable[[Sequence[A]], Sequence[B | DuelineError]],
        items: Sequence[A | DuelineError],
        *,
        again: Callable[[A, DuelineError], A] = lambda item, _: item,
    ) -> list[B | DuelineError]:
        """Return the result or the error of each item, and each error that is there already, in order.

        What fails is tried again alone, as `again` returns it. A call that fails as a whole is each item's error.
        """
        results: dict[int, B | DuelineError] = {
            i: item for i, item in enumerate(items) if isinstance(item, DuelineError)
        }
        left: dict[int, A] = {i: item for i, item in enumerate(items) if not isinstance(item, DuelineError)}
        backoff = self._backoff()
        while left:
            results |= zip(left, _of_each(call, list(left.values())), strict=True)
            failed = {i: error for i in left if isinstance(error := results[i], RETRYABLE)}
            if failed and not backoff.wait(failed.values()):
                break
            left = {i: again(left[i], error) for i, error in failed.items()}
        return [results[i] for i in range(len(items))]

    def _backoff(self) -> Backoff:
        return Backoff(self._patience, clock=self._clock, jitter=self._jitter)


def attempt(call: Callable[[A], B], argument: A) -> B | DuelineError:
    """Return what a call returns, or the error that it raises."""
    try:
        return call(argument)
    except DuelineError as error:
        return error


def in_lanes(call: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """Yield the result of each call in the items' order, several calls at once; items are taken as lanes come free."""
    under_way: deque[Future[B]] = deque()
    with ThreadPoolExecutor(LANES) as pool:
        for item in items:
            under_way.append(pool.submit(call, item))
            if len(under_way) > 2 * LANES:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()


def _of_each(
    call: Callable[[Sequence[A]], Sequence[B | DuelineError]], items: Sequence[A]
) -> Sequence[B | DuelineError]:
    try:
        return call(items)
    except DuelineError as error:
        return [error] if len(items) == 1 else [error.copy() for _ in items]
