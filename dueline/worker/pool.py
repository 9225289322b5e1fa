"""Threads of a queue worker: those that run handlers, each job when its time has come, and one for periodic tasks."""

import heapq
import threading
from collections.abc import Callable, Mapping
from itertools import count
from typing import Generic, TypeVar

from dueline.core.ports import Clock
from dueline.worker.events import Report, error_event

T = TypeVar("T")


class Pool(Generic[T]):
    """Runs items in `size` threads, each item when its time has come.

    The threads are daemons: a handler that hangs must not keep the process from ending.
    """

    def __init__(self, size: int, *, name: str, clock: Clock) -> None:
        self._size, self._name, self._clock = size, name, clock
        self._items: list[tuple[float, int, T]] = []
        self._numbers = count()
        self._changed = threading.Condition()
        # Of the threads that are free, one waits for the next item's time, and the others to be notified.
        self._waits_for_time: threading.Thread | None = None
        self._is_stopped = False

    def start(self, run: Callable[[T], None]) -> None:
        """Begin: `run` is called with each item. Raises RuntimeError when the system has no more threads."""
        for number in range(self._size):
            threading.Thread(target=self._run, args=(run,), name=f"{self._name} {number}", daemon=True).start()

    def stop(self) -> None:
        """Let each thread end when the item that it runs is done."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def put(self, item: T, *, at: float) -> None:
        """Run an item when the monotonic clock is at `at`."""
        with self._changed:
            entry = (at, next(self._numbers), item)
            heapq.heappush(self._items, entry)
            if self._items[0] is entry:
                self._waits_for_time = None
                self._changed.notify()

    def drain(self) -> list[tuple[float, T]]:
        """Remove the items that have not started, and return each with its time."""
        with self._changed:
            items, self._items = self._items, []
            return [(at, item) for at, _, item in items]

    def _run(self, run: Callable[[T], None]) -> None:
        while (item := self._next()) is not None:
            run(item)

    def _next(self) -> T | None:
        """Wait for an item whose time has come; None ends the thread."""
        with self._changed:
            while not self._is_stopped:
                seconds = self._items[0][0] - self._clock.monotonic() if self._items else None
                if seconds is not None and seconds <= 0:
                    item = heapq.heappop(self._items)[2]
                    if self._items and not self._waits_for_time:
                        self._changed.notify()
                    return item
                self._wait(seconds)
        return None

    def _wait(self, seconds: float | None) -> None:
        if seconds is None or self._waits_for_time:
            self._changed.wait()
            return
        this = self._waits_for_time = threading.current_thread()
        self._changed.wait(seconds)
        if self._waits_for_time is this:
            self._waits_for_time = None


class PeriodicTasks:
    """Calls each task every so many seconds, in one thread: one that takes long delays the others.

    What a task raises is reported, and it is called again: a thread that ended would do so without a word.
    """

    def __init__(
        self, tasks: Mapping[Callable[[], None], Callable[[], float]], *, queue: str, clock: Clock, report: Report
    ) -> None:
        self._tasks, self._queue, self._clock, self._report = tasks, queue, clock, report
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"periodic {queue}", daemon=True)

    def start(self) -> None:
        """Raises RuntimeError when the system has no more threads."""
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def _run(self) -> None:
        now = self._clock.monotonic
        due = {task: now() + every() for task, every in self._tasks.items()}
        while not self._stopped.wait(max(0.0, min(due.values()) - now())):
            for task in [each for each, at in due.items() if at <= now()]:
                try:
                    task()
                except Exception as fault:
                    self._report(error_event(fault, queue=self._queue))
                due[task] = now() + self._tasks[task]()
