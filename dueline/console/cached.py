"""Cached: an answer that is asked for once in a while, however many ask."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from dueline.ports import Clock

A = TypeVar("A")


class Cached(Generic[A]):
    """Keeps what `ask` returns for so many seconds. Whoever asks meanwhile waits for the same answer."""

    def __init__(self, ask: Callable[[], A], *, seconds: float, clock: Clock) -> None:
        self._ask, self._seconds, self._clock = ask, seconds, clock
        self._lock = threading.Lock()
        self._kept: tuple[float, A] | None = None

    def read(self) -> A:
        with self._lock:
            now = self._clock.monotonic()
            if self._kept is None or now >= self._kept[0]:
                self._kept = (now + self._seconds, self._ask())
            return self._kept[1]
