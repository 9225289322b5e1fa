"""Process the jobs of one queue: receive, prepare, run handlers, and settle their messages."""

import heapq
import math
import threading
from collections.abc import Callable, Sequence
from itertools import count

from dueline.core.ports import Clock
from dueline.errors import RETRYABLE
from dueline.worker.claims import Claims
from dueline.worker.delivery import DeadLettered, Deferred, Event, EventKind, JobVerdict, ReceivedMessage, RetryLater
from dueline.worker.execution import HandlerRunner
from dueline.worker.limits import WATCH_SECONDS, RateLimiter
from dueline.worker.receiving import Receiver, prepare, seconds_until_due

# What failed through no fault of its job is tried again after so long.
RETRY_SECONDS = 5
# New settings apply within so long. A whole account may read parameters 40 times a second.
LONGEST_REFRESH_SECONDS = 60.0
# The cancellation of a job that has waited longer is read again before its handler begins.
_CANCELLATION_FRESH_SECONDS = 1.0
# How long it waits for a permit, and while no message may be received, before it looks again.
_PERMIT_SECONDS = 1.0
_CLOSED_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 20.0

# A list has received messages that are to be prepared: their jobs read, and which of them were cancelled.
Item = list[ReceivedMessage] | ReceivedMessage


class QueueWorker:
    """Processes one queue's jobs in this process: receives each message, prepares it, runs its handler and settles it.

    It never receives more messages than there are permits for. They wait in the pool until they are due and their slots
    begin. One goes into the dead-letter queue before it is deleted; when that fails it is tried again, and the handler
    does not run again for that. Messages that cannot be prepared because AWS fails are kept, and no more are received:
    to put them back would cost each an attempt, for a fault that is not theirs. Once it is stopped, messages whose
    handlers have not started go back, but for dead letters: these are sent. `jitter` returns 0 to 1.
    """

    def __init__(self, runner: HandlerRunner, *, concurrency: int, jitter: Callable[[], float]) -> None:
        self._context = context = runner.context
        self._runner, self._jitter = runner, jitter
        self._receiver, self._limiter = Receiver(context), RateLimiter(context)
        self._claims = Claims(context, concurrency=concurrency)
        self._pool = Pool(concurrency, self.process, name=context.queue, clock=context.clock)
        self._receiving = threading.Thread(target=self._receive, name=f"receive {context.queue}", daemon=True)
        self._can_prepare = True
        self._stopped, self._ended = threading.Event(), threading.Event()

    def open(self) -> None:
        """Receive nothing yet. Raises Throttled or Unavailable when the queue's pause and rate cannot be read."""
        self._context.report(Event(kind=EventKind.OPENED, queue=self._context.queue, kinds=self._runner.kinds))
        self._limiter.read()

    def start(self) -> None:
        """Start all threads that it will ever need, the one that receives last.

        Raises RuntimeError when the system has no more threads: then nothing was received.
        """
        self._pool.start()
        self._claims.start()
        threading.Thread(target=self._watch, name=f"watch {self._context.queue}", daemon=True).start()
        self._receiving.start()

    def stop(self) -> None:
        """Receive no more, and put back the jobs that have not started. A poll that is open may still bring some."""
        self._stopped.set()
        self._put_all_back()

    @property
    def is_busy(self) -> bool:
        """Whether messages are received, jobs run, or messages are to be acknowledged."""
        return self._receiving.is_alive() or not self._claims.is_idle

    def put_back(self, *, within: float) -> bool:
        """Put back the jobs that still run once no poll is open, in so many seconds; return whether there were none.

        An open poll would receive what is put back.
        """
        if self._receiving.is_alive():
            self._receiving.join(max(0.0, within))
        return self._claims.stop()

    def finish(self, *, within: float) -> None:
        """Wait up to so many seconds until the last acknowledgements are sent."""
        self._claims.close(within=within)
        self._pool.stop()
        self._ended.set()
        self._context.report(Event(kind=EventKind.CLOSED, queue=self._context.queue))

    @property
    def heartbeat(self) -> float:
        """When it last looked for work, on the monotonic clock."""
        return self._receiver.heartbeat

    def _watch(self) -> None:
        """Follow the queue's pause and rate, and less often its published settings."""
        now = self._context.clock.monotonic
        seconds = LONGEST_REFRESH_SECONDS * (1 + self._jitter()) / 2
        refresh_at = now() + seconds
        while not self._ended.wait(WATCH_SECONDS):
            try:
                self.apply_limits()
                if now() >= refresh_at:
                    refresh_at = now() + seconds
                    self._context.refresh()
            except Exception as fault:
                # A thread that ended would do so without a word.
                self._context.report_error(fault)

    def _receive(self) -> None:
        faults = 0
        while not self._stopped.is_set():
            try:
                self.receive_once()
                faults = 0
            except Exception as fault:
                # Whatever it is: a thread that ends would leave a process that does nothing and says nothing.
                faults += 1
                self._context.report_error(fault)
                self._receiver.beat()
                longest = min(_LONGEST_BACKOFF_SECONDS, 2.0 ** min(faults, 10))
                self._stopped.wait(longest * (1 + self._jitter()) / 2)

    def receive_once(self) -> None:
        """Receive as much as there are permits for; nothing while jobs may not begin or cannot be prepared."""
        self._receiver.beat()
        permits = self._claims.wait_for_permits(within=_PERMIT_SECONDS)
        most = min(permits, self._limiter.most()) if permits and self._can_prepare else 0
        if not most:
            self._stopped.wait(_CLOSED_SECONDS if permits else 0)
            return
        batch = self._receiver.receive(most=most)
        self._claims.add(batch)
        for each in batch:
            self._context.report(each.event(EventKind.RECEIVED))
        if batch and self._limiter.is_limited:
            # What is received next depends on the slots that these take.
            self._prepare(batch)
        elif batch:
            self._put(batch)

    def process(self, item: Item) -> None:
        """Do the next step of what its time has come for. Raises nothing."""
        if isinstance(item, list):
            self._prepare(item)
        elif item.dead:
            self._send(item, item.dead)
        else:
            self._run(item)

    def apply_limits(self) -> None:
        """Read pause and rate. Put back the jobs that wait, but for those that have slots of that rate."""
        try:
            self._limiter.read()
        except Exception as fault:
            self._context.report_error(fault, "pause and rate could not be read")
            return
        for at, item in self._pool.drain():
            if (
                isinstance(item, list)
                or item.dead
                or (self._limiter.is_open and item.slot_of == self._limiter.rate_set)
            ):
                self._put_at(item, at)
            else:
                self._put_back(item)

    def _prepare(self, batch: list[ReceivedMessage]) -> None:
        left = batch
        try:
            left = prepare(batch, self._context)
            for each in batch:
                if each.cancelled:
                    self._claims.delete(each)
                elif each.dead:
                    self._put(each)
            self._add(left)
        except RETRYABLE as fault:
            self._prepare_later(left, fault)
            return
        except Exception as fault:
            self._context.report_error(fault)
            for each in left:
                self._claims.hide(each, RETRY_SECONDS)
        self._can_prepare = True

    def _prepare_later(self, batch: list[ReceivedMessage], fault: Exception) -> None:
        self._context.report_error(fault)
        self._can_prepare = False
        self._put(batch, after=RETRY_SECONDS)

    def _add(self, ready: Sequence[ReceivedMessage]) -> None:
        """Let prepared jobs run, each when it is due and its slot begins; put them back if their queue is paused.

        Raises Throttled or Unavailable: then none was added.
        """
        rate_set = self._limiter.rate_set
        slots = self._limiter.slots(len(ready))
        for received, slot in zip(ready, slots, strict=True):
            if self._stopped.is_set() or not self._limiter.is_open or math.isinf(slot):
                self._put_back(received)
                continue
            received.slot_of = rate_set
            self._put(received, after=max(slot, seconds_until_due(received, self._context)))

    def _put(self, item: Item, *, after: float = 0.0) -> None:
        """Process an item after so many seconds, as soon as a thread is free. It keeps its permits until then."""
        self._put_at(item, self._context.clock.monotonic() + after)

    def _put_at(self, item: Item, at: float) -> None:
        self._pool.put(item, at=at)
        if self._stopped.is_set():
            # What stopped it has not seen this one.
            self._put_all_back()

    def _put_all_back(self) -> None:
        for _, item in self._pool.drain():
            if isinstance(item, list):
                for each in item:
                    self._claims.hide(each, 0)
            elif item.dead:
                self._pool.put(item, at=-math.inf)
            else:
                self._put_back(item)

    def _put_back(self, received: ReceivedMessage) -> None:
        self._context.report(received.event(EventKind.RETURNED))
        self._claims.hide(received, 0)

    def _run(self, received: ReceivedMessage) -> None:
        try:
            if not self._may_run(received):
                return
            received.started = self._context.clock.monotonic()
            verdict = self._runner.run(received)
            received.started = None
            self._settle(received, verdict)
        except Exception as fault:
            self._context.report_error(fault)
            self._claims.hide(received, RETRY_SECONDS)

    def _may_run(self, received: ReceivedMessage) -> bool:
        """Return whether a job may begin: its message is still this process's, and it is not cancelled.

        One that is cancelled is deleted. One whose cancellation cannot be read is prepared again.
        """
        if not self._claims.has(received):
            return False
        if self._context.clock.monotonic() - received.cancellation_read <= _CANCELLATION_FRESH_SECONDS:
            return True
        try:
            prepare([received], self._context)
        except RETRYABLE as fault:
            self._prepare_later([received], fault)
            return False
        if received.cancelled:
            self._claims.delete(received)
            return False
        return self._claims.has(received)

    def _settle(self, received: ReceivedMessage, verdict: JobVerdict) -> None:
        match verdict:
            case RetryLater(seconds=seconds):
                self._claims.hide(received, seconds)
            case DeadLettered():
                received.dead = verdict
                self._send(received, verdict)
            case Deferred() if not self._limiter.is_open:
                self._put_back(received)
            case Deferred():
                self._put(received, after=RETRY_SECONDS)
            case _:
                self._claims.delete(received)

    def _send(self, received: ReceivedMessage, dead: DeadLettered) -> None:
        """Send a dead letter, unless its message may be another worker's by now."""
        if not self._claims.has(received):
            return
        try:
            received.send_dead_letter(dead, self._context.dead_letters)
        except Exception as fault:
            self._context.report_error(fault)
            self._put(received, after=RETRY_SECONDS)
        else:
            self._claims.delete(received)


class Pool:
    """Calls `run` with items in `size` threads, with each when its time has come.

    The threads are daemons: a handler that hangs must not keep the process from ending.
    """

    def __init__(self, size: int, run: Callable[[Item], None], *, name: str, clock: Clock) -> None:
        self._size, self._run_item, self._name, self._clock = size, run, name, clock
        self._items: list[tuple[float, int, Item]] = []
        self._numbers = count()
        self._changed = threading.Condition()
        self._is_stopped = False

    def start(self) -> None:
        """Raises RuntimeError when the system has no more threads."""
        for number in range(self._size):
            threading.Thread(target=self._run, name=f"{self._name} {number}", daemon=True).start()

    def stop(self) -> None:
        """Let each thread end when the item that it runs is done."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def put(self, item: Item, *, at: float) -> None:
        """Run an item when the monotonic clock is at `at`."""
        with self._changed:
            entry = (at, next(self._numbers), item)
            heapq.heappush(self._items, entry)
            if self._items[0] is entry:
                self._changed.notify()

    def drain(self) -> list[tuple[float, Item]]:
        """Remove the items that have not started, and return each with its time."""
        with self._changed:
            items, self._items = self._items, []
            return [(at, item) for at, _, item in items]

    def _run(self) -> None:
        while (item := self._next()) is not None:
            self._run_item(item)

    def _next(self) -> Item | None:
        """Wait for an item whose time has come; None ends the thread."""
        with self._changed:
            while not self._is_stopped:
                seconds = self._items[0][0] - self._clock.monotonic() if self._items else None
                if seconds is not None and seconds <= 0:
                    *_, item = heapq.heappop(self._items)
                    if self._items:
                        # Another thread waits for the time of the next one, or none might.
                        self._changed.notify()
                    return item
                self._changed.wait(seconds)
        return None
