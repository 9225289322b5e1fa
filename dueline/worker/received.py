"""A received message, and its job as the handler gets it."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from dueline.errors import InvalidJob
from dueline.model import job as core
from dueline.model.job import JobId
from dueline.model.message import AGAIN, ID
from dueline.model.pointer import Pointer
from dueline.worker.claim import Claim
from dueline.worker.verdict import Discard
from dueline.worker.watch.event import Event, Kind


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

    `payload` is what was scheduled. `attempt` is the receive count of its message: 1 the first time. The handler began
    at least `lateness` and at most `lateness_at_most` seconds after the job was due (infinite: unknown).
    A job that a schedule made has its name, and the instant that its rule names, `nominal`.
    """

    id: str
    queue: str
    payload: Any = field(repr=False)
    due: datetime
    attempt: int
    lateness: float
    lateness_at_most: float
    tenant: str | None = None
    priority: int = 1
    schedule: str | None = None
    nominal: datetime | None = None
    claim: Claim = field(repr=False)

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
    job: core.Job | None
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

    def event(self, kind: Kind, *, error: str = "", reason: str = "") -> Event:
        """Return the event to report when something happened to it."""
        return Event(kind=kind, queue=self.queue, job=self.id, attempt=self.attempt, error=error, reason=reason)

    @property
    def job_id(self) -> JobId | None:
        return self.job.id if self.job else None

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

    def for_handler(self, *, lateness: Lateness, read: Callable[[Pointer], str]) -> ReceivedJob:
        """Return the job for its handler; `read` fetches a payload that is kept in S3.

        Raises Discard when the payload is not JSON, and what `read` raises.
        """
        return ReceivedJob(
            id=self.id,
            queue=self.queue,
            payload=self._payload(read),
            due=self.due,
            attempt=self.attempt,
            lateness=lateness.at_least,
            lateness_at_most=lateness.at_most,
            tenant=self.job.tenant if self.job else None,
            priority=self.job.priority if self.job else self.claim.level + 1,
            schedule=self.job.schedule if self.job else None,
            nominal=self.job.nominal if self.job else None,
            claim=self.claim,
        )

    def _payload(self, read: Callable[[Pointer], str]) -> Any:
        text = self.claim.arrival.message.body
        try:
            if self.job and self.job.offloaded_bytes is not None:
                text = read(Pointer.parse(text))
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            if isinstance(error, InvalidJob):
                raise
            raise Discard("its payload is no JSON") from None
