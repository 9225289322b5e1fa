"""Ingest: take the jobs of inbound messages to the table, and carry out the moves among them.

The inbound queue is a write buffer: it has what the table did not take, reschedules, and what was redriven.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from dueline.errors import RETRYABLE, DuelineError, InvalidJob, QueueNotFound
from dueline.model.job import Job, JobId, Partition
from dueline.model.message import Message, batches
from dueline.ports import Clock, Queue, Spread, Table
from dueline.protocol.astray import Astray, Ticks, sort_out
from dueline.protocol.dispatch import Dispatcher, Parked
from dueline.protocol.move import Intent, settle_all
from dueline.protocol.table_route import ORDER, TableRoute, read_all


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

    def note(self, fault: DuelineError) -> None:
        self.faults.add(str(fault))


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
        self._table_route = TableRoute(table=table, dispatcher=dispatcher, clock=clock, spread=spread)

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
        done.again = unsettled | set(astray.unclear) | self._park(astray.parked, done, until)
        done.again |= self._take(ours, done, until)
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
        read = partial(read_all, table=self._table, spread=self._spread, note=done.note)
        astray = sort_out(counted, ticks=self._ticks, read=read, now=self._clock.now())
        done.faults |= set(astray.unclear.values())
        return astray

    def _take(self, jobs: set[Job], done: Ingested, until: float) -> set[Job]:
        """Take jobs to the table; return those that are to be taken again."""
        taken = self._table_route.take(jobs, until=until, moved=done.moved)
        done.written = len(taken.written)
        done.late += taken.late
        done.parked += taken.parked
        done.faults |= taken.faults
        return taken.undone

    def _park(self, astray: Mapping[Job, str], done: Ingested, until: float) -> set[Job]:
        """Park jobs, each for its reason; return those that could not be parked."""
        again: set[Job] = set()
        for job in sorted(astray, key=ORDER):
            handed = self._dispatcher(job.id.queue).park([job], reason=astray[job], until=until)
            done.parked += handed.parked
            again |= set(handed.unfinished)
            done.faults |= {handed.fault} if handed.unfinished else set()
        return again


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
