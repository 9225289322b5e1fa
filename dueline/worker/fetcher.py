"""Receive messages for the handlers that are free, and prepare them."""

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count

from dueline.errors import RETRYABLE
from dueline.model.message import BATCH_MESSAGES
from dueline.worker.claim import Claim
from dueline.worker.in_flight import InFlight
from dueline.worker.pool import Pool
from dueline.worker.prefetch import RETRY_SECONDS, UNPREPARED_BATCHES, Item, Prefetched
from dueline.worker.prepare import prepare
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.rate_limiter import RateLimiter
from dueline.worker.receiver import LONG_POLL_SECONDS, Receiver
from dueline.worker.watch.event import Kind, Report, trouble

# So long it waits for more free threads, to receive a full batch in one request.
_FULL_BATCH_SECONDS = 0.02
# How long it waits for a free thread, and while no message may be received, before it looks again.
_FREE_THREAD_SECONDS = 1.0
_CLOSED_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 20.0


class Fetcher:
    """Receives messages in one thread, never more than the pool has threads for, and prepares them in another.

    `heartbeat` is when it last looked for work, on the monotonic clock: a fetcher that hangs leaves it behind.
    """

    def __init__(
        self,
        connection: QueueConnection,
        *,
        pool: Pool[Item],
        limiter: RateLimiter,
        in_flight: InFlight,
        prefetched: Prefetched,
        report: Report,
        jitter: Callable[[], float],
    ) -> None:
        self._connection, self._report, self._jitter = connection, report, jitter
        self._pool, self._limiter, self._in_flight, self._prefetched = pool, limiter, in_flight, prefetched
        self._receiver = Receiver(connection, report=report)
        self._stopped = threading.Event()
        self._cannot_prepare = False
        self.heartbeat = connection.clock.monotonic()
        self._receiving = threading.Thread(target=self._receive, name=f"receive {connection.queue}", daemon=True)
        self._preparing = threading.Thread(target=self._prepare, name=f"prepare {connection.queue}", daemon=True)

    def start(self) -> None:
        self._receiving.start()
        self._preparing.start()

    def stop(self) -> None:
        """Receive no more. A poll that is open may still bring messages."""
        self._stopped.set()

    @property
    def is_receiving(self) -> bool:
        return self._receiving.is_alive()

    def join(self) -> None:
        """Wait until no poll is open: it would receive what is put back."""
        if self._receiving.is_alive():
            self._receiving.join(LONG_POLL_SECONDS + 1)
        # The other thread waits for messages; without one it would not see that it is to end.
        with suppress(queue.Full):
            self._prefetched.unprepared.put_nowait([])

    def _receive(self) -> None:
        faults = 0
        while not self._stopped.is_set():
            try:
                claims = self._receive_once()
            except Exception as fault:
                # Whatever it is: a thread that ends would leave a process that does nothing and says nothing.
                faults += 1
                self._back_off(fault, faults)
                continue
            faults = 0
            self._in_flight.add(claims)
            self._pool.reserve(len(claims))
            if self._limiter.is_limited:
                # What is received next depends on the slots that these take.
                self._prepare_until_done(claims)
            elif claims:
                self._prefetched.unprepared.put(claims)

    def _receive_once(self) -> list[Claim]:
        """Receive as much as there are free threads for; nothing while jobs may not begin or cannot be prepared."""
        self.heartbeat = self._connection.clock.monotonic()
        free = self._pool.wait_for_threads(
            wanted=min(BATCH_MESSAGES, self._pool.size), patience=_FULL_BATCH_SECONDS, within=_FREE_THREAD_SECONDS
        )
        most = min(free, self._limiter.most()) if free and not self._cannot_prepare else 0
        if most:
            return self._receiver.receive(most=most)
        self._stopped.wait(_CLOSED_SECONDS if free else 0)
        return []

    def _back_off(self, fault: Exception, faults: int) -> None:
        self._report(trouble(fault, queue=self._connection.queue))
        self.heartbeat = self._connection.clock.monotonic()
        self._stopped.wait(min(_LONGEST_BACKOFF_SECONDS, 2.0 ** min(faults, 10)) * (1 + self._jitter()) / 2)

    def _prepare(self) -> None:
        unprepared = self._prefetched.unprepared
        while self._receiving.is_alive() or not unprepared.empty():
            claims = unprepared.get()
            while not unprepared.empty() and len(claims) < UNPREPARED_BATCHES * BATCH_MESSAGES:
                claims = [*claims, *unprepared.get()]
            self._prepare_until_done(claims)

    def _prepare_until_done(self, claims: Sequence[Claim]) -> None:
        """Prepare messages. While AWS fails they are kept, and no more are received.

        To put them back would cost each an attempt, for a fault that is not theirs.
        """
        for faults in count(1):
            try:
                self._prepare_once(claims)
            except Exception as fault:
                self._cannot_prepare = True
                self._back_off(fault, faults)
                if isinstance(fault, RETRYABLE) and not self._stopped.is_set():
                    continue
                self._give_up(claims)
            self._cannot_prepare = False
            return

    def _prepare_once(self, claims: Sequence[Claim]) -> None:
        prepared = prepare(claims, self._connection)
        # First, as it may raise: then all are prepared again.
        self._prefetched.add(prepared.ready)
        self._pool.release(len(prepared.cancelled))
        for received in prepared.cancelled:
            self._report(received.event(Kind.SKIPPED))
            self._in_flight.delete(received.claim)
        for letter in prepared.dead:
            self._report(letter.received.event(Kind.FAILED, error=letter.dead.error, reason=letter.dead.reason))
            self._prefetched.add_dead(letter)

    def _give_up(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            self._in_flight.hide(claim, 0 if self._stopped.is_set() else RETRY_SECONDS)
        self._pool.release(len(claims))
