"""Request coalescing: calls that threads and tasks make at about the same time travel as one request."""

import asyncio
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from typing import Generic, TypeVar

from dueline.client.api import MOST_AT_ONCE, MOST_BYTES, call_for_one, value_of
from dueline.core.threads import PerProcess, in_pool, unavailable_without_threads
from dueline.errors import DuelineError, InvalidJob

# How many requests of tasks are in flight at once; threads send their own.
_MOST_SENDERS = 32
# A longer time is mostly a number of milliseconds.
LONGEST_SECONDS = 1.0

A = TypeVar("A")
B = TypeVar("B")
# The result of a call, or its error; None, where its caller is to send it alone.
Result = Future[B | DuelineError | None]


def linger_seconds(linger: object) -> float:
    """Return the seconds to linger, 0 for not at all. Raises ValueError."""
    seconds = linger.total_seconds() if isinstance(linger, timedelta) else 0.0 if linger is None else linger
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_SECONDS:
        allowed = f"from 0 to {LONGEST_SECONDS:g} seconds, or a timedelta, or None"
        raise ValueError(f"linger is {linger!r}: it must be {allowed}")
    return seconds


class PendingBatch(Generic[A, B]):
    """Items that leave in one request, with their results: once `leaves` is set, or the first has waited long enough.

    Others may join it while it `is_open`. The caller of the first, whose result is `leader`, sends them all.
    """

    def __init__(self, leader: Result[B]) -> None:
        self.leader = leader
        self.calls: list[tuple[A, Result[B]]] = []
        self.bytes = 0
        self.is_open = True
        self.leaves = threading.Event()

    def close(self) -> None:
        self.is_open = False
        self.leaves.set()


class PendingBatches(Generic[A, B]):
    """The batches of one process by their keys, from when they have an item until they have left. Threads share them.

    `senders` has the threads that send the batches of tasks; none is started before the first of these.
    """

    def __init__(self) -> None:
        self.senders = ThreadPoolExecutor(_MOST_SENDERS, thread_name_prefix="dueline-sender")
        self.by_key: dict[Hashable, list[PendingBatch[A, B]]] = {}
        self._lock = threading.Lock()

    def add(self, key: Hashable, item: A, result: Result[B], *, size: int) -> PendingBatch[A, B] | None:
        """Put an item into the batch that waits. If there is none, return a new one, which the caller is to send."""
        with self._lock:
            batches = self.by_key.setdefault(key, [])
            last = batches[-1] if batches and batches[-1].is_open else None
            if last and last.bytes + size > MOST_BYTES:
                last.close()
                last = None
            batch: PendingBatch[A, B] = last or PendingBatch(result)
            batch.calls.append((item, result))
            batch.bytes += size
            if not batches:
                batch.leaves.set()
            if len(batch.calls) >= MOST_AT_ONCE or batch.bytes >= MOST_BYTES:
                batch.close()
            if last is None:
                batches.append(batch)
        return None if last else batch

    def take(self, batch: PendingBatch[A, B]) -> list[tuple[A, Result[B]]]:
        """Close a batch; return what is to be sent of it: not what was cancelled meanwhile."""
        with self._lock:
            batch.close()
            return [(item, result) for item, result in batch.calls if result.set_running_or_notify_cancel()]

    def end(self, key: Hashable, leader: Result[B]) -> None:
        """Forget the batch that a caller is to send, if any, and let the next one leave.

        What has no result by then is left to its own caller.
        """
        with self._lock:
            batches = self.by_key.get(key, [])
            ended = [batch for batch in batches if batch.leader is leader]
            for batch in ended:
                batch.close()
                batches.remove(batch)
            if ended and len(batches) == 1:
                batches[0].leaves.set()
            if not batches:
                # Traces are among the keys: most of them come once.
                self.by_key.pop(key, None)
            unsent = [batch.calls.pop() for batch in ended for _ in list(batch.calls)]
        for _, result in unsent:
            with suppress(InvalidStateError):
                result.set_result(None)


class RequestCoalescer(Generic[A, B]):
    """Sends items to queues by `send`: those of one queue and one `group` that come within `seconds` go together.

    An item that comes while nothing is in flight leaves at once. Others leave together: `seconds` after the first came
    at the latest, and earlier once nothing is in flight any more, or once they are 500 or have 5 MB. One caller sends
    them all: where that is broken off, the others send theirs alone, which is safe. `size` returns an item's bytes.
    Threads, tasks of event loops and forked processes may share it.
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
        self.pending: PerProcess[PendingBatches[A, B]] = PerProcess(PendingBatches)

    def send(self, queue: str, item: A) -> B:
        """Send an item, in this thread or in that of another caller; return its result, or raise its error."""
        pending, result, key = self.pending(), Result[B](), (queue, self._group(item))
        try:
            if batch := pending.add(key, item, result, size=self._size(item)):
                self._send_batch(pending, key, batch)
            shared = result.result()
        finally:
            # Nobody waits for it any more, and nobody else sends what it was to send.
            result.cancel()
            pending.end(key, result)
        return call_for_one(self._send, queue, item) if shared is None else value_of(shared)

    async def send_in_loop(self, queue: str, item: A) -> B:
        """Send an item as `send` does, while the event loop goes on."""
        pending, result, key = self.pending(), Result[B](), (queue, self._group(item))
        if batch := pending.add(key, item, result, size=self._size(item)):
            try:
                with unavailable_without_threads():
                    pending.senders.submit(copy_context().run, self._send_batch, pending, key, batch)
            except BaseException:
                pending.end(key, result)
                raise
        shared = await asyncio.wrap_future(result)
        if shared is None:
            alone = partial(call_for_one, self._send, queue, item)
            return await in_pool(pending.senders, partial(copy_context().run, alone))
        return value_of(shared)

    def _send_batch(self, pending: PendingBatches[A, B], key: tuple[str, Hashable], batch: PendingBatch[A, B]) -> None:
        """Send a batch once it is to leave, and set its results. An error that is no DuelineError is raised."""
        try:
            batch.leaves.wait(self._seconds)
            if calls := pending.take(batch):
                for (_, result), its in zip(calls, self._results(key[0], [item for item, _ in calls]), strict=True):
                    result.set_result(its)
        finally:
            pending.end(key, batch.leader)

    def _results(self, queue: str, items: Sequence[A]) -> Sequence[B | DuelineError | None]:
        try:
            return self._send(queue, items)
        except DuelineError as error:
            # One of several may be wrong, and is to fail alone: such a request has scheduled none of them.
            is_of_one = isinstance(error, InvalidJob) and len(items) > 1
            return [None if is_of_one else error.copy() for _ in items]
