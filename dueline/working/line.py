"""Work one queue off: receive, prepare, run, acknowledge."""

import queue
import threading
from collections.abc import Callable, Sequence
from functools import partial

from dueline.errors import DuelineError
from dueline.message import BATCH_MESSAGES
from dueline.working.acks import Ack, Acks
from dueline.working.bury import bury
from dueline.working.claim import Claim
from dueline.working.claims import Claims
from dueline.working.event import Event, Kind, Report, trouble
from dueline.working.gate import Gate
from dueline.working.handling import Handling
from dueline.working.place import Place
from dueline.working.pool import Pool
from dueline.working.prepare import prepare, seconds_until_due
from dueline.working.received import Taken
from dueline.working.receiver import LONG_POLL_SECONDS, Receiver
from dueline.working.verdict import Again, Dead, Verdict

# A full batch is worth waiting for so long.
_PATIENCE_SECONDS = 0.02
# What waits to be prepared, together and in few requests; what cannot be prepared is not received either.
_AHEAD_BATCHES = 3
_GATE_SECONDS = 0.1
_TURN_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 20.0
_AGAIN_SECONDS = 5
_LAST_ACKS_SECONDS = 5.0


class Line:
    """The work on one queue in this process, in threads of its own. `wall` is the time in seconds since 1970."""

    def __init__(
        self,
        place: Place,
        handling: Handling,
        *,
        concurrency: int,
        report: Report,
        jitter: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._place, self._handling, self._report, self._jitter = place, handling, report, jitter
        self._wanted = min(BATCH_MESSAGES, concurrency)
        self._stopped = threading.Event()
        self._claims = Claims(place, report=report)
        self._acks = Acks(place, on_end=self._claims.end, report=report)
        self._gate = Gate(place, wall=wall, report=report)
        self._receiver = Receiver(place)
        self._pool: Pool[Taken] = Pool(concurrency, self._work, name=place.queue, now=place.clock.monotonic)
        self._received: queue.Queue[list[Claim]] = queue.Queue(maxsize=_AHEAD_BATCHES)
        self._faults = 0
        self.turned = place.clock.monotonic()
        watch = partial(self._gate.watch, self._stopped, on_change=self._heed)
        self._receiving = threading.Thread(target=self._receive, name=f"receive {place.queue}", daemon=True)
        self._preparing = threading.Thread(target=self._prepare, name=f"prepare {place.queue}", daemon=True)
        self._watching = threading.Thread(target=watch, name=f"watch {place.queue}", daemon=True)

    def start(self) -> None:
        """Begin. Raises Throttled or Unavailable when the queue's pause and rate cannot be read."""
        self._gate.read()
        self._report(Event(kind=Kind.OPENED, queue=self._place.queue))
        for part in (self._pool, self._claims, self._acks, self._receiving, self._preparing, self._watching):
            part.start()

    def stop(self) -> None:
        """Receive no more, and put back what has not begun."""
        self._stopped.set()
        for taken in self._pool.take_back():
            self._put_back(taken)

    @property
    def is_busy(self) -> bool:
        """Whether it receives, or a job runs."""
        return self._receiving.is_alive() or not self._pool.is_idle

    def finish(self) -> bool:
        """Put back what still runs, and tell SQS what it is to know; tell whether nothing was left running."""
        # A poll that is still open would receive what is put back.
        self._receiving.join(LONG_POLL_SECONDS + 1)
        self._claims.stop()
        is_done = self._pool.is_idle
        for claim in [] if is_done else self._claims.held:
            self._acks.put(Ack(claim=claim, hidden=0))
        self._acks.stop(within=_LAST_ACKS_SECONDS)
        self._report(Event(kind=Kind.CLOSED, queue=self._place.queue))
        return is_done

    def _receive(self) -> None:
        while not self._stopped.is_set():
            try:
                claims = self._turn()
            except Exception as fault:
                # Whatever it is: a thread that ends would leave a process that does nothing and says nothing.
                self._back_off(fault)
                continue
            self._claims.add(claims)
            self._pool.take(len(claims))
            if self._gate.is_limited:
                # What is received next depends on the slots that these take.
                self._begin_or_put_back(claims)
            elif claims:
                self._received.put(claims)
            else:
                self._faults = 0

    def _turn(self) -> list[Claim]:
        """Receive what there is room for, unless the gate is shut."""
        self.turned = self._place.clock.monotonic()
        room = self._pool.wait_for_room(wanted=self._wanted, patience=_PATIENCE_SECONDS, within=_TURN_SECONDS)
        most = min(room, self._gate.most()) if room else 0
        if most:
            return self._receiver.receive(most=most)
        self._stopped.wait(_GATE_SECONDS if room else 0)
        return []

    def _back_off(self, fault: Exception) -> None:
        self._trouble(fault)
        self._faults += 1
        self._stopped.wait(min(_LONGEST_BACKOFF_SECONDS, 2.0**self._faults) * (1 + self._jitter()) / 2)

    def _prepare(self) -> None:
        while True:
            claims = self._received.get()
            while not self._received.empty():
                claims = [*claims, *self._received.get()]
            self._begin_or_put_back(claims)

    def _begin_or_put_back(self, claims: Sequence[Claim]) -> None:
        try:
            self._begin(claims)
            self._faults = 0
        except Exception as fault:
            for claim in claims:
                self._acks.put(Ack(claim=claim, hidden=_AGAIN_SECONDS))
            self._back_off(fault)
            # Not before: what there is no room for is not received meanwhile.
            self._pool.give_back(len(claims))

    def _begin(self, claims: Sequence[Claim]) -> None:
        prepared = prepare(claims, self._place)
        slots = self._gate.slots(len(prepared.ready))
        self._pool.give_back(len(claims) - len(prepared.ready))
        for taken in prepared.cancelled:
            self._tell(Kind.SKIPPED, taken)
            self._acks.put(Ack(claim=taken.claim))
        for taken, dead in prepared.dead:
            self._tell(Kind.FAILED, taken, error=dead.error, reason=dead.reason)
            self._settle(taken, dead)
        for taken, slot in zip(prepared.ready, slots, strict=True):
            self._tell(Kind.RECEIVED, taken)
            self._put(taken, slot)

    def _put(self, taken: Taken, slot: float) -> None:
        """Let a job run when it is due and its slot begins, unless the queue is paused by now."""
        if self._stopped.is_set() or not self._gate.is_open:
            self._put_back(taken)
            return
        seconds = max(slot, seconds_until_due(taken, self._place))
        self._pool.put(taken, at=self._place.clock.monotonic() + seconds)

    def _heed(self) -> None:
        """Give what has not begun new slots, or put it back if the queue is paused."""
        waiting = self._pool.take_back()
        try:
            slots = self._gate.slots(len(waiting)) if self._gate.is_open else [0.0] * len(waiting)
        except DuelineError as fault:
            self._trouble(fault)
            for taken in waiting:
                self._put_back(taken)
            return
        for taken, slot in zip(waiting, slots, strict=True):
            self._put(taken, slot)

    def _work(self, taken: Taken) -> None:
        if not taken.claim.is_live(self._place.clock.monotonic()):
            taken.claim.lose(queue=taken.queue, report=self._report)
            self._claims.end(taken.claim)
            return
        try:
            self._settle(taken, self._handling.run(taken))
        except Exception as fault:
            self._trouble(fault)
            self._acks.put(Ack(claim=taken.claim, hidden=_AGAIN_SECONDS))

    def _settle(self, taken: Taken, verdict: Verdict) -> None:
        """Tell SQS what is to become of a message; bury it before it is deleted."""
        match verdict:
            case Again(seconds=seconds):
                self._acks.put(Ack(claim=taken.claim, hidden=seconds))
            case Dead() if not self._is_buried(taken, verdict):
                self._acks.put(Ack(claim=taken.claim, hidden=_AGAIN_SECONDS))
            case _:
                self._acks.put(Ack(claim=taken.claim))

    def _is_buried(self, taken: Taken, dead: Dead) -> bool:
        if not taken.claim.is_live(self._place.clock.monotonic()):
            return False
        try:
            bury(taken, dead, dead_letters=self._place.dead_letters)
        except DuelineError as fault:
            self._trouble(fault)
            return False
        return True

    def _put_back(self, taken: Taken) -> None:
        self._tell(Kind.RETURNED, taken)
        self._pool.give_back(1)
        self._acks.put(Ack(claim=taken.claim, hidden=0))

    def _tell(self, kind: Kind, taken: Taken, *, error: str = "", reason: str = "") -> None:
        self._report(
            Event(kind=kind, queue=taken.queue, job=taken.id, attempt=taken.attempt, error=error, reason=reason)
        )

    def _trouble(self, fault: Exception) -> None:
        self._report(trouble(fault, queue=self._place.queue))
