"""Ingest: take the jobs of inbound messages to the table, and carry out the moves among them.

The inbound queue is a write buffer: it has what the table did not take, reschedules, and what was redriven. What the
table does not take now either is tried again at once: SQS would hide it for minutes, and a flood in the buffer with it.
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
from dueline.retry.patience import Patience, Waits

# A table that takes a thousand rows a second, and ten functions: each may write its 500 in some five seconds.
_FIRST_WAIT, _LONGEST_WAIT, _ATTEMPTS = 0.2, 2.0, 100


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
    """What became of a batch.

    `failed` holds the ids of messages that SQS must bring again, `again` the jobs of those, and `faults` what went
    wrong, at whichever try. The jobs of `rows` have theirs. `moved` are the jobs of reschedules that took effect,
    `dropped` those that came to nothing.
    """

    failed: set[str] = field(default_factory=set)
    again: set[Job] = field(default_factory=set)
    faults: set[str] = field(default_factory=set)
    rows: set[Job] = field(default_factory=set)
    moved: set[Job] = field(default_factory=set)
    dropped: set[Job] = field(default_factory=set)
    late: list[Job] = field(default_factory=list)
    parked: list[Parked] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    @property
    def written(self) -> int:
        return len(self.rows)

    def note(self, fault: DuelineError) -> None:
        self.faults.add(str(fault))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ends:
    """When an invocation settles no more reschedules, and when it begins no more sends (monotonic)."""

    settling: float
    sending: float


class Ingest:
    """Ingests batches of inbound messages. `jitter` returns a random number from 0 to 1.

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
        jitter: Callable[[], float],
        spread: Spread = map,
    ) -> None:
        self._table = table
        self._dispatcher = dispatcher
        self._rejects = rejects
        self._ticks = Ticks(is_declared=is_declared, stands=stands)
        self._clock = clock
        self._jitter = jitter
        self._spread = spread
        self._table_route = TableRoute(table=table, dispatcher=dispatcher, clock=clock, spread=spread)

    def run(self, batch: Sequence[Received], *, until: float) -> Ingested:
        """Ingest a batch, each message for itself; begin no send after `until` (monotonic).

        A message that carries no job goes to the inbound dead-letter queue with the reason. What could not be
        written, read or sent is tried again until then, with backoff, and what is done is not repeated. What is left is
        reported as failed: SQS brings it again.
        """
        done = Ingested()
        jobs, intents, rejects = parse(batch)
        receives = _receives(batch, jobs)
        begun, waits = self._clock.monotonic(), self._waits(until)
        ends = _Ends(settling=begun + (until - begun) / 2, sending=until)
        left = self._attempt(receives, intents, done, ends)
        self._reject(rejects, done, until)
        while left and waits.wait(()):
            left = self._attempt({job: receives[job] for job in left}, intents, done, ends)
        done.failed |= {message_id for message_id, job in jobs.items() if job in done.again}
        return done

    def _waits(self, until: float) -> Waits:
        seconds = max(0.0, until - self._clock.monotonic())
        patience = Patience(attempts=_ATTEMPTS, seconds=seconds, first_wait=_FIRST_WAIT, longest_wait=_LONGEST_WAIT)
        return Waits(patience, clock=self._clock, jitter=self._jitter)

    def _attempt(self, receives: Mapping[Job, int], intents: Sequence[Intent], done: Ingested, ends: _Ends) -> set[Job]:
        """Ingest those of the jobs that are not done; return which of them to try again now.

        Only time, and not another try, tells of a partition that no tick reads yet.
        """
        unsettled = self._settle([each for each in intents if each.job in receives], done, ends.settling)
        here = receives.keys() - unsettled - done.dropped
        astray = self._sort_out({job: receives[job] for job in here}, done)
        ours = here - astray.parked.keys() - astray.unclear.keys()
        undone = self._park(astray.parked, done, ends.sending) | self._take(ours, done, ends.sending)
        done.again -= receives.keys()
        done.again |= unsettled | set(astray.unclear) | undone
        return undone | astray.unread | (unsettled if self._clock.monotonic() < ends.settling else set())

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
        """Settle reschedules; return the jobs of those that are to come again."""
        unmoved = [each for each in intents if each.job not in done.moved]
        settled = settle_all(unmoved, table=self._table, clock=self._clock, spread=self._spread, until=until)
        done.moved |= settled.moved
        done.dropped |= settled.dropped
        done.faults |= set(settled.unclear.values())
        return set(settled.unclear)

    def _sort_out(self, receives: Mapping[Job, int], done: Ingested) -> Astray:
        read = partial(read_all, table=self._table, spread=self._spread, note=done.note)
        astray = sort_out(receives, ticks=self._ticks, read=read, now=self._clock.now())
        done.faults |= set(astray.unclear.values())
        return astray

    def _take(self, jobs: set[Job], done: Ingested, until: float) -> set[Job]:
        """Take jobs to the table; return those that are to be taken again."""
        taken = self._table_route.take(jobs, until=until, have_rows=done.moved | done.rows)
        done.rows |= taken.written
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


def _receives(batch: Sequence[Received], jobs: Mapping[str, Job]) -> dict[Job, int]:
    """Return how often the message of each job was received; of its messages, the one that came most often counts."""
    counted: dict[Job, int] = {}
    for each in batch:
        job = jobs.get(each.message_id)
        if job is not None:
            counted[job] = max(each.receives, counted.get(job, 0))
    return counted


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
