"""Overlap: of a schedule whose overlap is `skip`, one job runs at a time, over crashes and retries.

A job takes its schedule's lock before its handler begins, and has it until it is done or dead, between its attempts
too. The lock is always held for longer than the claim on the job's message: when a worker dies, both expire.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import isfinite

from dueline.errors import RETRYABLE
from dueline.model.work_settings import LEAST_VISIBILITY_TIMEOUT
from dueline.worker.claim import Claim
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.received import ReceivedMessage
from dueline.worker.verdict import Again, Dead, Done, Held, Skipped, Verdict
from dueline.worker.watch.event import Kind, Report, trouble

# Clocks of workers differ by a second or so, and all are at most as far as AWS's own.
_MARGIN_SECONDS = 5.0
# A job that is to be tried again is received within so long, or others may go first.
_RECEIVED_WITHIN_SECONDS = 60.0
_CHECKS = 10
ANOTHER_RUNS = "another job of its schedule has not ended"


@dataclass(kw_only=True, slots=True, eq=False)
class _Lock:
    """The lock that a job of this process has. `changing` is held while it is written.

    `outlives` is up to when, on the monotonic clock, a claim may last that it outlives.
    """

    schedule: str
    job: str
    claim: Claim
    outlives: float
    is_over: bool = False
    changing: threading.Lock = field(default_factory=threading.Lock)


class Overlap:
    """Lets a job of a schedule run, or skips it while another has the lock. Other jobs run as they are.

    Locks are renewed in a thread that lives while there are some.
    """

    def __init__(self, connection: QueueConnection, *, report: Report) -> None:
        self._connection, self._report = connection, report
        self._held: set[_Lock] = set()
        self._changed = threading.Condition()
        self._is_kept = False

    def run(self, received: ReceivedMessage, handle: Callable[[ReceivedMessage], Verdict]) -> Verdict:
        """Return how `handle` ended, or Skipped or Held: then it did not begin."""
        job = received.job
        if job is None or job.schedule is None or not job.exclusive:
            return handle(received)
        lock = _Lock(schedule=job.schedule, job=str(job.id), claim=received.claim, outlives=received.claim.visible)
        try:
            now, until = self._connection.clock.now(), self._until(lock)
            if not self._connection.locks.take(lock.schedule, job=lock.job, now=now, until=until):
                return Skipped()
        except RETRYABLE as fault:
            held = Held(error=type(fault).__name__, reason=f"its schedule's lock could not be taken: {fault}")
            self._report(received.event(Kind.TROUBLE, error=held.error, reason=held.reason))
            return held
        self._keep(lock)
        verdict = handle(received)
        self._let_go(lock, verdict)
        return verdict

    def renew(self) -> None:
        """Hold each lock for longer than the claim on its job's message; let go of those whose claim is lost."""
        now = self._connection.clock.monotonic()
        for lock in self._locks():
            if not lock.claim.is_live(now):
                self._forget(lock)
            elif lock.claim.visible > lock.outlives:
                self._renew(lock)

    def _renew(self, lock: _Lock) -> None:
        with lock.changing:
            if lock.is_over:
                return
            outlives = lock.claim.visible
            try:
                if self._connection.locks.renew(lock.schedule, job=lock.job, until=self._until(lock)):
                    lock.outlives = outlives
                    return
            except Exception as fault:
                # The next look tries again: what is written now holds for half of a visibility timeout.
                self._trouble(lock, fault, "its schedule's lock was not renewed")
                return
        self._forget(lock)
        self._trouble(lock, RuntimeError(ANOTHER_RUNS), "its schedule's lock is another's")

    def _let_go(self, lock: _Lock, verdict: Verdict) -> None:
        """Free a lock, or hold it until the job's next attempt; leave it where that may run elsewhere by now."""
        self._forget(lock)
        locks, clock = self._connection.locks, self._connection.clock
        with lock.changing:
            lock.is_over = True
        if not lock.claim.is_live(clock.monotonic()):
            return
        try:
            match verdict:
                case Again(seconds=seconds):
                    until = clock.now() + timedelta(seconds=seconds + _RECEIVED_WITHIN_SECONDS)
                    locks.renew(lock.schedule, job=lock.job, until=until)
                case Done() | Dead():
                    locks.free(lock.schedule, job=lock.job)
        except Exception as fault:
            self._trouble(lock, fault, "its schedule's lock was not let go, and expires")

    def _until(self, lock: _Lock) -> datetime:
        """Return up to when a lock is to be held, so that it outlives its job's claim."""
        clock, visible = self._connection.clock, lock.claim.visible
        # A Lambda function's messages are hidden for as long as their queue says.
        hidden = self._connection.settings.visibility_timeout
        seconds = visible - clock.monotonic() if isfinite(visible) else hidden
        return clock.now() + timedelta(seconds=seconds + _MARGIN_SECONDS)

    def _keep(self, lock: _Lock) -> None:
        if not isfinite(lock.outlives):
            return
        with self._changed:
            self._held.add(lock)
            if not self._is_kept:
                self._is_kept = True
                name = f"locks {self._connection.queue}"
                threading.Thread(target=self._run, name=name, daemon=True).start()

    def _forget(self, lock: _Lock) -> None:
        with self._changed:
            self._held.discard(lock)
            self._changed.notify_all()

    def _locks(self) -> list[_Lock]:
        with self._changed:
            return list(self._held)

    def _run(self) -> None:
        every = min(LEAST_VISIBILITY_TIMEOUT, self._connection.settings.visibility_timeout) / _CHECKS
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._held, timeout=every)
                if not self._held:
                    self._is_kept = False
                    return
            self.renew()

    def _trouble(self, lock: _Lock, fault: Exception, what: str) -> None:
        self._report(trouble(fault, queue=self._connection.queue, job=lock.job, what=what))
