"""Submission: a job on its way to its queue, and how one is made of a request."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from dueline.errors import DuelineError, InvalidJob, NotYet
from dueline.model.job import Job, JobId, Partition
from dueline.model.queue_settings import QueueSettings
from dueline.model.request import Request, due_of, text_of
from dueline.model.routing import JOBS_TO_A_PARTITION, partition_of, route_of
from dueline.model.text import shown
from dueline.protocol import given_id, keys
from dueline.protocol.offload import Content, content_of, inline


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """A job on its way, its payload as it was given, and the delay that its caller gave, which SQS gets as it is."""

    job: Job
    content: Content
    delay: float | None
    key: str | None


# A request on its way: a job to submit, one that was submitted before, or an error.
Draft = Submission | Job | DuelineError


@dataclass(frozen=True, kw_only=True, slots=True)
class _New:
    """What an id is made of, besides its due time."""

    partition: Partition
    uid: str


class JobFactory:
    """Makes jobs of one queue: checks a request, and gives its job an id, a partition and a route.

    What is due within `direct_horizon` goes straight to its queue; `new_uid` returns a random UUID.
    """

    def __init__(self, queue: QueueSettings, *, direct_horizon: timedelta, new_uid: Callable[[], str]) -> None:
        self._queue = queue
        self._direct_horizon = direct_horizon
        self._new_uid = new_uid

    def drafts(self, requests: Sequence[Request | DuelineError], *, now: datetime) -> list[Draft]:
        """Return for each request the job to submit, or the InvalidJob that says what is wrong with it.

        An error in a request's place is returned as it is. Up to 100 jobs share a partition, so that one fence has to
        be read for them.
        """
        drafts: list[Draft] = []
        for start in range(0, len(requests), JOBS_TO_A_PARTITION):
            some = requests[start : start + JOBS_TO_A_PARTITION]
            uids = [self._new_uid() for _ in some]
            partition = Partition(queue=self._queue.name, number=partition_of(uids[0], self._queue.partitions))
            drafts += [
                self._draft(request, new=_New(partition=partition, uid=uid), now=now)
                for request, uid in zip(some, uids, strict=True)
            ]
        return drafts

    def _draft(self, request: Request | DuelineError, *, new: _New, now: datetime) -> Draft:
        if isinstance(request, DuelineError):
            return request
        try:
            id = self._id_of(request, new=new, now=now)
            expires, priority = id.due + self._queue.retention, _checked_priority(request.priority, queue=self._queue)
            content = content_of(request.upload, text=partial(text_of, request))
            job = Job(
                id=id,
                payload=inline(content),
                expires=expires,
                tenant=request.tenant,
                priority=priority,
                trace=request.trace,
            )
            key = None if request.key is None else keys.checked(request.key)
            return Submission(job=job, content=content, delay=None if request.id else request.delay, key=key)
        except InvalidJob as error:
            return error

    def _id_of(self, request: Request, *, new: _New, now: datetime) -> JobId:
        if request.id is not None:
            return given_id.checked(request.id, queue=self._queue, now=now)
        due = due_of(request, now=now)
        route = route_of(due, now=now, direct_horizon=self._direct_horizon)
        return JobId(partition=new.partition, route=route, due=due, uid=new.uid)


def out_of_time(id: JobId) -> DuelineError:
    """Return the error of a job that there was no time left to send."""
    return NotYet("out of time: it was not sent").copy(job_id=str(id))


def _checked_priority(priority: int, *, queue: QueueSettings) -> int:
    if not 1 <= priority <= queue.priorities:
        allowed = f"it must be from 1 to {queue.priorities}, the priorities of queue {queue.name!r}"
        raise InvalidJob(f"priority is {shown(priority)}: {allowed}")
    return priority
