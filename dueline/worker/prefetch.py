"""What is prepared and has not begun: each job waits for its slot, or until it is due."""

import threading
from collections.abc import Callable

from dueline.errors import RETRYABLE
from dueline.model.message import batches
from dueline.worker.acknowledger import Ack, Acknowledger
from dueline.worker.bury import Burial
from dueline.worker.claim import Claim
from dueline.worker.pool import Pool
from dueline.worker.prepare import prepare, seconds_until_due
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.rate_limiter import RateLimiter
from dueline.worker.received import Taken
from dueline.worker.visibility import VisibilityRenewer
from dueline.worker.watch.event import Kind, Report, trouble

# A cancellation is read anew for what has waited longer since.
FRESH_SECONDS = 1.0


class Prefetched:
    """The jobs of a line that wait in its `pool`. What cannot be told of them goes to `hold`, to be prepared anew."""

    def __init__(
        self,
        connection: QueueConnection,
        pool: Pool[Taken | Burial],
        limiter: RateLimiter,
        acknowledger: Acknowledger,
        renewer: VisibilityRenewer,
        hold: Callable[[list[Claim]], None],
        report: Report,
    ) -> None:
        self._connection, self._pool, self._limiter, self._acknowledger, self._renewer = (
            connection,
            pool,
            limiter,
            acknowledger,
            renewer,
        )
        self._hold, self._report = hold, report
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Put back what has not begun, and from now on whatever else would wait."""
        self._stopped.set()
        for taken in self._take_back():
            self._put_back(taken)

    def put(self, taken: Taken, slot: float) -> None:
        """Let a job run when it is due and its slot begins, unless the queue is paused by now."""
        if self._stopped.is_set() or not self._limiter.is_open:
            self._put_back(taken)
            return
        seconds = max(slot, seconds_until_due(taken, self._connection))
        self._pool.put(taken, at=self._connection.clock.monotonic() + seconds)

    def _put_back(self, taken: Taken) -> None:
        self._report(taken.event(Kind.RETURNED))
        self._pool.give_back(1)
        self._acknowledger.put(Ack(claim=taken.claim, hidden=0))

    def _take_back(self) -> list[Taken]:
        """Return the jobs that have not begun. What is to be buried is not given back: that is tried again at once."""
        items = self._pool.take_back()
        for item in items:
            if isinstance(item, Burial):
                self._pool.put(item, at=self._connection.clock.monotonic())
        return [item for item in items if isinstance(item, Taken)]

    def heed(self) -> None:
        """Give what has not begun new slots, or put it back if the queue is paused; without slots, prepare it anew."""
        waiting = self._take_back()
        try:
            slots = self._limiter.slots(len(waiting)) if self._limiter.is_open else [0.0] * len(waiting)
        except Exception as fault:
            # Whatever it is: what was taken back must not be held for hours.
            self._trouble(fault)
            for batch in batches(waiting, size=lambda _: 0):
                self._hold([taken.claim for taken in batch])
            return
        for taken, slot in zip(waiting, slots, strict=True):
            self.put(taken, slot)

    def may_run(self, taken: Taken) -> bool:
        """Tell whether a job is to run now that it has its turn. One that has waited may be cancelled by now.

        One that is not to run is skipped, or held where nothing is known of it. Raises what is no fault of AWS's.
        """
        if not self._renewer.has(taken.claim):
            return False
        if self._connection.clock.monotonic() - taken.looked <= FRESH_SECONDS:
            return True
        try:
            cancelled = prepare([taken.claim], self._connection).cancelled
        except RETRYABLE as fault:
            self._trouble(fault)
            self._keep(taken)
            return False
        if cancelled:
            self._report(taken.event(Kind.SKIPPED))
            self._acknowledger.put(Ack(claim=taken.claim))
            return False
        return self._renewer.has(taken.claim)

    def _keep(self, taken: Taken) -> None:
        # Its place is given back when its turn ends.
        self._pool.take(1)
        if self._stopped.is_set():
            self._put_back(taken)
        else:
            self._hold([taken.claim])

    def _trouble(self, fault: Exception) -> None:
        self._report(trouble(fault, queue=self._connection.queue))
