"""A bounded pool of threads: it never holds more items than can run at once."""

import heapq
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


class Pool(Generic[T]):
    """Runs items in `size` threads, each item when its time has come.

    A thread is reserved before there is an item for it, and released when the item has run. The threads are daemons: a
    handler that hangs must not keep the process from ending.
    """

    def __init__(self, size: int, *, name: str, now: Callable[[], float]) -> None:
        self.size = self._free = size
        self._name, self._now = name, now
        self._ready: queue.SimpleQueue[T | None] = queue.SimpleQueue()
        self._later: list[tuple[float, int, T]] = []
        self._numbers = count()
        self._changed = threading.Condition()
        self._is_stopped = False

    def start(self, run: Callable[[T], None]) -> None:
        """Begin: `run` is called with each item."""
        for number in range(self.size):
            threading.Thread(target=self._run, args=(run,), name=f"{self._name} {number}", daemon=True).start()
        threading.Thread(target=self._start_when_due, name=f"{self._name} due", daemon=True).start()

    def stop(self) -> None:
        """Let each thread end when the item that it runs is done. Nothing may be put after this."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._ready.put(None)

    def wait_for_threads(self, *, wanted: int, patience: float, within: float) -> int:
        """Wait up to `within` seconds for a free thread; return how many are free, or 0.

        Waits up to `patience` seconds more for the `wanted` number, so that few requests fetch many messages.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._free > 0, timeout=within)
            if 0 < self._free < wanted:
                self._changed.wait_for(lambda: self._free >= wanted, timeout=patience)
            return self._free

    def reserve(self, threads: int) -> None:
        """Reserve threads, for items that are put later."""
        with self._changed:
            self._free -= threads

    def release(self, threads: int) -> None:
        """Release threads for which there is no item after all."""
        with self._changed:
            self._free += threads
            self._changed.notify_all()

    def put(self, item: T, *, at: float) -> None:
        """Run an item, for which a thread is reserved, when the monotonic clock is at `at`."""
        with self._changed:
            if at <= self._now():
                self._ready.put(item)
                return
            heapq.heappush(self._later, (at, next(self._numbers), item))
            self._changed.notify_all()

    def drain(self) -> list[T]:
        """Take out the items that have not begun, and return them. Their threads stay reserved."""
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
        return self._free == self.size

    def _run(self, run: Callable[[T], None]) -> None:
        while (item := self._ready.get()) is not None:
            try:
                run(item)
            finally:
                self.release(1)
        # The next thread is to end, too.
        self._ready.put(None)

    def _start_when_due(self) -> None:
        with self._changed:
            while not self._is_stopped:
                seconds = self._later[0][0] - self._now() if self._later else None
                if seconds is None or seconds > 0:
                    self._changed.wait(seconds)
                else:
                    self._ready.put(heapq.heappop(self._later)[2])
