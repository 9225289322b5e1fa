"""Run all queue workers of one process, from start to end, and report to its supervisor if there is one."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from dueline.core.ports import Clock
from dueline.worker.queue_worker import QueueWorker
from dueline.worker.receiving import LONG_POLL_SECONDS

_LOOK_SECONDS = 0.1
_FINAL_ACKS_SECONDS = 5.0
# A coroutine that is cancelled may clean up for so long. One that blocks does not see it, and is left behind.
_CLEAN_UP_SECONDS = 1.0
# The handlers of signals that `signal_handlers` replaced.
_before: dict[int, Any] = {}


class Shutdown:
    """The request to a worker to end: after its grace period or, if it is requested twice, at once.

    It has no lock, so that a signal handler may call it.
    """

    def __init__(self) -> None:
        self._requests = 0

    def request(self) -> None:
        self._requests += 1

    def request_once(self) -> None:
        """Request shutdown once; repeated signals are ignored."""
        self._requests = max(1, self._requests)

    def force(self) -> None:
        self._requests = 2

    @property
    def is_requested(self) -> bool:
        return self._requests > 0

    @property
    def is_forced(self) -> bool:
        return self._requests > 1


def run(
    workers: Iterable[QueueWorker], shutdown: Shutdown, *, grace: float, clock: Clock, on_ready: Callable[[], None]
) -> bool:
    """Run all until shutdown is requested, then give running jobs `grace` seconds; return whether all had ended.

    `on_ready` is called when all can begin, and before any job does. Raises Throttled or Unavailable when a worker
    cannot begin: those that are open are ended in the same way.
    """
    opened = list[QueueWorker]()
    try:
        for worker in workers:
            if shutdown.is_requested:
                break
            opened.append(worker)
            worker.open()
        on_ready()
        for worker in () if shutdown.is_requested else opened:
            worker.start()
        while not shutdown.is_requested:
            clock.sleep(_LOOK_SECONDS)
    finally:
        has_ended = _end(opened, shutdown, grace=grace, clock=clock)
    return has_ended


def _end(workers: Sequence[QueueWorker], shutdown: Shutdown, *, grace: float, clock: Clock) -> bool:
    """End all workers together, as each may wait for AWS; return whether all jobs had ended.

    This takes no thread of its own: where none is to be had, the last acknowledgements are sent all the same.
    """
    for worker in workers:
        worker.stop()
    until = clock.monotonic() + grace
    while any(worker.is_busy for worker in workers) and not shutdown.is_forced and clock.monotonic() < until:
        clock.sleep(_LOOK_SECONDS)
    until = clock.monotonic() + LONG_POLL_SECONDS + 1
    ended = [worker.put_back(within=until - clock.monotonic()) for worker in workers]
    until = clock.monotonic() + _FINAL_ACKS_SECONDS
    for worker in workers:
        worker.finish(within=until - clock.monotonic())
    return all(ended)


@contextmanager
def signal_handlers(request: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and SIGINT call `request`, if this is the main thread: no other gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    for each in (signal.SIGTERM, signal.SIGINT):
        _before[each] = signal.getsignal(each)
        signal.signal(each, lambda *_: request())
    try:
        yield
    finally:
        _give_back_signals()


def _give_back_signals() -> None:
    while _before:
        signal.signal(*_before.popitem())


# A process that a job forks, as multiprocessing does, is to end by a signal: no runner is there to see a request.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_give_back_signals)


@contextmanager
def event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Run an event loop in a thread while the context lasts; then cancel its coroutines.

    A coroutine that does not end within a second then is left behind, in a daemon thread.
    """
    loop, ended = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=_run_loop, args=(loop, ended), name="coroutines", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        loop.close()
        raise
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
            # A coroutine that exits, stops the loop or cancels all tasks must not end the other coroutines.
            with suppress(SystemExit, KeyboardInterrupt, RuntimeError, asyncio.CancelledError):
                runner.run(ended.wait())


SUPERVISED = "DUELINE_SUPERVISED"
NO_GRACE = b"no grace"


class SupervisorLink:
    """A process's link to its supervisor: it reports that it is ready, and learns when to end. `number` is from 1."""

    def __init__(self, connection: "Connection[bytes, bytes]", *, number: int) -> None:
        self._connection = connection
        self.number = number

    @classmethod
    def from_env(cls, environ: MutableMapping[str, str]) -> "SupervisorLink | None":
        """Take the link out of the environment: a program that a job starts is not supervised."""
        variable = environ.pop(SUPERVISED, None)
        if variable is None:
            return None
        number, handle = map(int, variable.split(":"))
        os.set_inheritable(handle, False)
        return cls(Connection(handle), number=number)

    def report_ready(self) -> None:
        """Report that jobs can begin, before any does: one that kills the process is no failure to begin."""
        # Without a supervisor, `_receive` ends this process.
        with suppress(OSError):
            self._connection.send_bytes(b"ready")

    def obey(self, shutdown: Shutdown) -> None:
        """Request shutdown when the supervisor ends the grace, or is gone."""
        threading.Thread(target=self._receive, args=(shutdown,), name="supervisor", daemon=True).start()

    def _receive(self, shutdown: Shutdown) -> None:
        with suppress(EOFError, OSError):
            if self._connection.recv_bytes() == NO_GRACE:
                shutdown.force()
        shutdown.request_once()
