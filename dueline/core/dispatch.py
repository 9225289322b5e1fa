"""Dispatch: send jobs to their queue. What can *never* be sent is parked, with the reason; all else is retried.

That is a queue that is gone, content that SQS refuses, a row that cannot be read, a job past its retention.
"""

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial, reduce

from dueline.core import rows
from dueline.core.job import StoredJob
from dueline.core.message import BATCH_BYTES, Message, escaped, job_batches
from dueline.core.ports import Clock, ParallelMap, Queue, Table
from dueline.core.request import GUARD, MAX_DELAY_SECONDS, delay_seconds
from dueline.core.rows import Row
from dueline.errors import RETRYABLE, QueueNotFound, Throttled, Unavailable


@dataclass(frozen=True, kw_only=True, slots=True)
class Parking:
    """Parks jobs in the dead-letter queue of dispatches, and notes it in the table for look-ups, before it does.

    After a crash in between a job is parked once more, and no look-up ever calls a parked job dispatched.
    """

    table: Table
    dead_letters: Queue
    clock: Clock

    def park(self, jobs: Sequence[StoredJob], *, reason: str) -> dict[StoredJob, str]:
        """Park up to one batch of jobs; return those that were not parked, to be retried, each with why.

        Raises QueueNotFound, Throttled or Unavailable: then all of them are to be retried.
        """
        now = self.clock.now()
        notes = {rows.parked_key(job.id): rows.parked_row(rows.job_key(job.id), reason=reason, at=now) for job in jobs}
        unwritten = {rows.key(row) for row in self.table.write(list(notes.values()))}
        noted = [job for job in jobs if rows.parked_key(job.id) not in unwritten]
        refusals = self._send([dead_letter_of(job).with_reason(reason) for job in noted])
        refused = {noted[index]: why for index, why in refusals.items()}
        return dict.fromkeys(set(jobs) - set(noted), "its row for look-ups was not written") | refused

    def park_row(self, row: Row, *, reason: str) -> None:
        """Park a row that cannot be read, without a note where the key of that would be too long. Raises as `park`."""
        prefix = rows.prefix_and_kind(str(row["sk"]))[0]
        note = rows.parked_row(rows.key(row), reason=reason, at=self.clock.now())
        if rows.has_room(prefix) and self.table.write([note]):
            raise Unavailable("its row for look-ups was not written")
        refusals = self._send([_dead_letter_of_row(row).with_reason(reason)])
        if refusals:
            raise Unavailable(refusals[0])

    def _send(self, messages: Sequence[Message]) -> dict[int, str]:
        """Send letters; return why some were refused, by their index."""
        return {refusal.index: refusal.reason for refusal in self.dead_letters.send(messages)} if messages else {}


def dead_letter_of(job: StoredJob) -> Message:
    """Return a job as a message that SQS accepts: with its row as JSON, and no id, if its payload is too large."""
    message = Message.of(job)
    message = replace(message, body=escaped(message.body))
    return message if message.sent_bytes <= BATCH_BYTES else _dead_letter_of_row(rows.job_row(job))


def _dead_letter_of_row(row: Row) -> Message:
    """Return a row as JSON that SQS accepts, bytes in base64; too large as text, compressed: it has 400 KB at most."""
    text = json.dumps(dict(row), default=_text_of, ensure_ascii=False)
    message = Message(body=escaped(text))
    if message.sent_bytes <= BATCH_BYTES:
        return message
    named: Mapping[str, str] = {"pk": str(row["pk"]), "sk": str(row["sk"])}
    packed = _text_of(zlib.compress(text.encode()))
    return Message(body=json.dumps({**named, "note": "zlib_base64 is the whole row as JSON", "zlib_base64": packed}))


def _text_of(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


# The sweep: a wave goes out by the fraction of the second of its due times.
SWEEP_SECONDS = 1.0
# How far apart the fractions of a batch may be: it waits for its last.
_SPAN = timedelta(milliseconds=50)
# A clock that is slewed while a batch waits is past the guard all the same: one that just is not costs a whole second.
_PAST_THE_GUARD = GUARD + timedelta(milliseconds=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Departure:
    """A batch, and how many seconds after its wave began it leaves: 0 is at once."""

    jobs: Sequence[StoredJob]
    after: float = 0.0


def sweep(jobs: Iterable[StoredJob], *, now: datetime) -> list[Departure]:
    """Return the batches of a wave that begins now, in the order in which they leave, all within a second.

    Each leaves 21 ms after the fractions of the second of its jobs, which are within 50 ms of each other. Sent then
    with whole seconds, a job is visible 20 to 71 ms after it is due. What is up to 50 ms past leaves at once.
    """

    def phase(job: StoredJob) -> timedelta:
        return (job.id.due + _PAST_THE_GUARD + _SPAN - now) % timedelta(seconds=SWEEP_SECONDS) - _SPAN

    cut = job_batches(jobs, by=phase, together=lambda first, job: phase(job) - phase(first) <= _SPAN)
    each = [Departure(jobs=batch, after=max(0.0, phase(batch[-1]).total_seconds())) for batch in cut]
    return sorted(each, key=lambda departure: departure.after)


BACKOFF_SECONDS = (0.1, 0.2, 0.4, 0.8)
OUT_OF_TIME = "out of time"
_NOT_YET = f"due in over {MAX_DELAY_SECONDS} s"
PAST_RETENTION = "past its retention: it was not sent in the time that its queue allows after due"


@dataclass(frozen=True, kw_only=True, slots=True)
class ParkedJob:
    """A job that was parked, and why."""

    job: StoredJob
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class DispatchResult:
    """The results of jobs: each was dispatched, parked, or left `unfinished`, to be retried, because of `fault`.

    `down` are the priorities whose SQS queue failed. `is_parking_down`: a job could not be parked.
    """

    dispatched: tuple[StoredJob, ...] = ()
    parked: tuple[ParkedJob, ...] = ()
    unfinished: tuple[StoredJob, ...] = ()
    fault: str = ""
    down: frozenset[int] = frozenset()
    is_parking_down: bool = False

    def __add__(self, other: "DispatchResult") -> "DispatchResult":
        return DispatchResult(
            dispatched=self.dispatched + other.dispatched,
            parked=self.parked + other.parked,
            unfinished=self.unfinished + other.unfinished,
            fault=self.fault or other.fault,
            down=self.down | other.down,
            is_parking_down=self.is_parking_down or other.is_parking_down,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Dispatcher:
    """Sends jobs to one queue. `level` returns its SQS queue of a priority, `jitter` a random number from 0 to 1.

    `on_dispatched` gets what was sent, at once: one pass over a partition can take longer than a minute.
    """

    level: Callable[[int], Queue]
    parking: Parking
    clock: Clock
    jitter: Callable[[], float]
    spread: ParallelMap = map
    precise: bool = False
    on_dispatched: Callable[[Sequence[StoredJob]], None] = lambda _: None

    def dispatch(
        self, jobs: Sequence[StoredJob], *, until: float, swept_from: datetime | None = None
    ) -> DispatchResult:
        """Send each job, or park it, or leave it unfinished; begin no request after `until` (monotonic).

        Jobs due at `swept_from` or later go in a sweep, which takes a second, unless there is less, or the queue is
        precise: its workers wait by themselves. All others go at once, and so does what SQS refused for now: it is
        retried, with backoff and jitter.
        """
        result = self._attempt(self._departures(jobs, until, swept_from), until)
        for pause in self._pauses(until):
            if not result.unfinished:
                break
            self.clock.sleep(pause)
            finished = DispatchResult(dispatched=result.dispatched, parked=result.parked)
            result = finished + self._attempt(_at_once(result.unfinished), until)
        self.on_dispatched(result.dispatched)
        return result

    def park(self, jobs: Sequence[StoredJob], *, reason: str, until: float) -> DispatchResult:
        """Park up to one batch of jobs, or leave them unfinished; begin no request after `until` (monotonic)."""
        if self.clock.monotonic() >= until:
            return DispatchResult(unfinished=tuple(jobs), fault=OUT_OF_TIME)
        return self._park(jobs, reason)

    def _pauses(self, until: float) -> Iterator[float]:
        for seconds in BACKOFF_SECONDS:
            pause = seconds * (0.5 + self.jitter())
            if self.clock.monotonic() + pause >= until:
                return
            yield pause

    def _departures(self, jobs: Sequence[StoredJob], until: float, swept_from: datetime | None) -> list[Departure]:
        if swept_from is None or self.precise or self.clock.monotonic() + SWEEP_SECONDS >= until:
            return _at_once(jobs)
        later = [job for job in jobs if job.id.due >= swept_from]
        return _at_once([job for job in jobs if job.id.due < swept_from]) + sweep(later, now=self.clock.now())

    def _attempt(self, departures: Sequence[Departure], until: float) -> DispatchResult:
        leave = partial(self._leave, began=self.clock.monotonic(), until=until)
        return reduce(DispatchResult.__add__, self.spread(leave, departures), DispatchResult())

    def _leave(self, departure: Departure, *, began: float, until: float) -> DispatchResult:
        wait = began + departure.after - self.clock.monotonic()
        if wait > 0:
            self.clock.sleep(wait)
        return self._batch(departure.jobs, until=until)

    def _batch(self, jobs: Sequence[StoredJob], *, until: float) -> DispatchResult:
        if self.clock.monotonic() >= until:
            return DispatchResult(unfinished=tuple(jobs), fault=OUT_OF_TIME)
        now = self.clock.now()
        expired = [job for job in jobs if now >= job.expires]
        later = [job for job in jobs if job.id.due + GUARD - now > timedelta(seconds=MAX_DELAY_SECONDS)]
        sendable = [job for job in jobs if job not in expired and job not in later]
        waiting = DispatchResult(unfinished=tuple(later), fault=_NOT_YET if later else "")
        return self._send(sendable, now) + self._park(expired, PAST_RETENTION) + waiting

    def _send(self, jobs: Sequence[StoredJob], now: datetime) -> DispatchResult:
        if not jobs:
            return DispatchResult()
        level, messages = self.level(jobs[0].priority), [self._message(job, now) for job in jobs]
        down = frozenset({jobs[0].priority})
        try:
            refusals = {refusal.index: refusal for refusal in level.send(messages)}
        except QueueNotFound as gone:
            parked = self._park(jobs, str(gone))
            return replace(parked, down=down) if parked.unfinished else parked
        except RETRYABLE as fault:
            return DispatchResult(unfinished=tuple(jobs), fault=str(fault), down=down)
        sent = tuple(job for index, job in enumerate(jobs) if index not in refusals)
        left = [refusal for refusal in refusals.values() if not refusal.final]
        waiting = DispatchResult()
        if left:
            unfinished = tuple(jobs[refusal.index] for refusal in left)
            waiting = DispatchResult(unfinished=unfinished, fault=left[0].reason, down=down)
        refused = [(jobs[refusal.index], refusal.reason) for refusal in refusals.values() if refusal.final]
        each_parked = (self._park([job], reason) for job, reason in refused)
        return reduce(DispatchResult.__add__, each_parked, DispatchResult(dispatched=sent) + waiting)

    def _message(self, job: StoredJob, now: datetime) -> Message:
        return Message.of(job, delay=delay_seconds(job.id.due, now=now, precise=self.precise), group=job.tenant)

    def _park(self, jobs: Sequence[StoredJob], reason: str) -> DispatchResult:
        if not jobs:
            return DispatchResult()
        try:
            unparked = self.parking.park(jobs, reason=reason)
        except (QueueNotFound, Throttled, Unavailable) as fault:
            return DispatchResult(unfinished=tuple(jobs), fault=f"not parked: {fault}", is_parking_down=True)
        parked = tuple(ParkedJob(job=job, reason=reason) for job in jobs if job not in unparked)
        why = f"not parked: {next(iter(unparked.values()))}" if unparked else ""
        return DispatchResult(parked=parked, unfinished=tuple(unparked), fault=why, is_parking_down=bool(unparked))


def _at_once(jobs: Sequence[StoredJob]) -> list[Departure]:
    return [Departure(jobs=batch) for batch in job_batches(jobs)]
