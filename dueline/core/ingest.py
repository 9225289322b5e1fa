"""Ingest: write the jobs of inbound messages into the table, and park those that could never be sent."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from dueline.core import rows
from dueline.core.dispatch import OUT_OF_TIME, ParkedJob
from dueline.core.job import JobId, Partition, Route, StoredJob
from dueline.core.message import Message, batches
from dueline.core.move import Intent, settle
from dueline.core.ports import Queue, read_all
from dueline.core.request import MAX_DELAY_SECONDS
from dueline.core.retry import Patience, RetryTimer
from dueline.core.table_writer import ORDER, TableWriter
from dueline.errors import RETRYABLE, DuelineError, InvalidJob, QueueNotFound, Throttled, Unavailable

# While a deployment adds a queue or a partition, a function may not know yet what its callers do.
PATIENT_RECEIVES = 3
_TOO_LATE = f"a direct job is due in over {MAX_DELAY_SECONDS} s, longer than SQS can hold it"
_NO_TICK = "it is not in queues.yaml, or its queue's stack is not deployed yet"


# A table that takes a thousand rows a second, and ten functions: each may write its 500 in some five seconds.
_FIRST_WAIT, _LONGEST_WAIT, _ATTEMPTS = 0.2, 2.0, 100


@dataclass(frozen=True, kw_only=True, slots=True)
class InboundMessage:
    """A message of the inbound queue, with its SQS message id, and how often it was received."""

    message_id: str
    message: Message
    receives: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class RejectedMessage:
    """A message that carries no job, and why."""

    received: InboundMessage
    reason: str


@dataclass(kw_only=True, slots=True)
class IngestResult:
    """What became of a batch.

    `failed` holds the ids of messages that SQS must bring again, `again` the jobs of those, and `faults` what went
    wrong, at whichever try. The jobs of `rows` have theirs. `moved` are the jobs of reschedules that took effect,
    `dropped` those that came to nothing. The ids of `reused` are other jobs', whose rows stay as they are.
    """

    failed: set[str] = field(default_factory=set)
    again: set[StoredJob] = field(default_factory=set)
    faults: set[str] = field(default_factory=set)
    rows: set[StoredJob] = field(default_factory=set)
    moved: set[StoredJob] = field(default_factory=set)
    dropped: set[StoredJob] = field(default_factory=set)
    reused: set[StoredJob] = field(default_factory=set)
    late: list[StoredJob] = field(default_factory=list)
    parked: list[ParkedJob] = field(default_factory=list)
    rejected: list[RejectedMessage] = field(default_factory=list)

    @property
    def written(self) -> int:
        return len(self.rows)

    def note(self, fault: DuelineError) -> None:
        self.faults.add(str(fault))


class Ingest:
    """Ingests batches of inbound messages by a `route` to the table. `jitter` returns a random number from 0 to 1.

    `rejects` returns the inbound queue's dead-letter queue, which few batches need. `is_declared` says which partitions
    certainly have ticks; `stands` is called for others, of those that no tick has read yet.
    """

    def __init__(
        self,
        route: TableWriter,
        *,
        rejects: Callable[[], Queue],
        is_declared: Callable[[Partition], bool],
        stands: Callable[[Partition], bool] = lambda _: False,
        jitter: Callable[[], float],
    ) -> None:
        self._route, self._table, self._clock, self._spread = route, route.table, route.clock, route.spread
        self._rejects, self._jitter = rejects, jitter
        self._is_declared, self._stands = is_declared, stands
        self._with_ticks: set[Partition] = set()

    def run(self, batch: Sequence[InboundMessage], *, until: float) -> IngestResult:
        """Ingest a batch, each message for itself; begin no send after `until` (monotonic).

        A message that carries no job goes to the inbound dead-letter queue with the reason. What could not be
        written, read or sent is tried again until then, with backoff, and what is done is not repeated. What is left is
        reported as failed: SQS brings it again.
        """
        done = IngestResult()
        parsed = parse(batch)
        started = self._clock.monotonic()
        seconds = max(0.0, until - started)
        patience = Patience(attempts=_ATTEMPTS, seconds=seconds, first_wait=_FIRST_WAIT, longest_wait=_LONGEST_WAIT)
        waits = RetryTimer(patience, clock=self._clock, jitter=self._jitter)
        settle_until = started + (until - started) / 2
        left = self._attempt(set(parsed.receives), parsed, done, settle_until, until)
        self._reject(parsed.rejected, done, until)
        while left and waits.wait(()):
            left = self._attempt(left, parsed, done, settle_until, until)
        done.failed |= {message_id for message_id, job in parsed.jobs.items() if job in done.again}
        return done

    def _attempt(
        self, jobs: set[StoredJob], parsed: "Parsed", done: IngestResult, settle_until: float, until: float
    ) -> set[StoredJob]:
        """Ingest those of the jobs that are not done; return which of them to try again now.

        Only time, and not another try, shows a partition that no tick reads yet.
        """
        unsettled = self._settle([each for each in parsed.intents if each.job in jobs], done, settle_until)
        done.dropped -= parsed.submitted
        here = jobs - unsettled - done.dropped
        undeliverable, unclear, unread = self._find_undeliverable(here, parsed.receives, done)
        ours = here - undeliverable.keys() - unclear.keys()
        undone = self._park(undeliverable, done, until) | self._take(ours, done, until)
        done.again -= jobs
        done.again |= unsettled | set(unclear) | undone
        return undone | unread | (unsettled if self._clock.monotonic() < settle_until else set())

    def _reject(self, rejects: Iterable[RejectedMessage], done: IngestResult, until: float) -> None:
        """Park messages that carry no job."""
        send = partial(self._reject_some, done=done, until=until)
        for rejected in self._spread(send, batches(rejects, size=lambda each: each.received.message.size)):
            done.rejected += rejected
        parked = {each.received.message_id for each in done.rejected}
        done.failed |= {each.received.message_id for each in rejects} - parked

    def _reject_some(
        self, some: Sequence[RejectedMessage], *, done: IngestResult, until: float
    ) -> list[RejectedMessage]:
        """Park a batch of messages that carry no job; return those that were parked."""
        if self._clock.monotonic() >= until:
            return []
        try:
            refusals = self._rejects().send([each.received.message.with_reason(each.reason) for each in some])
        except (QueueNotFound, Throttled, Unavailable) as fault:
            done.faults.add(str(fault))
            return []
        refused = {refusal.index for refusal in refusals}
        return [each for index, each in enumerate(some) if index not in refused]

    def _settle(self, intents: Sequence[Intent], done: IngestResult, until: float) -> set[StoredJob]:
        """Settle reschedules, each separately; return the jobs of those that are to come again."""
        unmoved, unclear = [each for each in intents if each.job not in done.moved], set[StoredJob]()
        results = self._spread(partial(self._settle_or_reason, until=until), unmoved)
        for intent, result in zip(unmoved, results, strict=True):
            if isinstance(result, str):
                unclear.add(intent.job)
                done.faults.add(result)
            else:
                (done.moved if result else done.dropped).add(intent.job)
        return unclear

    def _settle_or_reason(self, intent: Intent, *, until: float) -> bool | str:
        """Settle an intent, or return why that could not be done now."""
        if self._clock.monotonic() >= until:
            return OUT_OF_TIME
        try:
            return settle(intent, table=self._table, clock=self._clock)
        except RETRYABLE as fault:
            return str(fault)

    def _find_undeliverable(
        self, jobs: Iterable[StoredJob], receives: Mapping[StoredJob, int], done: IngestResult
    ) -> tuple[dict[StoredJob, str], dict[StoredJob, str], set[StoredJob]]:
        """Find the jobs that would never be sent; `receives` is how often the message of each was received.

        Returns these, and those of which that is not clear yet, each with the reason, and which of the latter have a
        partition whose state could not be read.

        They are direct jobs that SQS cannot hold, and jobs in a partition that no tick reads: it has neither a state
        nor a schedule. (A partition that was removed from queues.yaml has a state, and is still read.) To be sure, the
        message must have been received several times.
        """
        undeliverable, unclear, unread = dict[StoredJob, str](), dict[StoredJob, str](), set[StoredJob]()
        now = self._clock.now()
        strange = [job for job in jobs if job.id.route is Route.TABLE and not self._is_known(job.id.partition)]
        state_keys = {rows.state_key(job.id.partition) for job in strange}
        states = read_all(state_keys, table=self._table, spread=self._spread, note=done.note)
        for job in strange:
            key, reason = rows.state_key(job.id.partition), f"no tick reads {job.id.partition}: {_NO_TICK}"
            if key not in states.unread and self._has_ticks(job.id.partition, has_state=key in states.rows):
                continue
            if key in states.unread or receives[job] < PATIENT_RECEIVES:
                unclear[job] = reason
                unread |= {job} if key in states.unread else set()
            else:
                undeliverable[job] = reason
        latest = now + timedelta(seconds=MAX_DELAY_SECONDS)
        late = [job for job in jobs if job.id.route is Route.DIRECT and job.id.due > latest]
        undeliverable |= dict.fromkeys(late, _TOO_LATE)
        done.faults |= set(unclear.values())
        return undeliverable, unclear, unread

    def _is_known(self, partition: Partition) -> bool:
        return partition in self._with_ticks or self._is_declared(partition)

    def _has_ticks(self, partition: Partition, *, has_state: bool) -> bool:
        """Return whether a partition has ticks, by its state or its schedule. A positive answer is remembered."""
        if has_state or self._stands(partition):
            self._with_ticks.add(partition)
        return partition in self._with_ticks

    def _take(self, jobs: set[StoredJob], done: IngestResult, until: float) -> set[StoredJob]:
        """Take jobs to the table; return those that are to be written again."""
        written = self._route.write_new(jobs, until=until, have_rows=done.moved | done.rows)
        done.reused |= written.reused
        done.rows |= written.written
        done.late += written.late
        done.parked += written.parked
        done.faults |= written.faults
        return written.undone

    def _park(self, undeliverable: Mapping[StoredJob, str], done: IngestResult, until: float) -> set[StoredJob]:
        """Park jobs, each for its reason; return those that could not be parked."""
        again: set[StoredJob] = set()
        for job in sorted(undeliverable, key=ORDER):
            parked = self._route.dispatcher(job.id.queue).park([job], reason=undeliverable[job], until=until)
            done.parked += parked.parked
            again |= set(parked.unfinished)
            done.faults |= {parked.fault} if parked.unfinished else set()
        return again


@dataclass(kw_only=True, slots=True)
class Parsed:
    """A batch: the job of each message by its message id, the reschedules among them, and what carries no job.

    `receives` is how often each job's message was received: of several, the one that came most often counts. The
    `submitted` jobs have a message of their own, which is no reschedule's.
    """

    jobs: dict[str, StoredJob] = field(default_factory=dict)
    receives: dict[StoredJob, int] = field(default_factory=dict)
    submitted: set[StoredJob] = field(default_factory=set)
    intents: list[Intent] = field(default_factory=list)
    rejected: list[RejectedMessage] = field(default_factory=list)


def parse(batch: Iterable[InboundMessage]) -> Parsed:
    """Read the messages of a batch. Messages with one job id give one job: SQS may repeat them."""
    parsed, first = Parsed(), dict[JobId, StoredJob]()
    messages = list[tuple[InboundMessage, StoredJob, Intent | None]]()
    for received in batch:
        try:
            job, old = received.message.job(), received.message.moves()
            intent = None if old is None else Intent.of(received.message, job, old=old)
            messages.append((received, job, intent))
        except InvalidJob as error:
            parsed.rejected.append(RejectedMessage(received=received, reason=str(error)))
    intents: dict[StoredJob, Intent] = {}
    # Submissions first: their content counts when the reschedule to the same id is refused.
    for received, read, intent in sorted(messages, key=lambda each: each[2] is not None):
        job = parsed.jobs[received.message_id] = first.setdefault(read.id, read)
        parsed.receives[job] = max(received.receives, parsed.receives.get(job, 0))
        if intent is None:
            parsed.submitted.add(job)
        else:
            intents[job] = replace(intent, job=job)
    parsed.intents = list(intents.values())
    return parsed
