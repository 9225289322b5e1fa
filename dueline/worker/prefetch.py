"""Hold received messages until their handlers may begin."""

import queue
import threading
from collections.abc import Sequence

from dueline.model.message import batches
from dueline.worker.claim import Claim
from dueline.worker.dead_letter import DeadLetter
from dueline.worker.in_flight import InFlight
from dueline.worker.pool import Pool
from dueline.worker.prepare import seconds_until_due
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.rate_limiter import RateLimiter
from dueline.worker.received import ReceivedMessage
from dueline.worker.watch.event import Kind, Report, trouble

# Many are prepared together, in few requests. While none can be prepared, no more are received.
UNPREPARED_BATCHES = 3
# What failed through no fault of its job is tried again after so long.
RETRY_SECONDS = 5

Item = ReceivedMessage | DeadLetter


class Prefetched:
    """The messages that were received and whose handlers have not begun.

    A prepared job waits in the `pool` until it is due and the limiter lets it begin. `unprepared` has the messages that
    are to be prepared, or prepared again.
    """

    def __init__(
        self,
        connection: QueueConnection,
        *,
        pool: Pool[Item],
        limiter: RateLimiter,
        in_flight: InFlight,
        report: Report,
    ) -> None:
        self._connection, self._report = connection, report
        self._pool, self._limiter, self._in_flight = pool, limiter, in_flight
        self.unprepared: queue.Queue[list[Claim]] = queue.Queue(maxsize=UNPREPARED_BATCHES)
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Put back the jobs that have not begun, and from now on each that is added."""
        self._stopped.set()
        self._put_all_back()

    def add(self, ready: Sequence[ReceivedMessage]) -> None:
        """Let prepared jobs run, each when it may. Raises Throttled or Unavailable: then none was added."""
        slots = self._limiter.slots(len(ready))
        for received, slot in zip(ready, slots, strict=True):
            if not received.claim.is_reported:
                received.claim.is_reported = True
                self._report(received.event(Kind.RECEIVED))
            self._put(received, slot)

    def add_dead(self, letter: DeadLetter) -> None:
        """Let a message be put into the dead-letter queue as soon as a thread is free."""
        self._pool.put(letter, at=self._connection.clock.monotonic())

    def retry(self, item: Item) -> None:
        """Try again in 5 seconds what AWS kept from being done.

        Its thread stays reserved: while no job can begin or be put into the dead-letter queue, no more are received.
        """
        self._pool.reserve(1)
        if isinstance(item, DeadLetter):
            self._pool.put(item, at=self._connection.clock.monotonic() + RETRY_SECONDS)
        else:
            self._put(item, RETRY_SECONDS)

    def prepare_again(self, received: ReceivedMessage) -> None:
        """Prepare a job again whose cancellation could not be read when its handler was to begin."""
        # The thread that gave up on it is released when it returns.
        self._pool.reserve(1)
        if self._stopped.is_set():
            self._put_back(received)
        else:
            self.unprepared.put([received.claim])

    def apply_limits(self) -> None:
        """Give the jobs that wait new slots, or put them back if the queue is paused.

        If no slots can be taken, they are prepared again.
        """
        waiting = self._drain()
        try:
            slots = self._limiter.slots(len(waiting)) if self._limiter.is_open else [0.0] * len(waiting)
        except Exception as fault:
            # Whatever it is: these jobs are no longer in the pool, and must not be kept from running for hours.
            self._report(trouble(fault, queue=self._connection.queue))
            for batch in batches(waiting, size=lambda _: 0):
                self.unprepared.put([received.claim for received in batch])
            return
        for received, slot in zip(waiting, slots, strict=True):
            self._put(received, slot)

    def _put(self, received: ReceivedMessage, slot: float) -> None:
        if self._stopped.is_set() or not self._limiter.is_open:
            self._put_back(received)
            return
        seconds = max(slot, seconds_until_due(received, self._connection))
        self._pool.put(received, at=self._connection.clock.monotonic() + seconds)
        if self._stopped.is_set():
            # Who stopped it in between has not seen this one.
            self._put_all_back()

    def _put_all_back(self) -> None:
        for received in self._drain():
            self._put_back(received)

    def _put_back(self, received: ReceivedMessage) -> None:
        self._report(received.event(Kind.RETURNED))
        self._pool.release(1)
        self._in_flight.hide(received.claim, 0)

    def _drain(self) -> list[ReceivedMessage]:
        """Return the jobs that have not begun. Dead letters stay: they are sent now, rather than after their wait."""
        items = self._pool.drain()
        for item in items:
            if isinstance(item, DeadLetter):
                self.add_dead(item)
        return [item for item in items if isinstance(item, ReceivedMessage)]
