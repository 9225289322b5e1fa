"""Run all queue workers of one process, from their start to their end."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from dueline.ports import Clock
from dueline.worker.queue_worker import QueueWorker

_LOOK_SECONDS = 0.1
# A coroutine that is cancelled may clean up for so long. One that blocks does not see it, and is left behind.
_CLEAN_UP_SECONDS = 1.0
# The handlers of signals that `signalled` has taken the place of.
_before: dict[int, Any] = {}


class Ending:
    """The request to a worker to end: asked once, it ends after its grace period; asked twice, at once.

    No lock is taken, so that a signal handler may ask.
    """

    def __init__(self) -> None:
        self._asked = 0

    def ask(self) -> None:
        self._asked += 1

    def ask_once(self) -> None:
        """Ask, unless that was done: whoever asks may have been told by several."""
        self._asked = max(1, self._asked)

    def hurry(self) -> None:
        self._asked = 2

    @property
    def is_asked(self) -> bool:
        return self._asked > 0

    @property
    def is_hurried(self) -> bool:
        return self._asked > 1


class Runner:
    """Starts the queue workers of a process, waits, and ends them together. `workers` are by queue.

    `on_begun` is called when all can begin, and before any job does.
    """

    def __init__(self, workers: Mapping[str, QueueWorker], *, clock: Clock) -> None:
        self._workers = workers
        self._clock = clock
        self.on_begun: Callable[[], None] = lambda: None
        self.has_begun = False

    def run(self, ending: Ending, *, grace: float) -> bool:
        """Run until asked to end, then give running jobs `grace` seconds; return whether all had ended.

        Raises Throttled or Unavailable when a worker cannot begin: those that had begun are ended in the same way.
        """
        opened: list[QueueWorker] = []
        try:
            for worker in self._workers.values():
                if ending.is_asked:
                    break
                opened.append(worker)
                worker.open()
            self._begin(() if ending.is_asked else opened)
            while not ending.is_asked:
                self._clock.sleep(_LOOK_SECONDS)
        finally:
            has_ended = self._end(opened, ending, grace=grace)
        return has_ended

    def _begin(self, workers: Iterable[QueueWorker]) -> None:
        self.on_begun()
        self.has_begun = True
        for worker in workers:
            worker.start()

    def _end(self, workers: Sequence[QueueWorker], ending: Ending, *, grace: float) -> bool:
        for worker in workers:
            worker.stop()
        until = self._clock.monotonic() + grace
        while any(worker.is_busy for worker in workers) and not ending.is_hurried and self._clock.monotonic() < until:
            self._clock.sleep(_LOOK_SECONDS)
        return _finished(workers)

    def ages(self) -> dict[str, float]:
        """Return how many seconds ago each queue's worker last looked for messages."""
        now = self._clock.monotonic()
        return {queue: now - worker.heartbeat for queue, worker in self._workers.items()}


def _finished(workers: Sequence[QueueWorker]) -> bool:
    """Finish all workers at once, as each may wait for AWS; return whether all jobs had ended."""
    with ThreadPoolExecutor(max_workers=max(1, len(workers)), thread_name_prefix="finish") as threads:
        ended = list(threads.map(QueueWorker.finish, workers))
    return all(ended)


@contextmanager
def signalled(ask: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and SIGINT ask, if this is the main thread: no other gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    for each in (signal.SIGTERM, signal.SIGINT):
        _before[each] = signal.getsignal(each)
        signal.signal(each, lambda *_: ask())
    try:
        yield
    finally:
        _give_back_signals()


def _give_back_signals() -> None:
    while _before:
        signal.signal(*_before.popitem())


# Whom a job forks, as multiprocessing does, is to end by a signal. Nobody there hears what `signalled` asks.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_back_signals)


@contextmanager
def event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread while the context lasts; then cancel its coroutines.

    A coroutine that does not end within a second then is left behind, in a daemon thread.
    """
    loop, ended = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=_run_loop, args=(loop, ended), name="coroutines", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        # It is closed where a coroutine did that.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)
        thread.join(_CLEAN_UP_SECONDS)


def _run_loop(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        while not ended.is_set() and not loop.is_closed():
            # A coroutine that exits, or stops the loop, must not end the other coroutines.
            with suppress(SystemExit, KeyboardInterrupt, RuntimeError):
                runner.run(ended.wait())
