"""Dispatch: send jobs to their queue in batches, each delayed to its second, and retry where SQS throttled.

A queue has an SQS queue for each priority; a batch goes to one of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial, reduce

from dueline.errors import RETRYABLE, QueueNotFound
from dueline.model.job import Job
from dueline.model.message import Message, job_batches
from dueline.model.routing import MAX_DELAY_SECONDS, delay_seconds
from dueline.ports import Clock, Queue, Spread
from dueline.protocol.park import Parking

BACKOFF_SECONDS = (0.1, 0.2, 0.4, 0.8)
OUT_OF_TIME = "out of time"
PAST_RETENTION = "past its retention: it was not sent in the time that its queue allows after due"


@dataclass(frozen=True, kw_only=True, slots=True)
class Parked:
    """A job that was parked, and why."""

    job: Job
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Handed:
    """The results of jobs: each was dispatched, parked, or left `unfinished`, to be retried, because of `fault`."""

    dispatched: tuple[Job, ...] = ()
    parked: tuple[Parked, ...] = ()
    unfinished: tuple[Job, ...] = ()
    fault: str = ""

    def __add__(self, other: "Handed") -> "Handed":
        return Handed(
            dispatched=self.dispatched + other.dispatched,
            parked=self.parked + other.parked,
            unfinished=self.unfinished + other.unfinished,
            fault=self.fault or other.fault,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Dispatcher:
    """Sends jobs to one queue. `level` returns its SQS queue of a priority, `jitter` a random number from 0 to 1."""

    level: Callable[[int], Queue]
    parking: Parking
    clock: Clock
    jitter: Callable[[], float]
    spread: Spread = map
    precise: bool = False

    def hand_over(self, jobs: Sequence[Job], *, until: float) -> Handed:
        """Send each job, or park it, or leave it unfinished; begin no request after `until` (monotonic).

        What SQS refused for now is retried, with backoff and jitter.
        """
        handed = self._attempt(jobs, until)
        for pause in self._pauses(until):
            if not handed.unfinished:
                break
            self.clock.sleep(pause)
            finished = Handed(dispatched=handed.dispatched, parked=handed.parked)
            handed = finished + self._attempt(handed.unfinished, until)
        return handed

    def park(self, jobs: Sequence[Job], *, reason: str, until: float) -> Handed:
        """Park up to one batch of jobs, or leave them unfinished; begin no request after `until` (monotonic)."""
        if self.clock.monotonic() >= until:
            return Handed(unfinished=tuple(jobs), fault=OUT_OF_TIME)
        return self._park(jobs, reason)

    def _pauses(self, until: float) -> Iterator[float]:
        for seconds in BACKOFF_SECONDS:
            pause = seconds * (0.5 + self.jitter())
            if self.clock.monotonic() + pause >= until:
                return
            yield pause

    def _attempt(self, jobs: Sequence[Job], until: float) -> Handed:
        return reduce(Handed.__add__, self.spread(partial(self._batch, until=until), job_batches(jobs)), Handed())

    def _batch(self, jobs: Sequence[Job], *, until: float) -> Handed:
        if self.clock.monotonic() >= until:
            return Handed(unfinished=tuple(jobs), fault=OUT_OF_TIME)
        now = self.clock.now()
        expired = [job for job in jobs if now >= job.expires]
        later = [job for job in jobs if job.id.due - now > timedelta(seconds=MAX_DELAY_SECONDS)]
        sendable = [job for job in jobs if job not in expired and job not in later]
        return self._send(sendable, now) + self._park(expired, PAST_RETENTION) + _not_yet(later)

    def _send(self, jobs: Sequence[Job], now: datetime) -> Handed:
        if not jobs:
            return Handed()
        level, messages = self.level(jobs[0].priority), [self._message(job, now) for job in jobs]
        try:
            refusals = {refusal.index: refusal for refusal in level.send(messages)}
        except QueueNotFound as gone:
            return self._park(jobs, str(gone))
        except RETRYABLE as fault:
            return Handed(unfinished=tuple(jobs), fault=str(fault))
        sent = tuple(job for index, job in enumerate(jobs) if index not in refusals)
        left = [refusal for refusal in refusals.values() if not refusal.final]
        waiting = Handed(
            unfinished=tuple(jobs[refusal.index] for refusal in left), fault=left[0].reason if left else ""
        )
        refused = [(jobs[refusal.index], refusal.reason) for refusal in refusals.values() if refusal.final]
        parked = (self._park([job], reason) for job, reason in refused)
        return reduce(Handed.__add__, parked, Handed(dispatched=sent) + waiting)

    def _message(self, job: Job, now: datetime) -> Message:
        return Message.of(job, delay=delay_seconds(job.id.due, now=now, precise=self.precise), group=job.tenant)

    def _park(self, jobs: Sequence[Job], reason: str) -> Handed:
        if not jobs:
            return Handed()
        try:
            unparked = self.parking.park(jobs, reason=reason)
        except (QueueNotFound, *RETRYABLE) as fault:
            return Handed(unfinished=tuple(jobs), fault=f"not parked: {fault}")
        parked = tuple(Parked(job=job, reason=reason) for job in jobs if job not in unparked)
        return Handed(parked=parked, unfinished=tuple(unparked), fault="not parked: refused" if unparked else "")


def _not_yet(later: Sequence[Job]) -> Handed:
    return Handed(unfinished=tuple(later), fault=f"due in over {MAX_DELAY_SECONDS} s" if later else "")
