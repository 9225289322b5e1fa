"""What processes must not share, though one was forked from the other."""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

A = TypeVar("A")


class PerProcess(Generic[A]):
    """What `make` returns, made in each process when it is first asked for there. Threads may share it.

    A fork copies connections, on which both processes would then read each other's answers, thread pools without their
    threads, and locks as they happened to be. What came from the parent is kept and never touched: to take it apart may
    take one of these locks. Two threads that ask first may both make one, of which one is kept.
    """

    def __init__(self, make: Callable[[], A]) -> None:
        self._make = make
        self._made: dict[int, A] = {}

    def __call__(self) -> A:
        process = os.getpid()
        if process not in self._made:
            self._made.setdefault(process, self._make())
        return self._made[process]
