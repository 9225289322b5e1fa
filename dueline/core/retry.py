"""Retry what may succeed later: exponential backoff with full jitter, and calls in parallel."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import TypeVar

from dueline.core.ports import Clock
from dueline.errors import RETRYABLE, DuelineError, Throttled


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How a client retries: at most `attempts` in all, and none started more than `seconds` after the first.

    The wait before a retry is random (full jitter). Its upper limit is `first_wait` seconds before the second attempt,
    doubles with each attempt, and never exceeds `longest_wait`. What the API sets by Retry-After comes on top.
    """

    attempts: int = 6
    seconds: float = 30.0
    first_wait: float = 0.1
    longest_wait: float = 5.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"attempts is {self.attempts}: it must be at least 1")
        for name in ("seconds", "first_wait", "longest_wait"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)}: it must be at least 0")

    def wait_at_most(self, tried: int) -> float:
        """Return the upper limit of the wait after that many attempts, in seconds.

        >>> [Patience().wait_at_most(tried) for tried in (1, 2, 3, 7, 10_000)]
        [0.1, 0.2, 0.4, 5.0, 5.0]
        """
        # 2^64 is past any sensible limit; beyond 2^1023 a float has no number for it.
        return min(self.longest_wait, self.first_wait * 2.0 ** min(tried - 1, 64))


# How long, in seconds, a wait may go on after nobody wants the result any more.
_NOTICED_SECONDS = 0.5


class RetryTimer:
    """The waits between the attempts of one call, the first of which begins now. `jitter` returns 0 up to 1.

    `since` (monotonic) is when the time that `patience` allows began, by default now. `ended` is set once nobody wants
    the result.
    """

    def __init__(
        self,
        patience: Patience,
        *,
        clock: Clock,
        jitter: Callable[[], float],
        since: float | None = None,
        ended: threading.Event | None = None,
    ) -> None:
        self._patience, self._clock, self._jitter, self._ended = patience, clock, jitter, ended
        self._tried = 1
        self._until = (clock.monotonic() if since is None else since) + patience.seconds

    def wait(self, errors: Iterable[DuelineError]) -> bool:
        """Wait before the next attempt, after these errors; return False at once if there is to be none.

        Return False within half a second, too, once nobody wants the result.
        """
        seconds = self.before_next(errors)
        if seconds is None:
            return False
        if self._ended is None:
            self._clock.sleep(seconds)
            return True
        while seconds > 0 and not self._ended.is_set():
            self._clock.sleep(min(seconds, _NOTICED_SECONDS))
            seconds -= _NOTICED_SECONDS
        return not self._ended.is_set()

    def before_next(self, errors: Iterable[DuelineError]) -> float | None:
        """Return how many seconds to wait before the next attempt, after these errors; None if there is to be none."""
        if self._tried >= self._patience.attempts:
            return None
        retry_after = max((error.retry_after or 0.0 for error in errors), default=0.0)
        wait = retry_after + self._jitter() * self._patience.wait_at_most(self._tried)
        if self._clock.monotonic() + wait > self._until:
            return None
        self._tried += 1
        return wait


LANES = 8
# A call of these is answered in a second or two where all is well.
CALL_ITEMS = 100
LEAST_ITEMS = 10


class _Lane(threading.local):
    """What a thread knows of the lane that it runs: `ended` is set once nobody wants its results any more."""

    ended: threading.Event | None = None


_THIS_LANE = _Lane()

A = TypeVar("A")
B = TypeVar("B")


class BatchSize:
    """How many items a call gets: a fixed number, halved whenever a call has too many. Lanes share it."""

    def __init__(self, items: int = CALL_ITEMS) -> None:
        self.items = items
        # How often a call finished something, or later calls were made smaller: patience begins again with each.
        self.renewals = 0
        # When (monotonic) the first call began that failed as a whole since then, if any.
        self.failing_since: float | None = None
        self._lock = threading.Lock()

    def note(self, items: int, *, failed: Sequence[DuelineError], started: float) -> None:
        """Note the errors of a call of so many items that began at `started`."""
        # A throttle counts calls: smaller ones would only meet it sooner.
        has_too_many = not all(isinstance(each, Throttled) for each in failed)
        with self._lock:
            before = self.items
            # Calls that failed together halve it once; one that was much smaller says nothing of its size.
            if has_too_many and 2 * items >= self.items:
                self.items = min(self.items, max(items // 2, LEAST_ITEMS))
            if len(failed) < items or self.items < before:
                self.renewals += 1
                self.failing_since = None
            elif self.failing_since is None:
                self.failing_since = started


class Calls:
    """Retries calls after Throttled and Unavailable, as `patience` says. What is called must be safe to repeat."""

    def __init__(self, *, patience: Patience, clock: Clock, jitter: Callable[[], float]) -> None:
        self._patience = patience
        self._clock = clock
        self._jitter = jitter

    def run(self, call: Callable[[], A]) -> A:
        """Return what a call returns, or raise what its last attempt raised."""
        backoff = self.backoff()
        while True:
            try:
                return call()
            except RETRYABLE as error:
                if not backoff.wait([error]):
                    raise

    def run_each(
        self,
        call: Callable[[Sequence[A]], Sequence[B | DuelineError]],
        items: Sequence[A | DuelineError],
        *,
        size: BatchSize,
    ) -> list[B | DuelineError]:
        """Return the result or the error of each item, in order. An item that is an error already stays that error.

        A call gets as many items as `size` says. Failed items are retried after those that were not tried yet. A call
        that fails as a whole fails each of its items. Patience begins again with progress, that of other lanes of the
        same `size` included, and when calls get smaller. Once it runs out, the items that are left are not tried.
        """
        results: dict[int, B | DuelineError] = {
            i: item for i, item in enumerate(items) if isinstance(item, DuelineError)
        }
        left: dict[int, A] = {i: item for i, item in enumerate(items) if not isinstance(item, DuelineError)}
        renewals, backoff = -1, self.backoff()
        while left:
            if _THIS_LANE.ended is not None and _THIS_LANE.ended.is_set():
                raise CancelledError
            some = {i: left.pop(i) for i in list(islice(left, size.items))}
            started = self._clock.monotonic()
            results |= zip(some, _one_result_each(call, list(some.values())), strict=True)
            failed = {i: error for i in some if isinstance(error := results[i], RETRYABLE)}
            size.note(len(some), failed=list(failed.values()), started=started)
            if failed and size.renewals != renewals:
                renewals, backoff = size.renewals, self.backoff(since=size.failing_since)
            if failed and backoff.wait(failed.values()):
                left |= {i: some[i] for i in failed}
            elif len(failed) == len(some):
                last = next(iter(failed.values()))
                untried = f"not tried, after others failed: {last}"
                return [results.get(i) or type(last)(untried) for i in range(len(items))]
        return [results[i] for i in range(len(items))]

    def backoff(self, *, since: float | None = None) -> RetryTimer:
        """Return the waits between the attempts of a call that begins now, or whose patience counts from `since`."""
        return RetryTimer(self._patience, clock=self._clock, jitter=self._jitter, since=since, ended=_THIS_LANE.ended)


def attempt(call: Callable[[A], B], argument: A) -> B | DuelineError:
    """Return what a call returns, or the error that it raises."""
    try:
        return call(argument)
    except DuelineError as error:
        return error


def attempt_unless_error(call: Callable[[A], B], argument: A | DuelineError) -> B | DuelineError:
    """Return what a call returns, or the error that it raises. An argument that is an error stays that error."""
    return argument if isinstance(argument, DuelineError) else attempt(call, argument)


def in_lanes(call: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
    """Yield the result of each call, in the items' order; several calls run at once, each in a lane (a thread).

    Closing the iterator early waits for calls in flight; no further calls start, and none is retried. A process that
    ends does not wait for the lanes of an iterator that it still holds.
    """
    ended = threading.Event()
    under_way: deque[Future[B]] = deque()
    waiting: SimpleQueue[tuple[A, Future[B]] | None] = SimpleQueue()
    lanes: list[threading.Thread] = []
    try:
        for item in items:
            if len(lanes) < LANES:
                run = partial(copy_context().run, _lane, call, waiting, ended)
                lane = threading.Thread(target=run, name="dueline-lane", daemon=True)
                lane.start()
                lanes.append(lane)
            under_way.append(Future())
            waiting.put((item, under_way[-1]))
            if len(under_way) > 2 * LANES:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        ended.set()
        for _ in lanes:
            waiting.put(None)
        for lane in lanes:
            lane.join()


def _lane(call: Callable[[A], B], waiting: "SimpleQueue[tuple[A, Future[B]] | None]", ended: threading.Event) -> None:
    _THIS_LANE.ended = ended
    while (one := waiting.get()) is not None:
        item, result = one
        if ended.is_set():
            continue
        try:
            result.set_result(call(item))
        except BaseException as error:
            result.set_exception(error)


def _one_result_each(
    call: Callable[[Sequence[A]], Sequence[B | DuelineError]], items: Sequence[A]
) -> Sequence[B | DuelineError]:
    try:
        return call(items)
    except DuelineError as error:
        return [error] if len(items) == 1 else [error.copy() for _ in items]
