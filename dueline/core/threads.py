"""Threads that share calls, values that are refreshed, and objects that are made again after a fork."""

import os
import random
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Generic, TypeVar

from dueline.core.ports import Clock
from dueline.errors import RETRYABLE

A = TypeVar("A")
B = TypeVar("B")


class Threads:
    """Runs calls in up to `most` threads, which are started as they are needed. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._pool = ThreadPoolExecutor(most)

    def spread(self, call: Callable[[A], B], items: Iterable[A], /) -> Iterator[B]:
        """Run a call for each item, several at once; return the results in order. A single call needs no thread.

        After a call that raises, those that have not started never start.
        """
        every = list(items)
        return self._pool.map(call, every) if len(every) > 1 else iter([call(item) for item in every])


class PerProcess(Generic[A]):
    """What `make` returns, made once in each process, at its first use there. Threads may share it.

    A fork copies connections, on which both processes would then read each other's answers, thread pools without their
    threads, and locks in whatever state they were. So a child keeps its parent's object and never touches it: even to
    free it may take one of these locks. If two threads make one at the same time, one of the two is kept.
    """

    def __init__(self, make: Callable[[], A]) -> None:
        self._make = make
        self._made: list[A] = []
        self._of_parents: list[A] = []
        _ALL.add(self)

    def __call__(self) -> A:
        made = self._made
        if not made:
            made.append(self._make())
        return made[0]

    @property
    def made(self) -> Sequence[A]:
        """What was made in this process, if it was."""
        return tuple(self._made)

    def forget(self) -> None:
        """Have it made again at its next use, in a process that was forked."""
        self._of_parents += self._made
        self._made = []


_ALL: "weakref.WeakSet[PerProcess[Any]]" = weakref.WeakSet()


def _forget_all() -> None:
    for each in list(_ALL):
        each.forget()


os.register_at_fork(after_in_child=_forget_all)


# The share of the time by which a value may be read earlier: processes that started together are not to read together.
_SPREAD = 0.5
# How long nobody reads again after a first read failed: what failed is over sooner than any value gets old.
FAILED_FOR_SECONDS = 0.5


class RefreshingValue(Generic[A]):
    """What `read` returned last, read again once it is `seconds` old, or up to half of that earlier by `jitter`.

    Where reading again fails with one of `faults`, the last value is used on. Threads may share it: one reads again,
    and the others use the last value meanwhile. `last` is that value, None before the first.
    """

    def __init__(
        self,
        read: Callable[[], A],
        *,
        seconds: float,
        clock: Clock,
        jitter: Callable[[], float] = random.random,
        faults: tuple[type[Exception], ...] = RETRYABLE,
    ) -> None:
        self.last: A | None = None
        self._read, self._seconds, self._faults = read, seconds, faults
        self._clock, self._jitter = clock, jitter
        self._until = 0.0

    def __call__(self) -> A:
        """Return the value, read again if it is old. Raises what `read` raises where there is none yet."""
        last = self.last
        if last is None:
            return self.refresh()
        if self._clock.monotonic() < self._until:
            return last
        self._until = self._later()
        with suppress(*self._faults):
            return self.refresh()
        return last

    def refresh(self) -> A:
        """Return the value as it is read now."""
        self.last = value = self._read()
        self._until = self._later()
        return value

    def _later(self) -> float:
        return self._clock.monotonic() + self._seconds * (1 - _SPREAD * self._jitter())
