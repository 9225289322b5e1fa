"""A deployment's own SQS queues and table, for producers that the platform team trusts: no HTTP in between."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self, TypeVar

import boto3

from dueline import control, instant
from dueline import job as core
from dueline.answers import Job, ScheduledJob, submitted_state
from dueline.aws import clients
from dueline.aws.faults import as_callers, of_callers
from dueline.aws.published import Published
from dueline.aws.resources import Resources
from dueline.aws.service_clock import ServiceClock
from dueline.cancel import Cancelled
from dueline.config.names import Names
from dueline.config.settings import ApiSettings
from dueline.control import Control
from dueline.errors import DuelineError
from dueline.job import JobId, State
from dueline.keys import Repeat
from dueline.listing import FAR_END, MOST_JOBS, Span
from dueline.new_job import NewJob
from dueline.overview import Overview
from dueline.ports import Clock
from dueline.queue import QueueSettings
from dueline.rate import Rate
from dueline.request import Request
from dueline.status import status_of
from dueline.trace import TraceContext

_LONGEST_REQUEST = timedelta(seconds=5)
_LONGEST_CALL_SECONDS = 30

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectDraft:
    """A job as it is submitted: when it is tried again, under the id of the first try."""

    request: Request = field(repr=False)

    @property
    def key(self) -> str | None:
        return self.request.key

    @property
    def size(self) -> int:
        """Nothing: the batches that SQS takes are cut where they are sent."""
        return 0

    def after(self, error: DuelineError) -> Self:
        tried = JobId.parse(error.job_id) if error.job_id else self.request.again
        return replace(self, request=replace(self.request, again=tried))


class DirectApi:
    """Asks the deployment's queues and table themselves, through the core that the HTTP API runs."""

    def __init__(self, resources: Resources, published: Published, *, settings: ApiSettings) -> None:
        self._resources = resources
        self._published = published
        self._direct_horizon = timedelta(seconds=settings.direct_horizon)
        self._lookahead = timedelta(seconds=settings.lookahead)

    def draft(self, job: NewJob, *, trace: TraceContext | None = None) -> DirectDraft:
        return DirectDraft(request=job.checked(now=self._resources.clock.now(), trace=trace))

    def schedule(self, queue: str, drafts: Sequence[DirectDraft]) -> Sequence[Job | DuelineError]:
        with of_callers(f"scheduling jobs of queue {queue}"):
            submit = self._resources.submit(self._published.queue(queue), direct_horizon=self._direct_horizon)
            results = submit.run([draft.request for draft in drafts], until=self._until())
            return [as_callers(each) if isinstance(each, DuelineError) else self._told(each) for each in results]

    def get(self, id: JobId) -> Job:
        with of_callers(f"looking up job {id}"):
            return self._looked_up(id)

    def cancel(self, queue: str, ids: Sequence[JobId]) -> Sequence[State | DuelineError]:
        with of_callers(f"cancelling jobs of queue {queue}"):
            self._published.queue(queue)
            results = self._resources.cancel_many(until=self._until()).run(ids)
            return [each.state if isinstance(each, Cancelled) else as_callers(each) for each in results]

    def reschedule(self, id: JobId, *, at: datetime) -> Job:
        with of_callers(f"moving job {id}"):
            moving = self._resources.reschedule(self._published.queue(id.queue))
            return Job.known(moving.run(id, at=at), State.SCHEDULED)

    def page(
        self, queue: str, *, start: datetime | None, end: datetime | None, after: str
    ) -> tuple[Sequence[ScheduledJob], str]:
        now = self._resources.clock.now()
        # What goes on begins behind `after`: the present has moved since.
        first = start or (instant.EPOCH if after else now)
        span = Span(start=first, end=end or FAR_END, after=after, limit=MOST_JOBS)
        with of_callers(f"listing jobs of queue {queue}"):
            listed = self._resources.list_jobs(span, queue=self._published.queue(queue), now=now)
        return [ScheduledJob.waiting(job) for job in listed.jobs], listed.after or ""

    def queues(self) -> Sequence[QueueSettings]:
        with of_callers("asking for the queues"):
            return self._published.queues()

    def overview(self, queue: str) -> Overview:
        with of_callers(f"asking how queue {queue} is doing"):
            return self._resources.overview(self._published.queue(queue), lookahead=self._lookahead)

    def pause(self, queue: str) -> Control:
        with of_callers(f"pausing queue {queue}"):
            return control.pause(self._known(queue), table=self._resources.table, now=self._resources.clock.now())

    def resume(self, queue: str) -> Control:
        with of_callers(f"resuming queue {queue}"):
            return control.resume(self._known(queue), table=self._resources.table, now=self._resources.clock.now())

    def set_rate(self, queue: str, rate: Rate | None) -> Control:
        with of_callers(f"setting the rate of queue {queue}"):
            known, now = self._known(queue), self._resources.clock.now()
            return control.set_rate(known, rate, table=self._resources.table, now=now)

    def _known(self, queue: str) -> str:
        """Return the name of a queue that there is. Raises QueueNotFound."""
        return self._published.queue(queue).name

    def _told(self, job: core.Job) -> Job:
        if isinstance(job, Repeat):
            return self._looked_up(job.id)
        return Job.known(job.id, submitted_state(job.id))

    def _looked_up(self, id: JobId) -> Job:
        resources = self._resources
        known = status_of(id, queue=self._published.queue(id.queue), table=resources.table, now=resources.clock.now())
        return Job.known(id, known.state, moved_to=known.moved_to, outcome=known.outcome)

    def _until(self) -> float:
        return self._resources.clock.monotonic() + _LONGEST_CALL_SECONDS


def connect(name: str, *, session: boto3.Session | None) -> tuple[DirectApi, Clock]:
    """Return a deployment's API without HTTP, and the time by which it counts.

    Raises DeploymentNotFound, Forbidden or Unavailable.
    """
    clock = ServiceClock()
    with of_callers(f"finding the deployment {name!r}"):
        own = session or boto3.Session()
        ssm = clients.ssm(own, longest=_LONGEST_REQUEST)
        clock.listen_to(ssm)
        published = Published(ssm, Names(name), clock=clock)
        settings = published.settings()
    resources = Resources(
        name,
        queue_urls=settings.queue_urls,
        bucket=settings.payloads,
        longest=_LONGEST_REQUEST,
        session=own,
        service_clock=clock,
    )
    return DirectApi(resources, published, settings=settings), clock
