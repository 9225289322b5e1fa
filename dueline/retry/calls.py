"""Calls: retry what may succeed later, and run several calls at once."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from dueline.errors import RETRYABLE, DuelineError, Throttled
from dueline.ports import Clock
from dueline.retry.pace import Pace
from dueline.retry.patience import Patience, Waits
from dueline.retry.threads import begun

LANES = 8


class _Lane(threading.local):
    """What a thread knows of the lane that it runs: `ended` is set once nobody wants its results any more."""

    ended: threading.Event | None = None


_THIS_LANE = _Lane()

A = TypeVar("A")
B = TypeVar("B")


class Calls:
    """Retries calls after Throttled and Unavailable, as `patience` says. What is called must be safe to repeat."""

    def __init__(self, *, patience: Patience, clock: Clock, jitter: Callable[[], float]) -> None:
        self._patience = patience
        self._clock = clock
        self._jitter = jitter

    def ask(self, call: Callable[[], A]) -> A:
        """Return what a call returns, or raise what its last attempt raised."""
        backoff = self.backoff()
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
        pace: Pace,
        again: Callable[[A, DuelineError], A] = lambda item, _: item,
    ) -> list[B | DuelineError]:
        """Return the result or the error of each item, in order. An item that is an error already stays that error.

        A call gets as many items as `pace` says. Failed items are retried, as `again` returns them, after those that
        were not tried yet. A call that fails as a whole fails each of its items. Patience begins anew with progress,
        that of other lanes at the same pace included, and when calls get smaller. Once it runs out, the items that are
        left are not tried.
        """
        results: dict[int, B | DuelineError] = {
            i: item for i, item in enumerate(items) if isinstance(item, DuelineError)
        }
        left: dict[int, A] = {i: item for i, item in enumerate(items) if not isinstance(item, DuelineError)}
        wait = self._renewed_by(pace)
        while left:
            _leave_if_ended()
            some = {i: left.pop(i) for i in list(islice(left, pace.items))}
            results |= zip(some, self._at_a_pace(call, list(some.values()), pace), strict=True)
            failed = {i: error for i in some if isinstance(error := results[i], RETRYABLE)}
            if failed and wait(failed.values()):
                left |= {i: again(some[i], error) for i, error in failed.items()}
            elif len(failed) == len(some):
                last = next(iter(failed.values()))
                return [results.get(i) or _untried(last) for i in range(len(items))]
        return [results[i] for i in range(len(items))]

    def _at_a_pace(
        self, call: Callable[[Sequence[A]], Sequence[B | DuelineError]], items: Sequence[A], pace: Pace
    ) -> Sequence[B | DuelineError]:
        begun = self._clock.monotonic()
        results = _one_result_each(call, items)
        failed = [each for each in results if isinstance(each, RETRYABLE)]
        # The API's throttle counts calls: smaller ones would only meet it sooner.
        too_much = bool(failed) and not all(isinstance(each, Throttled) for each in failed)
        now = self._clock.monotonic()
        pace.note(len(items), finished=len(items) - len(failed), too_much=too_much, begun=begun, now=now)
        return results

    def _renewed_by(self, pace: Pace) -> Callable[[Iterable[DuelineError]], bool]:
        """Return a function that waits as Waits does, and begins anew whenever `pace` renews patience."""
        renewals, backoff = -1, self.backoff()

        def wait(errors: Iterable[DuelineError]) -> bool:
            nonlocal renewals, backoff
            if pace.renewals != renewals:
                renewals, backoff = pace.renewals, self.backoff(since=pace.failing_since)
            return backoff.wait(errors)

        return wait

    def backoff(self, *, since: float | None = None) -> Waits:
        """Return the waits between the attempts of a call that begins now, or whose patience counts from `since`."""
        return Waits(self._patience, clock=self._clock, jitter=self._jitter, since=since, ended=_THIS_LANE.ended)


def attempt(call: Callable[[A], B], argument: A) -> B | DuelineError:
    """Return what a call returns, or the error that it raises."""
    try:
        return call(argument)
    except DuelineError as error:
        return error


def in_lanes(call: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """Yield the result of each call, in the items' order; several calls run at once, each in a lane (a thread).

    Once the main thread has ended they run one by one, in this thread. Closing the iterator early waits for calls in
    flight; no further calls are begun, and none is retried. Raises RuntimeError in a process that was forked since the
    first result: it has none of the lanes.
    """
    process = os.getpid()
    under_way: deque[Future[B]] = deque()
    ended = threading.Event()
    pool = ThreadPoolExecutor(LANES, initializer=setattr, initargs=(_THIS_LANE, "ended", ended))
    try:
        for item in items:
            under_way.append(begun(pool, call, item))
            if len(under_way) > 2 * LANES:
                yield under_way.popleft().result()
                _check_is_in(process)
        while under_way:
            yield under_way.popleft().result()
            _check_is_in(process)
    finally:
        ended.set()
        if os.getpid() == process:
            pool.shutdown(cancel_futures=True)


def _check_is_in(process: int) -> None:
    if os.getpid() != process:
        raise RuntimeError("these results are of the process that began to read them: a forked one cannot read on")


def _leave_if_ended() -> None:
    if _THIS_LANE.ended is not None and _THIS_LANE.ended.is_set():
        raise CancelledError


def _one_result_each(
    call: Callable[[Sequence[A]], Sequence[B | DuelineError]], items: Sequence[A]
) -> Sequence[B | DuelineError]:
    try:
        return call(items)
    except DuelineError as error:
        return [error] if len(items) == 1 else [error.copy() for _ in items]


def _untried(error: DuelineError) -> DuelineError:
    return type(error)(f"not tried, after others failed: {error}")
