"""What is prepared and has not begun: each job waits for its slot, or until it is due."""

import threading
from collections.abc import Callable

from dueline.errors import RETRYABLE
from dueline.model.message import batches
from dueline.worker.acknowledger import Ack, Acks
from dueline.worker.bury import Burial
from dueline.worker.connection import Place
from dueline.worker.delivery import Claim
from dueline.worker.pool import Pool
from dueline.worker.prepare import prepare, seconds_until_due
from dueline.worker.rate_limiter import Gate
from dueline.worker.received import Taken
from dueline.worker.visibility import Claims
from dueline.worker.watch.event import Kind, Report, trouble

# A cancellation is read anew for what has waited longer since.
FRESH_SECONDS = 1.0


class Waiting:
    """The jobs of a line that wait in its `pool`. What cannot be told of them goes to `hold`, to be prepared anew."""

    def __init__(
        self,
        place: Place,
        pool: Pool[Taken | Burial],
        gate: Gate,
        acks: Acks,
        claims: Claims,
        hold: Callable[[list[Claim]], None],
        report: Report,
    ) -> None:
        self._place, self._pool, self._gate, self._acks, self._claims = place, pool, gate, acks, claims
        self._hold, self._report = hold, report
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Put back what has not begun, and from now on whatever else would wait."""
        self._stopped.set()
        for taken in self._take_back():
            self._put_back(taken)

    def put(self, taken: Taken, slot: float) -> None:
        """Let a job run when it is due and its slot begins, unless the queue is paused by now."""
        if self._stopped.is_set() or not self._gate.is_open:
            self._put_back(taken)
            return
        seconds = max(slot, seconds_until_due(taken, self._place))
        self._pool.put(taken, at=self._place.clock.monotonic() + seconds)

    def _put_back(self, taken: Taken) -> None:
        self._report(taken.event(Kind.RETURNED))
        self._pool.give_back(1)
        self._acks.put(Ack(claim=taken.claim, hidden=0))

    def _take_back(self) -> list[Taken]:
        """Return the jobs that have not begun. What is to be buried is not given back: that is tried again at once."""
        items = self._pool.take_back()
        for item in items:
            if isinstance(item, Burial):
                self._pool.put(item, at=self._place.clock.monotonic())
        return [item for item in items if isinstance(item, Taken)]

    def heed(self) -> None:
        """Give what has not begun new slots, or put it back if the queue is paused; without slots, prepare it anew."""
        waiting = self._take_back()
        try:
            slots = self._gate.slots(len(waiting)) if self._gate.is_open else [0.0] * len(waiting)
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
        if not self._claims.has(taken.claim):
            return False
        if self._place.clock.monotonic() - taken.looked <= FRESH_SECONDS:
            return True
        try:
            cancelled = prepare([taken.claim], self._place).cancelled
        except RETRYABLE as fault:
            self._trouble(fault)
            self._keep(taken)
            return False
        if cancelled:
            self._report(taken.event(Kind.SKIPPED))
            self._acks.put(Ack(claim=taken.claim))
            return False
        return self._claims.has(taken.claim)

    def _keep(self, taken: Taken) -> None:
        # Its place is given back when its turn ends.
        self._pool.take(1)
        if self._stopped.is_set():
            self._put_back(taken)
        else:
            self._hold([taken.claim])

    def _trouble(self, fault: Exception) -> None:
        self._report(trouble(fault, queue=self._place.queue))
