"""The client: schedule, look up and cancel jobs from Python, over the HTTP API."""

import random
import re
import uuid
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Self

from dueline.answers import Job
from dueline.calls import LANES, Calls, Send, attempt, in_lanes
from dueline.clock import SystemClock
from dueline.errors import DuelineError, QueueNotFound
from dueline.job import QUEUE_NAME, JobId, State
from dueline.message import batches
from dueline.new_job import Draft, NewJob
from dueline.ports import Clock
from dueline.retry import Patience

if TYPE_CHECKING:
    import boto3

BATCH_JOBS = 500
# A function's event has 6 MB at most, the rest of the request included.
BATCH_BYTES = 5_000_000


class Client:
    """Schedules, looks up and cancels jobs of one deployment. Threads may share it.

    Every call tries again, as `patience` says, after Throttled, Unavailable and connections that fail. That is safe:
    each job is scheduled under an idempotency key, and a cancel or a look-up changes nothing the second time. What it
    raises is a DuelineError. When it gives up on a job with Throttled or Unavailable, the job may be scheduled all the
    same: the error has its `key`, under which it can be scheduled again and is there once.
    """

    def __init__(
        self,
        send: Send,
        *,
        patience: Patience | None = None,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        new_key: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._clock = clock or SystemClock()
        self._calls = Calls(send, patience=patience or Patience(), clock=self._clock, jitter=jitter)
        self._new_key = new_key

    @classmethod
    def connect(
        cls,
        name: str = "dueline",
        *,
        url: str | None = None,
        session: "boto3.Session | None" = None,
        patience: Patience | None = None,
    ) -> Self:
        """Return a client of the deployment of that name, found in the account and region of the AWS session.

        `session` has the credentials that requests are signed with, by default those that boto3 finds. With `url`, that
        of a local run, nothing is looked up, and without a session of one's own nothing is signed.
        Raises DeploymentNotFound, Forbidden or Unavailable.
        """
        from dueline.aws import gateway

        return cls(gateway.connect(name, url=url, session=session, lanes=LANES), patience=patience)

    def schedule(
        self,
        queue: str,
        payload: object,
        *,
        at: datetime | None = None,
        delay: float | timedelta | None = None,
        key: str | None = None,
    ) -> Job:
        """Schedule a job, which NewJob describes, and return it.

        Raises InvalidJob, before any request where the time, the key or the payload is no good; QueueNotFound;
        KeyReused when the key belongs to a job with another payload.
        """
        path = _path(queue)
        draft = self._draft(NewJob(payload=payload, at=at, delay=delay, key=key))
        try:
            return self._calls.ask("POST", path, draft.text, read=Job.of)
        except DuelineError as error:
            error.key = draft.key
            raise

    def schedule_many(self, queue: str, jobs: Iterable[NewJob]) -> list[Job | DuelineError]:
        """Schedule each job for itself; return, in their order, the job as it was scheduled or its error.

        They travel 500 a request and 5 MB at most, several requests at once, and are taken from the iterable as they
        are sent. Raises QueueNotFound for what is no name of a queue.
        """
        path = _path(queue)
        drafts = (attempt(self._draft, job) for job in jobs)
        cut = batches(drafts, size=_size, most=BATCH_JOBS, most_bytes=BATCH_BYTES)
        return [result for results in in_lanes(partial(self._calls.schedule, path), cut) for result in results]

    def get(self, id: str) -> Job:
        """Look a job up. Raises JobNotFound once it is past its retention."""
        return self._calls.ask("GET", _path_of(id), read=Job.of)

    def cancel(self, id: str) -> State:
        """Take a job back; return CANCELLED or CANCEL_REQUESTED.

        CANCELLED is a promise: the job never reaches its queue. CANCEL_REQUESTED: it is or may be there already.
        Raises JobNotFound for what is no id of a job.
        """
        return self._calls.ask("DELETE", _path_of(id), read=Job.of).state

    def cancel_many(self, ids: Iterable[str]) -> list[State | DuelineError]:
        """Take each job back for itself, several at once; return, in their order, what `cancel` returns or raises."""
        return list(in_lanes(partial(attempt, self.cancel), ids))

    def _draft(self, job: NewJob) -> Draft:
        return Draft.of(job, now=self._clock.now(), new_key=self._new_key)


def _path(queue: str) -> str:
    if not re.fullmatch(QUEUE_NAME, queue):
        raise QueueNotFound(f"no queue is named {queue[:100]!r}: a name has 1 to 60 of a-z, 0-9 and -")
    return f"/queues/{queue}/jobs"


def _path_of(id: str) -> str:
    return f"{_path(JobId.parse(id).queue)}/{id}"


def _size(draft: Draft | DuelineError) -> int:
    return draft.size if isinstance(draft, Draft) else 0
