"""Request coalescing: calls that threads and tasks make at about the same time travel as one request."""

import asyncio
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from typing import Generic, TypeVar

from dueline.client.api import MOST_AT_ONCE, MOST_BYTES, call_for_one
from dueline.core.retry import attempt
from dueline.core.threads import PerProcess
from dueline.errors import DuelineError, InvalidJob, Unavailable

# How many requests are in flight at once, or wait for others to join them.
_MOST_SENDERS = 100
# A longer time is mostly a number of milliseconds.
LONGEST_SECONDS = 1.0

A = TypeVar("A")
B = TypeVar("B")
Result = Future[B]


def linger_seconds(linger: object) -> float:
    """Return the seconds to linger, 0 for not at all. Raises ValueError."""
    seconds = linger.total_seconds() if isinstance(linger, timedelta) else 0.0 if linger is None else linger
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= LONGEST_SECONDS:
        allowed = f"from 0 to {LONGEST_SECONDS:g} seconds, or a timedelta, or None"
        raise ValueError(f"linger is {linger!r}: it must be {allowed}")
    return seconds


class PendingBatch(Generic[A, B]):
    """Items that leave in one request, with their results: once `leaves` is set, or the first has waited long enough.

    Others may join it until then.
    """

    def __init__(self, key: tuple[str, Hashable]) -> None:
        self.key = key
        self.calls: list[tuple[A, Result[B]]] = []
        self.bytes = 0
        self.leaves = threading.Event()


class PendingBatches(Generic[A, B]):
    """The batches of one process by their keys, from when they have an item until they have left. Threads share them.

    `senders` has the threads that send them; none is started before the first batch.
    """

    def __init__(self) -> None:
        self.senders = ThreadPoolExecutor(_MOST_SENDERS, thread_name_prefix="dueline-sender")
        self.by_key: dict[Hashable, list[PendingBatch[A, B]]] = {}
        self._lock = threading.Lock()

    def add(self, key: tuple[str, Hashable], item: A, result: Result[B], *, size: int) -> PendingBatch[A, B] | None:
        """Put an item into the batch that waits. If there is none, return a new one, which is to be sent."""
        with self._lock:
            batches = self.by_key.setdefault(key, [])
            is_alone, last = not batches, batches[-1] if batches else None
            if last and last.bytes + size > MOST_BYTES:
                last.leaves.set()
            is_new = last is None or last.leaves.is_set()
            if is_new:
                batches.append(PendingBatch(key))
            batch = batches[-1]
            batch.calls.append((item, result))
            batch.bytes += size
            if is_alone or len(batch.calls) >= MOST_AT_ONCE or batch.bytes >= MOST_BYTES:
                batch.leaves.set()
        return batch if is_new else None

    def take(self, batch: PendingBatch[A, B]) -> list[tuple[A, Result[B]]]:
        """Close a batch; return what is to be sent of it: not what was cancelled meanwhile."""
        with self._lock:
            batch.leaves.set()
            calls, batch.calls = batch.calls, []
        return [(item, result) for item, result in calls if result.set_running_or_notify_cancel()]

    def end(self, batch: PendingBatch[A, B]) -> None:
        """Forget a batch that has left, and let the next one leave."""
        with self._lock:
            batches = self.by_key.get(batch.key, [])
            if batch not in batches:
                # The thread that began to send it was interrupted, and ended it.
                return
            batches.remove(batch)
            if len(batches) == 1:
                batches[0].leaves.set()
            if not batches:
                # Traces are among the keys: most of them come once.
                del self.by_key[batch.key]


class RequestCoalescer(Generic[A, B]):
    """Sends items to queues by `send`: those of one queue and one `group` that come within `seconds` go together.

    An item that comes while nothing is in flight leaves at once. Others leave together: `seconds` after the first came
    at the latest, and earlier once nothing is in flight any more, or once they are 500 or have 5 MB. `size` returns an
    item's bytes. Threads, tasks of event loops and forked processes may share it.
    """

    def __init__(
        self,
        send: Callable[[str, Sequence[A]], Sequence[B | DuelineError]],
        *,
        seconds: float,
        size: Callable[[A], int] = lambda _: 0,
        group: Callable[[A], Hashable],
    ) -> None:
        self._send = send
        self._seconds = seconds
        self._size = size
        self._group = group
        # A forked child has none of the threads that would send its parent's calls.
        self.pending: PerProcess[PendingBatches[A, B]] = PerProcess(PendingBatches)

    def send(self, queue: str, item: A) -> B:
        """Send an item, alone where none are to wait for others; return its result, or raise its error."""
        if not self._seconds:
            return call_for_one(self._send, queue, item)
        result = self._submit(queue, item)
        try:
            return result.result()
        finally:
            # Of an interrupted thread, which waits for it no more.
            result.cancel()

    async def send_in_loop(self, queue: str, item: A) -> B:
        """Send an item as `send` does, while the event loop goes on."""
        return await asyncio.wrap_future(self._submit(queue, item))

    def _submit(self, queue: str, item: A) -> Result[B]:
        pending, result, key = self.pending(), Result[B](), (queue, self._group(item))
        if batch := pending.add(key, item, result, size=self._size(item)):
            try:
                pending.senders.submit(copy_context().run, self._send_batch, pending, batch)
            except BaseException:
                # Others may have joined it already. Of an interrupted thread, too: nobody would send their calls.
                for _, its in pending.take(batch):
                    its.set_exception(Unavailable("its sender was interrupted"))
                pending.end(batch)
                raise
        return result

    def _send_batch(self, pending: PendingBatches[A, B], batch: PendingBatch[A, B]) -> None:
        """Send a batch once it is to leave, and set its results."""
        batch.leaves.wait(self._seconds)
        calls = pending.take(batch)
        try:
            if calls:
                results = self._results(batch.key[0], [item for item, _ in calls])
                for (_, result), its in zip(calls, results, strict=True):
                    if isinstance(its, DuelineError):
                        result.set_exception(its)
                    else:
                        result.set_result(its)
        except BaseException as error:
            for _, result in calls:
                if not result.done():
                    result.set_exception(error)
        finally:
            pending.end(batch)

    def _results(self, queue: str, items: Sequence[A]) -> Sequence[B | DuelineError]:
        try:
            return self._send(queue, items)
        except DuelineError as error:
            if isinstance(error, InvalidJob) and len(items) > 1:
                # One of several may be wrong, and is to fail alone: such a request has scheduled none of them.
                return [attempt(partial(call_for_one, self._send, queue), item) for item in items]
            return [error.copy() for _ in items]
