"""Request coalescing: calls that threads and tasks make at about the same time travel as one request."""

import asyncio
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from dueline.client.api import MOST_AT_ONCE, MOST_BYTES, value_of
from dueline.core.message import batches
from dueline.core.threads import PerProcess, in_pool, unavailable_without_threads
from dueline.errors import DuelineError, InvalidJob, Unavailable

# How many requests of tasks are in flight at once; threads send their own.
_MOST_SENDERS = 32
# A longer time is mostly a number of milliseconds.
LONGEST_SECONDS = 1.0

A = TypeVar("A")
B = TypeVar("B")


def linger_seconds(linger: object) -> float:
    """Return the seconds to linger, 0 for not at all. Raises ValueError."""
    seconds = linger.total_seconds() if isinstance(linger, timedelta) else 0.0 if linger is None else linger
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_SECONDS:
        allowed = f"from 0 to {LONGEST_SECONDS:g} seconds, or a timedelta, or None"
        raise ValueError(f"linger is {linger!r}: it must be {allowed}")
    return seconds


@dataclass(eq=False, kw_only=True, slots=True)
class PendingCall(Generic[A, B]):
    """One caller's item, of `size` bytes, which may share a request with others of the same `key`.

    `turn` is done once the item is to leave, or has left, and `result` once there is a result: None, where its caller
    is to send it alone. `batch` is what this caller is to send; without `can_send_others` only its own item, as in the
    main thread, which signals may interrupt at any moment.
    """

    item: A
    size: int
    key: Hashable
    can_send_others: bool
    turn: "Future[None]" = field(default_factory=Future)
    result: "Future[B | DuelineError | None]" = field(default_factory=Future)
    batch: "list[PendingCall[A, B]]" = field(default_factory=list)

    def __post_init__(self) -> None:
        # A running future cannot be cancelled by an event loop that stops waiting for it.
        self.turn.set_running_or_notify_cancel()
        self.result.set_running_or_notify_cancel()

    def wake(self) -> None:
        if not self.turn.done():
            self.turn.set_result(None)


class _PendingBatch(Generic[A, B]):
    """The calls of one key that wait, and how many requests with others are in flight."""

    def __init__(self) -> None:
        self.waiting: list[PendingCall[A, B]] = []
        self.bytes = 0
        self.in_flight = 0

    @property
    def is_full(self) -> bool:
        return len(self.waiting) >= MOST_AT_ONCE or self.bytes >= MOST_BYTES

    def remove(self, calls: list[PendingCall[A, B]]) -> None:
        removed = set(map(id, calls))
        self.waiting = [each for each in self.waiting if id(each) not in removed]
        self.bytes = sum(each.size for each in self.waiting)

    def batch_of(self, call: PendingCall[A, B]) -> list[PendingCall[A, B]]:
        """Return a call and as many others as one request holds, in the order in which they came."""
        others = (each for each in self.waiting if each is not call)
        return next(batches([call, *others], size=lambda each: each.size, most=MOST_AT_ONCE, most_bytes=MOST_BYTES))


class PendingBatches(Generic[A, B]):
    """The batches of one process by their keys, each while there is anything in it. Threads share them.

    `abandoned` gets the calls that the garbage collector closes, which may run in a thread that holds the lock.
    `senders` has the threads that send the batches of tasks; none is started before the first of these.
    """

    def __init__(self) -> None:
        self.senders = ThreadPoolExecutor(_MOST_SENDERS, thread_name_prefix="dueline-sender")
        self.abandoned: SimpleQueue[PendingCall[A, B]] = SimpleQueue()
        self._lock = threading.Lock()
        self._by_key: dict[Hashable, _PendingBatch[A, B]] = {}

    def add(self, call: PendingCall[A, B]) -> None:
        """Let a call wait. If nothing waits or is in flight, or it makes the batch full, its turn is now."""
        with self._lock:
            self._end_abandoned()
            batch = self._by_key.setdefault(call.key, _PendingBatch())
            is_alone = not batch.waiting and not batch.in_flight
            was_full = batch.is_full
            batch.waiting.append(call)
            batch.bytes += call.size
            if is_alone or batch.is_full > was_full:
                call.wake()

    def assign(self, call: PendingCall[A, B], *, alone: bool = False) -> bool:
        """Give a waiting call its `batch` to send; return False where another caller is to send it.

        `alone`, the batch is this call, and no other caller is to send it.
        """
        with self._lock:
            self._end_abandoned()
            pending = self._by_key.get(call.key)
            if pending is None or call not in pending.waiting:
                return False
            batch = [call] if alone else pending.batch_of(call)
            if len(batch) > 1 and not call.can_send_others:
                batch[1].wake()
                return False
            pending.remove(batch)
            pending.in_flight += 1
            call.batch = batch
            for each in batch + (pending.waiting[:1] if pending.is_full else []):
                each.wake()
            return True

    def is_waiting(self, call: PendingCall[A, B]) -> bool:
        with self._lock:
            return call.key in self._by_key and call in self._by_key[call.key].waiting

    def end(self, call: PendingCall[A, B]) -> None:
        """Note that a caller neither waits nor sends any more. What it was to send fails, unless it has a result."""
        with self._lock:
            self._end(call)

    def _end_abandoned(self) -> None:
        while not self.abandoned.empty():
            self._end(self.abandoned.get())

    def _end(self, call: PendingCall[A, B]) -> None:
        pending = self._by_key.get(call.key)
        if pending is None:
            return
        pending.remove([call])
        for each in call.batch:
            if not each.result.done():
                each.result.set_result(Unavailable("the request was broken off: it may have been carried out"))
        pending.in_flight -= 1 if call.batch else 0
        call.batch = []
        if pending.waiting and not pending.in_flight:
            pending.waiting[0].wake()
        elif not pending.waiting and not pending.in_flight:
            # Traces are among the keys: most of them come once.
            del self._by_key[call.key]


class RequestCoalescer(Generic[A, B]):
    """Sends items to queues by `send`: those of one queue and one `group` that come within `seconds` go together.

    An item that comes while nothing is in flight leaves at once. Others leave together: `seconds` after they came at
    the latest, and earlier once nothing is in flight any more, or once they are 500 or have 5 MB. `size` returns an
    item's bytes. Threads, tasks of event loops and forked processes may share it.
    """

    def __init__(
        self,
        send: Callable[[str, Sequence[A]], Sequence[B | DuelineError]],
        *,
        seconds: float,
        size: Callable[[A], int] = lambda _: 0,
        group: Callable[[A], Hashable] = lambda _: None,
    ) -> None:
        self._send = send
        self._seconds = seconds
        self._size = size
        self._group = group
        # A forked child has none of the threads that would send its parent's calls.
        self._pending: PerProcess[PendingBatches[A, B]] = PerProcess(PendingBatches)

    def send(self, queue: str, item: A) -> B:
        """Send an item, in this thread or in that of another caller; return its result, or raise its error."""
        pending = self._pending()
        call = self._call(queue, item, can_send_others=threading.current_thread() is not threading.main_thread())
        try:
            pending.add(call)
            waits_until = time.monotonic() + self._seconds
            wait([call.turn], self._seconds)
            if not pending.assign(call) and pending.is_waiting(call):
                # The one to send may be a task of this very thread, which runs only once this call has returned.
                wait([call.result], max(0.0, waits_until - time.monotonic()))
                pending.assign(call, alone=True)
            self._deliver(queue, call.batch)
        finally:
            pending.end(call)
        result = call.result.result()
        return self._send_alone(queue, item) if result is None else value_of(result)

    async def send_in_loop(self, queue: str, item: A) -> B:
        """Send an item as `send` does, while the event loop goes on."""
        pending = self._pending()
        call = self._call(queue, item, can_send_others=True)
        pending.add(call)
        end: Callable[[PendingCall[A, B]], None] = pending.end
        sending = None
        try:
            await _until(call.turn, self._seconds)
            if pending.assign(call):
                loop = asyncio.get_running_loop()
                with unavailable_without_threads():
                    sending = loop.run_in_executor(
                        pending.senders, copy_context().run, self._deliver_and_end, pending, queue, call
                    )
        except GeneratorExit:
            end = pending.abandoned.put
            raise
        finally:
            if sending is None:
                end(call)
        await _until(call.result)
        result = call.result.result()
        if result is None:
            return await in_pool(pending.senders, partial(copy_context().run, self._send_alone, queue, item))
        return value_of(result)

    def _call(self, queue: str, item: A, *, can_send_others: bool) -> PendingCall[A, B]:
        key = (queue, self._group(item))
        return PendingCall(item=item, size=self._size(item), key=key, can_send_others=can_send_others)

    def _deliver(self, queue: str, batch: Sequence[PendingCall[A, B]]) -> None:
        """Send a batch and set the results of its calls. An error that is no DuelineError is raised."""
        if not batch:
            return
        results: Sequence[B | DuelineError | None]
        try:
            results = self._send(queue, [call.item for call in batch])
        except DuelineError as error:
            # One of several may be wrong, and is to fail alone: such a request has scheduled none of them.
            is_of_one = isinstance(error, InvalidJob) and len(batch) > 1
            results = [None if is_of_one else error.copy() for _ in batch]
        for call, result in zip(batch, results, strict=True):
            call.result.set_result(result)

    def _deliver_and_end(self, pending: PendingBatches[A, B], queue: str, call: PendingCall[A, B]) -> None:
        try:
            self._deliver(queue, call.batch)
        finally:
            pending.end(call)

    def _send_alone(self, queue: str, item: A) -> B:
        (result,) = self._send(queue, [item])
        return value_of(result)


async def _until(future: "Future[Any]", seconds: float | None = None) -> None:
    """Wait until a future is done, or for so long. It is never cancelled."""
    waiter = asyncio.wrap_future(future)
    try:
        await asyncio.wait([waiter], timeout=seconds)
    finally:
        # The loop of a task that is garbage may be closed.
        with suppress(RuntimeError):
            waiter.cancel()
