"""A delivery of a job: the message, the job as its handler gets it, and what becomes of it."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from typing import Any, ClassVar, Self

from dueline.core import job as core
from dueline.core.job import JobId, State
from dueline.core.message import AGAIN, ATTEMPTS, ERROR, ID, REASON, STACK, Message
from dueline.core.ports import Pointer, Queue
from dueline.core.queue_settings import LONGEST_HIDDEN_SECONDS, MAX_HIDDEN_SECONDS, RetryPolicy, WorkSettings
from dueline.core.text import name_of, text_of
from dueline.errors import InvalidJob, Unavailable
from dueline.worker.claims import Claim
from dueline.worker.events import Event, EventKind, error_event
from dueline.worker.retries import BY_POLICY, Retries, checked_seconds


class Retry(Exception):
    """Raise in a handler to retry the job after `delay`: seconds or a timedelta, rounded up to whole seconds.

    Without a delay, the job waits as the queue's retry policy says. The attempt counts: after the last one, the job
    goes to the dead-letter queue instead. A retry never comes early. SQS hides a message for at most 12 hours after it
    was received, and Dueline keeps 10 minutes of them in reserve. A longer delay raises ValueError. If the delay is
    longer than what is left of that time when the handler ends, the job goes to the dead-letter queue.
    """

    def __init__(self, delay: float | timedelta | None = None, reason: str = "") -> None:
        super().__init__(reason or "the handler requested it")
        self.delay = None if delay is None else checked_seconds("delay", delay, least=0)


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


class Unhandled(RetryLater):
    """No handler here takes the job, which is retried as if it had failed: another process may have one."""

    kind = EventKind.UNHANDLED


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
    # Not isinstance, which reads `__class__`: an error may raise there.
    kind, reason, of = name_of(error), text_of(error), type(error)
    if issubclass(of, Discard):
        return DeadLettered(error=kind, reason=reason)
    if attempt >= (attempts := retries.attempts_of(settings)):
        return DeadLettered(error=kind, reason=f"attempt {attempt} of {attempts} failed: {reason}")
    left = max(0, int(LONGEST_HIDDEN_SECONDS - held))
    delay = _delay_of(error) if issubclass(of, Retry) else None
    if delay is None:
        seconds = retries.delay_after(attempt, policy=settings.retry, jitter=jitter)
        later = Unhandled if issubclass(of, NoHandler) else RetryLater
        return later(seconds=min(seconds, left), error=kind, reason=reason)
    if delay > left:
        limit = (
            f"SQS hides a message for {MAX_HIDDEN_SECONDS} s in all from its receipt, of which"
            f" {MAX_HIDDEN_SECONDS - LONGEST_HIDDEN_SECONDS} are kept in reserve"
        )
        why = f"Retry requested {delay:g} s, of which {left} are left: {limit}: {reason}"
        return DeadLettered(error=kind, reason=why)
    return RetryLater(seconds=ceil(delay), error=kind, reason=reason)


def _delay_of(error: BaseException) -> float | None:
    """Return the delay in seconds, if there is one: a subclass may have one of its own, which raises, or is none."""
    try:
        delay = getattr(error, "delay", None)
    except BaseException:
        # As in text_of.
        return None
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    return seconds if isinstance(seconds, int | float) and seconds >= 0 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Lateness:
    """How many seconds after it was due a job began, by AWS's own clock: at least, and at most (infinite: unknown).

    Both are below 0 for a job that certainly began early.
    """

    at_least: float
    at_most: float

    @classmethod
    def of(cls, due: datetime, *, now: datetime, behind: float = 0.0, held: bool = False) -> Self:
        """Return the lateness of a job that begins `now`, by a clock that is up to `behind` seconds behind AWS's own.

        A job that the worker itself `held` until it was due is not early, even if its clock was set meanwhile.

        >>> from datetime import UTC, timedelta
        >>> due = datetime(2026, 11, 21, tzinfo=UTC)
        >>> Lateness.of(due, now=due - timedelta(seconds=0.25), behind=0.75)
        Lateness(at_least=0.0, at_most=0.5)
        """
        least = (now - due).total_seconds()
        most = least + behind
        if held:
            least, most = max(0.0, least), max(0.0, most)
        # A job that is not known to be early is taken to be on time: SQS delivers none before.
        return cls(at_least=max(least, min(0.0, most)), at_most=most)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ReceivedJob:
    """A job, as its handler gets it.

    `payload` is what was scheduled, `key` its name and `kind` its kind, if it has them. `attempt` is the receive count
    of its message, 1 the first time, of `max_attempts`. The handler began at least `lateness` and at most
    `lateness_at_most` seconds after the job was due (infinite: unknown).
    A job that a schedule made has its name, and the instant that its rule names, `scheduled_for`.
    """

    id: str
    queue: str
    payload: Any = field(repr=False)
    due: datetime
    attempt: int
    lateness: float
    lateness_at_most: float
    key: str | None = None
    kind: str | None = None
    tenant: str | None = None
    priority: int = 1
    schedule: str | None = None
    scheduled_for: datetime | None = None
    max_attempts: int = RetryPolicy().attempts
    claim: Claim = field(repr=False)

    @property
    def is_last_attempt(self) -> bool:
        """Whether the job goes to the dead-letter queue if this attempt fails."""
        return self.attempt >= self.max_attempts

    @property
    def is_claim_lost(self) -> bool:
        """Whether another worker may have received the message by now.

        Then this handler should have no further effect: the job runs again elsewhere.
        """
        return self.claim.lost


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ReceivedMessage:
    """A message that was received, and the job that it carries, if it was sent by Dueline.

    `id` is the job's, or SQS's message id if it carries none. `cancellation_read` is when it was last looked up whether
    the job is cancelled, on the monotonic clock.
    """

    claim: Claim
    queue: str
    job: core.StoredJob | None
    id: str
    cancellation_read: float = -math.inf

    @classmethod
    def of(cls, claim: Claim, *, queue: str, cancellation_read: float = -math.inf) -> Self:
        """Read the job that a message carries.

        Raises InvalidJob when it has Dueline's attributes and cannot be read, or carries a job of another queue: IAM
        lets workers read the cancellations of their own queue only, and refuses a request for several as a whole.
        """
        message = claim.arrival.message
        if ID not in message.attributes:
            return cls.without_job(claim, queue=queue, cancellation_read=cancellation_read)
        job = message.job()
        if job.id.queue != queue:
            raise InvalidJob(f"message attribute {ID} is {job.id}: it must be of a job of the queue {queue!r}")
        return cls(claim=claim, queue=queue, job=job, id=message.attributes[ID], cancellation_read=cancellation_read)

    @classmethod
    def without_job(cls, claim: Claim, *, queue: str, cancellation_read: float = -math.inf) -> Self:
        """Return a message that carries no job of Dueline's, or none that can be read."""
        return cls(claim=claim, queue=queue, job=None, id=claim.arrival.message_id, cancellation_read=cancellation_read)

    def event(self, kind: EventKind, *, error: str = "", reason: str = "") -> Event:
        about: dict[str, Any] = {"queue": self.queue, "job": self.id, "job_kind": self.kind or ""}
        return Event(kind=kind, attempt=self.attempt, error=error, reason=reason, **about)

    def trouble(self, fault: BaseException, what: str) -> Event:
        """Return the event that reports a fault about it."""
        return error_event(fault, queue=self.queue, job=self.id, job_kind=self.kind or "", what=what)

    @property
    def job_id(self) -> JobId | None:
        return self.job.id if self.job else None

    @property
    def kind(self) -> str | None:
        return self.job.kind if self.job else None

    @property
    def due(self) -> datetime:
        return self.job.id.due if self.job else self.claim.arrival.sent

    @property
    def attempt(self) -> int:
        return self.claim.arrival.receives

    @property
    def once_key(self) -> str:
        """The key under which its effect is remembered: its id, and a count of redrives that let it run again."""
        again = self.claim.arrival.message.attributes.get(AGAIN, "")
        return f"{self.id}/{again}" if again else self.id

    def without_payload(self, *, lateness: Lateness, max_attempts: int) -> ReceivedJob:
        """Return the job for its handler, but for its payload."""
        names = ("key", "kind", "tenant", "priority", "schedule", "scheduled_for")
        of_job = {name: getattr(self.job, name) for name in names} if self.job else {"priority": self.claim.level + 1}
        return ReceivedJob(
            id=self.id,
            queue=self.queue,
            payload=None,
            due=self.due,
            attempt=self.attempt,
            max_attempts=max_attempts,
            lateness=lateness.at_least,
            lateness_at_most=lateness.at_most,
            claim=self.claim,
            **of_job,
        )

    def payload(self, read: Callable[[Pointer], str]) -> Any:
        """Return its payload; `read` fetches one that is kept in S3.

        Raises Discard when it is not JSON, and what `read` raises.
        """
        text = self.claim.arrival.message.body
        try:
            if self.job and self.job.offloaded_bytes is not None:
                text = read(Pointer.parse(text))
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            if isinstance(error, InvalidJob):
                raise
            raise Discard("its payload is no JSON") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetter:
    """A message that goes into the dead-letter queue, and why: its handler does not run again."""

    received: ReceivedMessage
    dead: DeadLettered

    def event(self) -> Event:
        """Return the event to report when no handler was called with it."""
        return self.received.event(EventKind.FAILED, error=self.dead.error, reason=self.dead.reason)

    def send(self, dead_letters: Queue) -> None:
        """Send it to a dead-letter queue. Its message is to be deleted only after that.

        Raises QueueNotFound, Throttled or Unavailable: then it must be sent again.
        """
        received, message = self.received, self.received.claim.arrival.message
        refusals = dead_letters.send([with_failure(message, self.dead, attempt=received.attempt)])
        if refusals and refusals[0].final:
            # As it came, SQS took it before.
            refusals = dead_letters.send([message])
        if refusals:
            raise Unavailable(f"job {received.id} could not be put into the dead-letter queue: {refusals[0].reason}")


def with_failure(message: Message, dead: DeadLettered, *, attempt: int) -> Message:
    """Return a message as it goes into the dead-letter queue: with as much of its failure as there is room for."""
    # SQS refuses an empty value.
    return message.with_reasons(
        {ERROR: dead.error or "Error", ATTEMPTS: str(attempt), REASON: dead.reason or "none was given"}
        | {STACK: dead.stack}
    )
