"""Lately: what is asked for once in a while, in a thread. Who reads it waits for a moment, or takes what was known."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from dueline.ports import Clock

A = TypeVar("A")


class Lately(Generic[A]):
    """Asks at most once in so many `seconds`, and is read within a `moment`. Threads may share it.

    `known` is what it tells until the first answer is there. `ask` raises nothing.
    """

    def __init__(self, ask: Callable[..., A], known: A, *, seconds: float, moment: float, clock: Clock) -> None:
        self._ask, self._known = ask, known
        self._seconds, self._moment, self._clock = seconds, moment, clock
        self._lock = threading.Lock()
        self._again = clock.monotonic()
        self._is_answered = threading.Event()
        self._is_answered.set()

    def read(self, *given: object) -> A:
        """Return the last answer; what is asked for now is asked with what is given."""
        with self._lock:
            now = self._clock.monotonic()
            if now >= self._again and self._is_answered.is_set():
                self._again = now + self._seconds
                self._is_answered.clear()
                threading.Thread(target=self._carry_out, args=given, daemon=True).start()
        self._is_answered.wait(self._moment)
        return self._known

    def _carry_out(self, *given: object) -> None:
        try:
            self._known = self._ask(*given)
        finally:
            self._is_answered.set()
