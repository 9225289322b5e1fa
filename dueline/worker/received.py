"""A job as its handler gets it."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dueline.errors import InvalidJob
from dueline.model import job as core
from dueline.model.job import JobId
from dueline.model.message import AGAIN, ID
from dueline.model.pointer import Pointer
from dueline.worker.claim import Claim
from dueline.worker.lateness import Lateness
from dueline.worker.verdict import Discard
from dueline.worker.watch.event import Event, Kind


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ReceivedJob:
    """A job whose handler runs.

    `payload` is what was scheduled; `attempt` is 1 the first time, and counts every receive; `lateness` is how many
    seconds after it was due its handler began at least, and `lateness_at_most` (infinite: unknown) at most.
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
    claim: Claim = field(repr=False)

    @property
    def is_claim_lost(self) -> bool:
        """Whether the message may be another worker's by now: what has no effect yet should have none any more."""
        return self.claim.lost


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Taken:
    """A message that was received, and the job that it carries, if it was sent by Dueline.

    `id` is the job's; of a message that others sent, SQS's own. `looked` is when its cancellation was asked for, on the
    monotonic clock.
    """

    claim: Claim
    queue: str
    job: core.Job | None
    id: str
    looked: float = -math.inf

    @classmethod
    def of(cls, claim: Claim, *, queue: str, looked: float = -math.inf) -> "Taken":
        """Return what a message carries.

        Raises InvalidJob when it is of Dueline's form and cannot be read, or carries a job of another queue: whether
        that was cancelled is not for this one's workers to read, and to ask for it would fail for all it came with.
        """
        message = claim.arrival.message
        if ID not in message.attributes:
            return cls.of_others(claim, queue=queue, looked=looked)
        job = message.job()
        if job.id.queue != queue:
            raise InvalidJob(f"message attribute {ID} is {job.id}: it must be of a job of the queue {queue!r}")
        return cls(claim=claim, queue=queue, job=job, id=message.attributes[ID], looked=looked)

    @classmethod
    def of_others(cls, claim: Claim, *, queue: str, looked: float = -math.inf) -> "Taken":
        """Return a message that carries no job of Dueline's."""
        return cls(claim=claim, queue=queue, job=None, id=claim.arrival.message_id, looked=looked)

    def event(self, kind: Kind, *, error: str = "", reason: str = "") -> Event:
        """Return what is told when something happened to it."""
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
        """What its effect is noted under: its id, and how often people let it run again nevertheless."""
        again = self.claim.arrival.message.attributes.get(AGAIN, "")
        return f"{self.id}/{again}" if again else self.id

    def received(self, *, lateness: Lateness, read: Callable[[Pointer], str]) -> ReceivedJob:
        """Return the job for its handler; `read` fetches a payload that is kept elsewhere.

        Raises Discard when the payload is no JSON, and what `read` raises.
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
