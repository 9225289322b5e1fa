"""Per process: objects that a forked process must make anew, such as boto3 clients."""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

A = TypeVar("A")


class PerProcess(Generic[A]):
    """What `make` returns, made once in each process, at its first use there. Threads may share it.

    A fork copies connections, on which both processes would then read each other's answers, thread pools without their
    threads, and locks in whatever state they were. So the parent's object is kept and never touched: even to free it
    may take one of these locks. If two threads make one at the same time, one of the two is kept.
    """

    def __init__(self, make: Callable[[], A]) -> None:
        self._make = make
        self._made: dict[int, A] = {}

    def __call__(self) -> A:
        process = os.getpid()
        if process not in self._made:
            self._made.setdefault(process, self._make())
        return self._made[process]
