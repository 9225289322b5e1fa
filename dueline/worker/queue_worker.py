"""Work one queue off: receive, prepare, run, acknowledge."""

import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import count

from dueline.errors import RETRYABLE
from dueline.model.message import BATCH_MESSAGES
from dueline.worker.acknowledger import Ack, Acknowledger
from dueline.worker.bury import Burial
from dueline.worker.claim import Claim
from dueline.worker.handler_runner import HandlerRunner
from dueline.worker.pool import Pool
from dueline.worker.prefetch import Prefetched
from dueline.worker.prepare import prepare
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.rate_limiter import RateLimiter
from dueline.worker.received import Taken
from dueline.worker.receiver import LONG_POLL_SECONDS, Receiver
from dueline.worker.refresh import Refresh
from dueline.worker.settle import Settle
from dueline.worker.visibility import VisibilityRenewer
from dueline.worker.watch.event import Event, Kind, Report, trouble

# A full batch is worth waiting for so long.
_PATIENCE_SECONDS = 0.02
# What waits to be prepared, together and in few requests; what cannot be prepared is not received either.
_AHEAD_BATCHES = 3
_GATE_SECONDS = 0.1
_TURN_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 20.0
_AGAIN_SECONDS = 5
_LAST_ACKS_SECONDS = 5.0


class QueueWorker:
    """The work on one queue in this process, in threads of its own. `wall` is the time in seconds since 1970."""

    def __init__(
        self,
        connection: QueueConnection,
        runner: HandlerRunner,
        *,
        concurrency: int,
        report: Report,
        jitter: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._connection, self._runner, self._report, self._jitter = connection, runner, report, jitter
        self._wanted = min(BATCH_MESSAGES, concurrency)
        self._stopped = threading.Event()
        self._renewer = VisibilityRenewer(connection, report=report)
        self._acknowledger = Acknowledger(
            connection, on_send=self._renewer.settle, on_end=self._renewer.end, report=report
        )
        self._settle = Settle(
            connection, acknowledger=self._acknowledger, renewer=self._renewer, later=self._later, report=report
        )
        self._limiter = RateLimiter(connection, wall=wall, report=report)
        self._receiver = Receiver(connection, report=report)
        self._pool: Pool[Taken | Burial] = Pool(
            concurrency, self._work, name=connection.queue, now=connection.clock.monotonic
        )
        self._received: queue.Queue[list[Claim]] = queue.Queue(maxsize=_AHEAD_BATCHES)
        self._is_held_up = False
        self._prefetched = Prefetched(
            connection, self._pool, self._limiter, self._acknowledger, self._renewer, self._received.put, report
        )
        self.turned = connection.clock.monotonic()
        watch = partial(self._limiter.watch, self._stopped, on_change=self._prefetched.heed)
        refresh = partial(Refresh(connection, report=report, jitter=jitter).watch, self._stopped)
        self._receiving = self._thread("receive", self._receive)
        self._preparing = self._thread("prepare", self._prepare)
        self._watching, self._refreshing = self._thread("watch", watch), self._thread("refresh", refresh)

    def _thread(self, name: str, target: Callable[[], None]) -> threading.Thread:
        return threading.Thread(target=target, name=f"{name} {self._connection.queue}", daemon=True)

    def start(self) -> None:
        """Begin. Raises Throttled or Unavailable when the queue's pause and rate cannot be read."""
        self._report(Event(kind=Kind.OPENED, queue=self._connection.queue))
        self._limiter.read()
        threads = (self._receiving, self._preparing, self._watching, self._refreshing)
        for part in (self._pool, self._renewer, self._acknowledger, *threads):
            part.start()

    def stop(self) -> None:
        """Receive no more, and put back what has not begun."""
        self._stopped.set()
        self._prefetched.stop()

    @property
    def is_busy(self) -> bool:
        """Whether it receives, a job runs, or SQS is to be told what became of one."""
        return self._receiving.is_alive() or not (self._pool.is_idle and self._acknowledger.is_idle)

    def finish(self) -> bool:
        """Put back what still runs, and tell SQS what it is to know; tell whether nothing was left running."""
        # A poll that is still open would receive what is put back.
        if self._receiving.is_alive():
            self._receiving.join(LONG_POLL_SECONDS + 1)
        with suppress(queue.Full):
            self._received.put_nowait([])
        self._renewer.stop()
        is_done = self._pool.is_idle
        left = [] if is_done else [claim for claim in self._renewer.held if not self._acknowledger.has(claim)]
        for claim in left:
            self._acknowledger.put(Ack(claim=claim, hidden=0))
        self._acknowledger.stop(within=_LAST_ACKS_SECONDS)
        for claim in left:
            # Another's by now: what its handler still comes to is of no effect.
            claim.lost = True
        self._pool.stop()
        self._report(Event(kind=Kind.CLOSED, queue=self._connection.queue))
        return is_done

    def _receive(self) -> None:
        faults = 0
        while not self._stopped.is_set():
            try:
                claims = self._turn()
            except Exception as fault:
                # Whatever it is: a thread that ends would leave a process that does nothing and says nothing.
                faults += 1
                self._back_off(fault, faults)
                continue
            faults = 0
            self._renewer.add(claims)
            self._pool.take(len(claims))
            if self._limiter.is_limited:
                # What is received next depends on the slots that these take.
                self._begin_when_possible(claims)
            elif claims:
                self._received.put(claims)

    def _turn(self) -> list[Claim]:
        """Receive what there is room for, unless the gate is shut, or what was received is held up."""
        self.turned = self._connection.clock.monotonic()
        room = self._pool.wait_for_room(wanted=self._wanted, patience=_PATIENCE_SECONDS, within=_TURN_SECONDS)
        most = min(room, self._limiter.most()) if room and not self._is_held_up else 0
        if most:
            return self._receiver.receive(most=most)
        self._stopped.wait(_GATE_SECONDS if room else 0)
        return []

    def _back_off(self, fault: Exception, faults: int) -> None:
        self._trouble(fault)
        self.turned = self._connection.clock.monotonic()
        self._stopped.wait(min(_LONGEST_BACKOFF_SECONDS, 2.0 ** min(faults, 10)) * (1 + self._jitter()) / 2)

    def _prepare(self) -> None:
        while self._receiving.is_alive() or not self._received.empty():
            claims = self._received.get()
            while not self._received.empty() and len(claims) < _AHEAD_BATCHES * BATCH_MESSAGES:
                claims = [*claims, *self._received.get()]
            self._begin_when_possible(claims)

    def _begin_when_possible(self, claims: Sequence[Claim]) -> None:
        """Let received jobs begin. While AWS fails they are held, and no more are received.

        To put them back would cost each an attempt, and what fails then has nothing to do with them.
        """
        for faults in count(1):
            try:
                self._begin(claims)
            except Exception as fault:
                self._is_held_up = True
                self._back_off(fault, faults)
                if isinstance(fault, RETRYABLE) and not self._stopped.is_set():
                    continue
                self._give_up(claims)
            self._is_held_up = False
            return

    def _give_up(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            self._acknowledger.put(Ack(claim=claim, hidden=0 if self._stopped.is_set() else _AGAIN_SECONDS))
        self._pool.give_back(len(claims))

    def _begin(self, claims: Sequence[Claim]) -> None:
        prepared = prepare(claims, self._connection)
        slots = self._limiter.slots(len(prepared.ready))
        self._pool.give_back(len(prepared.cancelled))
        for taken in prepared.cancelled:
            self._report(taken.event(Kind.SKIPPED))
            self._acknowledger.put(Ack(claim=taken.claim))
        for taken, dead in prepared.dead:
            self._report(taken.event(Kind.FAILED, error=dead.error, reason=dead.reason))
            self._pool.put(Burial(taken=taken, dead=dead), at=self._connection.clock.monotonic())
        for taken, slot in zip(prepared.ready, slots, strict=True):
            if not taken.claim.told:
                taken.claim.told = True
                self._report(taken.event(Kind.RECEIVED))
            self._prefetched.put(taken, slot)

    def _work(self, item: Taken | Burial) -> None:
        if isinstance(item, Burial):
            self._settle.bury(item)
        else:
            self._run(item)

    def _run(self, taken: Taken) -> None:
        try:
            if not self._prefetched.may_run(taken):
                return
            taken.claim.begun = self._connection.clock.monotonic()
            verdict = self._runner.run(taken)
            taken.claim.begun = None
            self._settle.settle(taken, verdict)
        except Exception as fault:
            self._trouble(fault)
            self._acknowledger.put(Ack(claim=taken.claim, hidden=_AGAIN_SECONDS))

    def _later(self, item: Taken | Burial) -> None:
        self._pool.take(1)  # It keeps its place: where nothing can begin, or be buried, not ever more is received.
        if isinstance(item, Taken):
            self._prefetched.put(item, _AGAIN_SECONDS)
        else:
            self._pool.put(item, at=self._connection.clock.monotonic() + _AGAIN_SECONDS)

    def _trouble(self, fault: Exception) -> None:
        self._report(trouble(fault, queue=self._connection.queue))
