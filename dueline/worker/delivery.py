"""A delivery of a job: the message, the job as its handler gets it, what becomes of it, retries, and events."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from logging import DEBUG, INFO, WARNING
from typing import Any, ClassVar, Self

from dueline.core import queue_settings
from dueline.core.job import State, StoredJob
from dueline.core.message import AGAIN, ATTEMPTS, ERROR, ID, KIND, REASON, STACK, Message
from dueline.core.ports import Pointer, Queue, QueueMessage
from dueline.core.queue_settings import LONGEST_HIDDEN_SECONDS, MOST_RECEIVES, RetryPolicy, WorkSettings
from dueline.core.text import name_of, shown, stack_of, text_of
from dueline.errors import DuelineError, InvalidJob, Unavailable

# Between the look at the clock and the moment at which SQS acts.
_MARGIN_SECONDS = 0.2
_MOST_FACTOR = 100


class EventKind(StrEnum):
    """What happened: to a queue in this process, to a message, or to the schedules in the code.

    `level` is that of its log line; `counts` says what Prometheus counts of it, if it does.
    """

    level: int
    counts: str

    def __new__(cls, value: str, level: int, counts: str = "") -> Self:
        kind = str.__new__(cls, value)
        kind._value_, kind.level, kind.counts = value, level, counts
        return kind

    OPENED = "opened", INFO  # this process begins to process the queue
    CLOSED = "closed", INFO  # it has ended
    RECEIVED = "received", DEBUG, "Jobs that were received."
    STARTED = "started", DEBUG  # its handler begins
    SUCCEEDED = "succeeded", INFO, "Jobs whose handler returned."
    RETRIED = "retried", WARNING, "Jobs that failed and went back into their queue."
    FAILED = "failed", WARNING, "Jobs that went into the dead-letter queue."
    SKIPPED = "skipped", DEBUG, "Jobs that were skipped because they were cancelled."
    OVERLAPPED = "overlapped", INFO, "Jobs that were skipped because another job of their schedule had not ended."
    RETURNED = "returned", DEBUG, "Jobs that were put back before their handler ran."
    LOST = "lost", WARNING, "Jobs whose claim was lost, so that they were not acknowledged."
    TROUBLE = "trouble", WARNING, "Requests to AWS that failed for good."
    CHANGED = "changed", INFO  # the queue's published settings have changed, and are used from now on
    DECLARED = "declared", INFO  # a schedule in the code is as it is there


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """What happened to a job of a queue, never its payload. Times are in seconds.

    The job is of the kind `job_kind`, and was late by at least `lateness`. `kinds` are those for which the queue has
    handlers, when it is opened. `stack` is that of the error, with its frames.
    """

    kind: EventKind
    queue: str
    job: str = ""
    job_kind: str = ""
    kinds: tuple[str, ...] = ()
    attempt: int = 0
    lateness: float | None = None
    duration: float | None = None
    delay: int | None = None
    error: str = ""
    reason: str = ""
    stack: str = field(default="", compare=False)


Report = Callable[[Event], None]


def error_event(fault: BaseException, *, queue: str, job: str = "", job_kind: str = "", what: str = "") -> Event:
    """Return the event that reports a fault: by its text, and by its type and stack where it is none of Dueline's."""
    text, is_own = text_of(fault), isinstance(fault, DuelineError)
    reason = text if is_own else f"{name_of(fault)}: {text}"
    reason = f"{what}: {reason}" if what else reason
    stack = "" if is_own else stack_of(fault)
    return Event(kind=EventKind.TROUBLE, queue=queue, job=job, job_kind=job_kind, reason=reason, stack=stack)


@dataclass(frozen=True, kw_only=True, slots=True)
class Retries:
    """How the jobs of a handler are retried. What is not given is as the queue's retry policy in queues.yaml says.

    A job has `attempts` in all. It waits `first` after the first one, each time `factor` times as long, and `most` at
    most: seconds, rounded up to whole ones, or timedeltas. Delays that grow have jitter: each is between half of its
    length and all of it. Without a factor, they grow as the policy's do. Raises ValueError.
    """

    attempts: int | None = None
    first: float | timedelta | None = None
    factor: float | None = None
    most: float | timedelta | None = None

    def __post_init__(self) -> None:
        if self.attempts is not None and not (type(self.attempts) is int and 1 <= self.attempts <= MOST_RECEIVES):
            raise ValueError(f"attempts is {shown(self.attempts)}: it must be a whole number from 1 to {MOST_RECEIVES}")
        if self.factor is not None and not (type(self.factor) in (int, float) and 1 <= self.factor <= _MOST_FACTOR):
            raise ValueError(f"factor is {shown(self.factor)}: it must be a number from 1 to {_MOST_FACTOR}")
        for name in ("first", "most"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, math.ceil(checked_seconds(name, getattr(self, name), least=1)))
        if self.most is not None and self.first is not None and self.most < self.first:  # type: ignore[operator]
            raise ValueError(f"most is {self.most} seconds: it must be at least first, which is {self.first}")

    def attempts_of(self, settings: WorkSettings) -> int:
        """Return how many attempts a job has: SQS itself moves a message after `max_receives`."""
        return settings.attempts if self.attempts is None else min(self.attempts, settings.max_receives)

    def delay_after(self, attempt: int, *, policy: RetryPolicy, jitter: float) -> int:
        """Return the seconds to wait before the next attempt, after `attempt` failed ones; `jitter` is 0 to 1.

        >>> retries = Retries(first=2, factor=3, most=60)
        >>> [retries.delay_after(attempt, policy=RetryPolicy(), jitter=1) for attempt in range(1, 6)]
        [2, 6, 18, 54, 60]
        """
        first, most = self._limits(policy)
        if self.factor is None:
            attempts = self.attempts or policy.attempts
            longer = replace(policy, attempts=attempts, delay=first, max_delay=most)
            return longer.delay_after(attempt, jitter=jitter)
        # By logarithms: a float has no room for a high power.
        is_longest = math.log(first) + (attempt - 1) * math.log(self.factor) >= math.log(most)
        whole = most if is_longest else math.ceil(first * self.factor ** (attempt - 1))
        return max(1, round(whole / 2 * (1 + jitter))) if attempt > 1 and self.factor > 1 else whole

    def _limits(self, policy: RetryPolicy) -> tuple[int, int]:
        """Return the first and the longest delay. What is given here outweighs what the policy has of the other."""
        first: Any = self.first
        most: Any = self.most
        if most is None:
            most = max(policy.max_delay, first or 0)
        return (min(policy.delay, most) if first is None else first), most


BY_POLICY = Retries()


def checked_seconds(name: str, value: object, *, least: float) -> float:
    """Return seconds that a caller gives as a number or a timedelta. Raises ValueError beyond what SQS can hide."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    is_number = type(seconds) is int or isinstance(seconds, float)
    if is_number and least <= seconds <= LONGEST_HIDDEN_SECONDS:  # type: ignore[operator]
        return float(seconds)  # type: ignore[arg-type]
    must = f"it must be from {least:g} to {LONGEST_HIDDEN_SECONDS} seconds, or a timedelta"
    raise ValueError(f"{name} is {shown(value)}: {must}")


class Retry(Exception):
    """Raise in a handler to retry the job after `delay`: seconds or a timedelta, rounded up to whole seconds.

    Without a delay, the job waits as the queue's retry policy says. The attempt counts: after the last one, the job
    goes to the dead-letter queue instead. A retry never comes early. SQS hides a message for at most 12 hours after it
    was received, and Dueline keeps 10 minutes of them in reserve. A longer delay raises ValueError. If the delay is
    longer than what is left of that time when the handler ends, the job goes to the dead-letter queue.
    """

    # A subclass may set it, in its body or without this constructor.
    delay: float | timedelta | None = None

    def __init__(self, delay: float | timedelta | None = None, reason: str = "") -> None:
        super().__init__(reason or "the handler requested it")
        if delay is not None:
            self.delay = checked_seconds("delay", delay, least=0)


def seconds_of(retry: Retry) -> float | None:
    """Return the delay of a Retry in seconds. Raises ValueError where a subclass has set an impossible one itself."""
    return None if retry.delay is None else checked_seconds("delay", retry.delay, least=0)


class Discard(Exception):
    """Raise in a handler when the job can never succeed: it goes to the dead-letter queue at once, with this reason."""


class Interrupted(Exception):
    """With `once`: an earlier attempt at the job began, and is not known to have ended."""

    def __init__(self) -> None:
        began = "an earlier attempt began and is not known to have ended"
        super().__init__(f"{began}: whether it had its effect is unknown")


class NoHandler(Exception):
    """No handler of this process takes the job. It is no failure of the job: another process may have one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JobVerdict:
    """What becomes of a job: the event to report, the state to record, and its error's type, reason and stack."""

    kind: ClassVar[EventKind]
    state: ClassVar[State]
    error: str = ""
    reason: str = ""
    stack: str = field(default="", compare=False)


class Succeeded(JobVerdict):
    """The job succeeded: its message is deleted."""

    kind, state = EventKind.SUCCEEDED, State.SUCCEEDED


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryLater(JobVerdict):
    """The job is retried after so many seconds."""

    kind, state = EventKind.RETRIED, State.DISPATCHED
    seconds: int


class DeadLettered(JobVerdict):
    """The job goes to the dead-letter queue."""

    kind, state = EventKind.FAILED, State.FAILED


class Deferred(JobVerdict):
    """The job could not begin, because AWS failed. The worker keeps it until it can; that is not an attempt."""

    kind, state = EventKind.TROUBLE, State.DISPATCHED


class Skipped(JobVerdict):
    """The job does not run, because another one of its schedule has not ended: its message is deleted."""

    kind, state = EventKind.OVERLAPPED, State.SKIPPED


def verdict_on(
    error: BaseException,
    *,
    attempt: int,
    settings: WorkSettings,
    jitter: float,
    held: float = 0.0,
    retries: Retries = BY_POLICY,
) -> JobVerdict:
    """Return what happens to a job whose handler, which has these `retries`, raised an error in this attempt.

    `jitter`, 0 to 1, spreads delays that grow exponentially. The job was received `held` seconds ago.
    """
    kind, reason = name_of(error), text_of(error)
    if isinstance(error, Discard):
        return DeadLettered(error=kind, reason=reason)
    if attempt >= (attempts := retries.attempts_of(settings)):
        return DeadLettered(error=kind, reason=f"attempt {attempt} of {attempts} failed: {reason}")
    left = max(0, int(LONGEST_HIDDEN_SECONDS - held))
    delay = seconds_of(error) if isinstance(error, Retry) else None
    if delay is None:
        seconds = retries.delay_after(attempt, policy=settings.retry, jitter=jitter)
        return RetryLater(seconds=min(seconds, left), error=kind, reason=reason)
    if delay > left:
        limit = f"SQS hides a message for {queue_settings.MAX_HIDDEN_SECONDS} s in all from its receipt, less a reserve"
        why = f"Retry requested {delay:g} s, of which {left} are left: {limit}: {reason}"
        return DeadLettered(error=kind, reason=why)
    return RetryLater(seconds=math.ceil(delay), error=kind, reason=reason)


def lateness_of(due: datetime, *, now: datetime, behind: float = 0.0) -> float:
    """Return how many seconds late a job begins `now`, at least, by a clock up to `behind` seconds behind AWS's own.

    It is below 0 for a job that certainly begins early: SQS delivers none before.

    >>> from datetime import UTC, timedelta
    >>> due = datetime(2026, 11, 21, tzinfo=UTC)
    >>> [lateness_of(due, now=due + timedelta(seconds=seconds), behind=0.75) for seconds in (-1, -0.5, 0.5)]
    [-0.25, 0.0, 0.5]
    """
    seconds = (now - due).total_seconds()
    return seconds if seconds >= 0 else min(0.0, seconds + behind)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ack:
    """What SQS is to do with a message: hide it for `hidden` seconds, or delete it. It waits until `at` for others.

    `returns`: the message goes back while its handler still runs, and from then on is another worker's.
    """

    hidden: int | None
    at: float
    returns: bool = False


@dataclass(kw_only=True, slots=True, eq=False)
class ReceivedMessage:
    """A message that this process received, from the level of its queue that `level` counts from 0.

    Times are on the monotonic clock, counted from before the request. The message is visible again at `visible` at the
    earliest. `tried` is when its renewal was last tried. `started` is when its handler began, while that runs. `lost`:
    another worker may have received the message, so it is never acknowledged here. `ack`: it is settled.
    `slot_of`: when the rate was set under which its job has a slot.

    Once `read`, it has its `job`, None if it was not sent by Dueline. `cancellation_read` is when it was last looked up
    whether the job is `cancelled`. `dead`: no handler is to run any more, it goes into the dead-letter queue.
    """

    queue: str
    arrival: QueueMessage
    level: int
    received: float
    visible: float
    started: float | None = None
    tried: float = -math.inf
    slot_of: str | None = None
    lost: bool = False
    ack: Ack | None = None
    job: StoredJob | None = None
    cancellation_read: float = -math.inf
    cancelled: bool = False
    dead: DeadLettered | None = None

    def read(self) -> Self:
        """Read the job that the message carries; return the message.

        It is dead when it has Dueline's attributes and cannot be read, or carries a job of another queue: IAM lets
        workers read the cancellations of their own queue only, and refuses a request for several as a whole.
        """
        message = self.arrival.message
        if ID not in message.attributes:
            return self
        try:
            job = message.job()
            if job.id.queue != self.queue:
                raise InvalidJob(f"message attribute {ID} is {job.id}: it must be of a job of the queue {self.queue!r}")
        except InvalidJob as error:
            self.dead = DeadLettered(error=type(error).__name__, reason=str(error))
        else:
            self.job = job
        return self

    def is_live(self, now: float) -> bool:
        """Return whether the message is still this process's."""
        return not self.lost and now < self.visible - _MARGIN_SECONDS

    def renewable_until(self, longest_run: int) -> float:
        """Return until when it may be renewed: its handler may run for `longest_run` seconds.

        Before the handler begins, that is as long as SQS allows, less the time to run. Without a handler left to run,
        it is as long as SQS allows.
        """
        longest = self.received + LONGEST_HIDDEN_SECONDS
        if self.started is not None:
            return min(self.started + longest_run, longest)
        return longest if self.dead else longest - longest_run

    @property
    def request(self) -> tuple[int, bool]:
        """Its level, and whether it is to be deleted: what acknowledgements in one request have in common."""
        return self.level, self.ack is not None and self.ack.hidden is None

    def event(self, kind: EventKind, **about: Any) -> Event:
        return Event(kind=kind, queue=self.queue, job=self.id, job_kind=self.kind or "", attempt=self.attempt, **about)

    def trouble(self, fault: BaseException, what: str) -> Event:
        """Return the event that reports a fault about it."""
        return error_event(fault, queue=self.queue, job=self.id, job_kind=self.kind or "", what=what)

    @property
    def id(self) -> str:
        """The job's id, or SQS's message id if it carries none."""
        return self.arrival.message.attributes.get(ID, self.arrival.message_id)

    @property
    def kind(self) -> str | None:
        return self.arrival.message.attributes.get(KIND)

    @property
    def due(self) -> datetime:
        return self.job.id.due if self.job else self.arrival.sent

    @property
    def attempt(self) -> int:
        return self.arrival.receives

    @property
    def once_key(self) -> str:
        """The key under which its effect is remembered: its id, and a count of redrives that let it run again."""
        again = self.arrival.message.attributes.get(AGAIN, "")
        return f"{self.id}/{again}" if again else self.id

    def for_handler(self, *, lateness: float, max_attempts: int) -> "ReceivedJob":
        """Return the job for its handler, but for its payload."""
        names = ("key", "kind", "tenant", "priority", "schedule", "scheduled_for")
        of_job = {name: getattr(self.job, name) for name in names} if self.job else {"priority": self.level + 1}
        of_message: dict[str, Any] = {"id": self.id, "queue": self.queue, "due": self.due, "attempt": self.attempt}
        return ReceivedJob(
            payload=None, lateness=lateness, max_attempts=max_attempts, received=self, **of_message, **of_job
        )

    def payload(self, read: Callable[[Pointer], str]) -> Any:
        """Return its payload; `read` fetches one that is kept in S3.

        Raises Discard when it is not JSON, and what `read` raises.
        """
        text = self.arrival.message.body
        try:
            if self.job and self.job.offloaded_bytes is not None:
                text = read(Pointer.parse(text))
            return json.loads(text)
        except InvalidJob:
            raise
        except (ValueError, RecursionError):
            raise Discard("its payload is no JSON") from None

    def send_dead_letter(self, dead: DeadLettered, dead_letters: Queue) -> None:
        """Send it to a dead-letter queue. The message is to be deleted only after that.

        Raises QueueNotFound, Throttled or Unavailable: then it must be sent again.
        """
        message = self.arrival.message
        refusals = dead_letters.send([with_failure(message, dead, attempt=self.attempt)])
        if refusals and refusals[0].final:
            # As it came, SQS took it before.
            refusals = dead_letters.send([message])
        if refusals:
            raise Unavailable(f"job {self.id} could not be put into the dead-letter queue: {refusals[0].reason}")


def with_failure(message: Message, dead: DeadLettered, *, attempt: int) -> Message:
    """Return a message as it goes into the dead-letter queue: with as much of its failure as there is room for."""
    # SQS refuses an empty value.
    return message.with_reasons(
        {ERROR: dead.error or "Error", ATTEMPTS: str(attempt), REASON: dead.reason or "none was given"}
        | {STACK: dead.stack}
    )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ReceivedJob:
    """A job, as its handler gets it.

    `payload` is what was scheduled, `key` its name and `kind` its kind, if it has them. `attempt` is the receive count
    of its message, 1 the first time, of `max_attempts`. The handler began at least `lateness` seconds after the job was
    due. A job that a schedule made has its name, and the instant that its rule names, `scheduled_for`.
    """

    id: str
    queue: str
    payload: Any = field(repr=False)
    due: datetime
    attempt: int
    lateness: float
    key: str | None = None
    kind: str | None = None
    tenant: str | None = None
    priority: int = 1
    schedule: str | None = None
    scheduled_for: datetime | None = None
    max_attempts: int = RetryPolicy().attempts
    received: ReceivedMessage = field(repr=False)

    @property
    def is_last_attempt(self) -> bool:
        """Whether the job goes to the dead-letter queue if this attempt fails."""
        return self.attempt >= self.max_attempts

    @property
    def is_claim_lost(self) -> bool:
        """Whether another worker may have received the message by now.

        Then this handler should have no further effect: the job runs again elsewhere.
        """
        return self.received.lost
