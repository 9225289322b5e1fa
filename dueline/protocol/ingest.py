"""Ingest: write the jobs of inbound messages into the table, and send those that a tick may have missed.

Write the rows, then read the fence of their partitions. A row due after the fence will be seen by a later tick. One
due at or before it may have been missed: it takes the late path, which reads the cancellation, then the clock, sends,
and leaves a note, lest a tick send it again. No clock decides which, so no clock can lose a job.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TypeVar

from dueline.errors import RETRYABLE, InvalidJob, QueueNotFound
from dueline.model import instant, rows
from dueline.model.job import Job, JobId, Partition, Route
from dueline.model.message import Message, batches
from dueline.model.rows import Key, Row
from dueline.ports import READ_KEYS, WRITE_ROWS, Clock, Queue, Reading, Spread, Table
from dueline.protocol.astray import Astray, Ticks, sort_out
from dueline.protocol.dispatch import Dispatcher, Handed, Parked
from dueline.protocol.move import Intent, settle_all

Item = TypeVar("Item")
_ORDER = attrgetter("id.due", "id.uid")


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    """A message of the inbound queue, with its SQS message id, and how often it was received."""

    message_id: str
    message: Message
    receives: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Rejected:
    """A message that carries no job, and why."""

    received: Received
    reason: str


@dataclass(kw_only=True, slots=True)
class Ingested:
    """What became of a batch. `failed` holds the ids of messages that SQS must bring again, `again` the jobs of
    those, and `faults` why; `moved` the jobs of reschedules that took effect, `dropped` those that came to nothing."""

    failed: set[str] = field(default_factory=set)
    again: set[Job] = field(default_factory=set)
    faults: set[str] = field(default_factory=set)
    written: int = 0
    moved: set[Job] = field(default_factory=set)
    dropped: set[Job] = field(default_factory=set)
    late: list[Job] = field(default_factory=list)
    parked: list[Parked] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


class Ingest:
    """Ingests batches of inbound messages.

    `rejects` returns the inbound queue's dead-letter queue, which few batches need; `is_declared` and
    `stands` tell which partitions have `Ticks`.
    """

    def __init__(
        self,
        *,
        table: Table,
        dispatcher: Callable[[str], Dispatcher],
        rejects: Callable[[], Queue],
        is_declared: Callable[[Partition], bool],
        stands: Callable[[Partition], bool] = lambda _: False,
        clock: Clock,
        spread: Spread = map,
    ) -> None:
        self._table = table
        self._dispatcher = dispatcher
        self._rejects = rejects
        self._ticks = Ticks(is_declared=is_declared, stands=stands)
        self._clock = clock
        self._spread = spread

    def run(self, batch: Sequence[Received], *, until: float) -> Ingested:
        """Ingest a batch, each message for itself; begin no send after `until` (monotonic).

        A message that carries no job goes to the inbound dead-letter queue with the reason. What could not be
        written, read or sent is reported as failed, not waited for: SQS brings it again.
        """
        done = Ingested()
        jobs, intents, rejects = parse(batch)
        unsettled = self._settle(intents, done, until)
        here = set(jobs.values()) - unsettled - done.dropped
        astray = self._sort_out(here, jobs, batch, done)
        ours = here - astray.parked.keys() - astray.unclear.keys()
        written, unwritten = self._write(ours, done)
        done.written = len(written)
        late, unknown = self._not_left_to_a_tick(ours - unwritten, written, done)
        done.again = unsettled | set(astray.unclear) | self._park(astray.parked, done, until)
        done.again |= unwritten | unknown | self._late_path(late, done, until)
        done.failed = {message_id for message_id, job in jobs.items() if job in done.again}
        self._reject(rejects, done, until)
        return done

    def _reject(self, rejects: Iterable[Rejected], done: Ingested, until: float) -> None:
        """Park messages that carry no job."""
        send = partial(self._reject_some, done=done, until=until)
        for rejected in self._spread(send, batches(rejects, size=lambda each: each.received.message.size)):
            done.rejected += rejected
        parked = {each.received.message_id for each in done.rejected}
        done.failed |= {each.received.message_id for each in rejects} - parked

    def _reject_some(self, some: Sequence[Rejected], *, done: Ingested, until: float) -> list[Rejected]:
        """Park a batch of messages that carry no job; return those that were parked."""
        if self._clock.monotonic() >= until:
            return []
        try:
            refusals = self._rejects().send([each.received.message.with_reason(each.reason) for each in some])
        except (QueueNotFound, *RETRYABLE) as fault:
            done.faults.add(str(fault))
            return []
        refused = {refusal.index for refusal in refusals}
        return [each for index, each in enumerate(some) if index not in refused]

    def _settle(self, intents: Sequence[Intent], done: Ingested, until: float) -> set[Job]:
        """Settle reschedules in half of the time that there is; return the jobs of those that are to come again."""
        begun = self._clock.monotonic()
        halfway = begun + (until - begun) / 2
        settled = settle_all(intents, table=self._table, clock=self._clock, spread=self._spread, until=halfway)
        done.moved, done.dropped = settled.moved, settled.dropped
        done.faults |= set(settled.unclear.values())
        return set(settled.unclear)

    def _sort_out(self, here: set[Job], jobs: Mapping[str, Job], batch: Sequence[Received], done: Ingested) -> Astray:
        receives = {each.message_id: each.receives for each in batch}
        counted: dict[Job, int] = {}
        for message_id, job in jobs.items():
            if job in here:
                counted[job] = max(receives[message_id], counted.get(job, 0))
        read = partial(self._read, done=done)
        astray = sort_out(counted, ticks=self._ticks, read=read, now=self._clock.now())
        done.faults |= set(astray.unclear.values())
        return astray

    def _park(self, astray: Mapping[Job, str], done: Ingested, until: float) -> set[Job]:
        """Park jobs, each for its reason; return those that could not be parked."""
        again: set[Job] = set()
        for job in sorted(astray, key=_ORDER):
            handed = self._dispatcher(job.id.queue).park([job], reason=astray[job], until=until)
            done.parked += handed.parked
            again |= set(handed.unfinished)
            done.faults |= {handed.fault} if handed.unfinished else set()
        return again

    def _write(self, jobs: set[Job], done: Ingested) -> tuple[set[Job], set[Job]]:
        """Write the rows of jobs that a tick is to find, or that were moved; return those written and those not."""
        now = self._clock.now()
        of_table = [(rows.job_row(job), job) for job in jobs if job.id.route is Route.TABLE and now < job.expires]
        of_table.sort(key=lambda pair: str(pair[0]["sk"]))
        by_key = {rows.key(row): job for row, job in of_table}
        pending = [row for row, job in of_table if job not in done.moved]
        write = partial(self._write_some, done=done)
        unwritten = {rows.key(row) for row in chain.from_iterable(self._spread(write, _cut(pending, WRITE_ROWS)))}
        left = {job for key, job in by_key.items() if key in unwritten}
        return set(by_key.values()) - left, left

    def _write_some(self, some: Sequence[Row], *, done: Ingested) -> Sequence[Row]:
        try:
            return self._table.write(some)
        except RETRYABLE as fault:
            done.faults.add(str(fault))
            return some

    def _not_left_to_a_tick(self, jobs: set[Job], written: set[Job], done: Ingested) -> tuple[set[Job], set[Job]]:
        """Return the jobs that no tick is sure to see, and those whose fence could not be read."""
        by_state = defaultdict[Key, list[Job]](list)
        for job in written:
            by_state[rows.state_key(job.id.partition)].append(job)
        fences = self._read(by_state, done)
        unknown = set(chain.from_iterable(by_state[key] for key in fences.unread))
        seen_later = set[Job]()
        for key, its in by_state.items():
            fence = rows.read_state(fences.rows.get(key)).fence
            seen_later.update(job for job in its if fence < instant.text(job.id.due))
        return jobs - unknown - seen_later, unknown

    def _late_path(self, late: set[Job], done: Ingested, until: float) -> set[Job]:
        """Send late jobs that are not cancelled, or park those past retention; return those left undone."""
        cancellations = self._read({rows.cancellation_key(job.id) for job in late}, done)
        undone = {job for job in late if rows.cancellation_key(job.id) in cancellations.unread}
        by_queue: dict[str, list[Job]] = defaultdict(list)
        for job in sorted(late - undone, key=_ORDER):
            if rows.cancellation_key(job.id) not in cancellations.rows:
                by_queue[job.id.queue].append(job)
        for queue, jobs in by_queue.items():
            handed = self._dispatcher(queue).hand_over(jobs, until=until)
            self._note(handed, done)
            done.late += handed.dispatched
            done.parked += handed.parked
            undone |= set(handed.unfinished)
            done.faults |= {handed.fault} if handed.unfinished else set()
        return undone

    def _note(self, handed: Handed, done: Ingested) -> None:
        """Tell the next tick what is handled. A note that is lost costs a repeat, and nothing else."""
        parked = [each.job for each in handed.parked]
        notes = [rows.handled_row(job, dispatched=True) for job in handed.dispatched if job.id.route is Route.TABLE]
        notes += [rows.handled_row(job, dispatched=False) for job in parked if job.id.route is Route.TABLE]
        list(self._spread(partial(self._write_some, done=done), _cut(notes, WRITE_ROWS)))

    def _read(self, keys: Iterable[Key], done: Ingested) -> Reading:
        readings = list(self._spread(partial(self._read_some, done=done), _cut(sorted(keys), READ_KEYS)))
        found = {key: row for reading in readings for key, row in reading.rows.items()}
        return Reading(rows=found, unread=frozenset(chain.from_iterable(reading.unread for reading in readings)))

    def _read_some(self, keys: Sequence[Key], *, done: Ingested) -> Reading:
        try:
            return self._table.read(keys)
        except RETRYABLE as fault:
            done.faults.add(str(fault))
            return Reading(unread=frozenset(keys))


def parse(batch: Iterable[Received]) -> tuple[dict[str, Job], list[Intent], list[Rejected]]:
    """Return the job of each message by its message id, the intents among them, and the messages that carry no job.

    Messages of one job, as SQS repeats them, give one and the same job.
    """
    jobs: dict[str, Job] = {}
    first: dict[JobId, Job] = {}
    intents: dict[Job, Intent] = {}
    rejected = []
    for received in batch:
        try:
            job, old = received.message.job(), received.message.moves()
            job = jobs[received.message_id] = first.setdefault(job.id, job)
            if old is not None:
                intents[job] = Intent(job=job, old=old)
        except InvalidJob as error:
            rejected.append(Rejected(received=received, reason=str(error)))
    return jobs, list(intents.values()), rejected


def _cut(items: Sequence[Item], size: int) -> Iterable[Sequence[Item]]:
    return (items[start : start + size] for start in range(0, len(items), size))
