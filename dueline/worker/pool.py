"""A bounded pool of threads: never more in hand than can run at once."""

import heapq
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


class Pool(Generic[T]):
    """Runs `run` for items in `size` threads, each item when its time has come.

    A place is taken before there is an item for it, and given back when that has run. The threads are daemons: a
    handler that hangs must not keep the process from ending.
    """

    def __init__(self, size: int, run: Callable[[T], None], *, name: str, now: Callable[[], float]) -> None:
        self._free = size
        self._size = size
        self._run_one = run
        self._now = now
        self._ready: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._later: list[tuple[float, int, T]] = []
        self._numbers = count()
        self._changed = threading.Condition()
        self._is_stopped = False
        threads = [threading.Thread(target=self._run, name=f"{name} {n}", daemon=True) for n in range(size)]
        self._threads = [*threads, threading.Thread(target=self._call_when_due, name=f"{name} due", daemon=True)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let the threads end: each when what it runs has run. Nothing is to be put any more."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._ready.put(None)

    def wait_for_room(self, *, wanted: int, patience: float, within: float) -> int:
        """Return how many places are free: at least one, within so many seconds, or 0.

        Waits up to `patience` seconds more for the wanted number, so that few requests fetch many.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._free > 0, timeout=within)
            if 0 < self._free < wanted:
                self._changed.wait_for(lambda: self._free >= wanted, timeout=patience)
            return self._free

    def take(self, places: int) -> None:
        """Take places that are free."""
        with self._changed:
            self._free -= places

    def give_back(self, places: int) -> None:
        """Give places back for which there is no item after all."""
        with self._changed:
            self._give_back(places)

    def put(self, item: T, *, at: float) -> None:
        """Run an item, for which a place was taken, when the monotonic clock is at `at`."""
        with self._changed:
            if at <= self._now():
                self._ready.put(item)
                return
            heapq.heappush(self._later, (at, next(self._numbers), item))
            self._changed.notify_all()

    def take_back(self) -> list[T]:
        """Return the items that have not begun, which then never do. Their places stay taken."""
        with self._changed:
            items = [item for _, _, item in self._later]
            self._later.clear()
            with suppress(queue.Empty):
                while (item := self._ready.get_nowait()) is not None:
                    items.append(item)
                self._ready.put(None)
        return items

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits or runs."""
        return self._free == self._size

    def _run(self) -> None:
        while (item := self._ready.get()) is not None:
            try:
                self._run_one(item)
            finally:
                with self._changed:
                    self._give_back(1)
        # The next one is to end, too.
        self._ready.put(None)

    def _give_back(self, places: int) -> None:
        self._free += places
        self._changed.notify_all()

    def _call_when_due(self) -> None:
        with self._changed:
            while not self._is_stopped:
                seconds = self._later[0][0] - self._now() if self._later else None
                if seconds is None or seconds > 0:
                    self._changed.wait(seconds)
                else:
                    self._ready.put(heapq.heappop(self._later)[2])
