"""A deployment's own SQS queues and tables, for direct producers: no HTTP in between."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self, TypeVar

import boto3

from dueline.aws import clients
from dueline.aws.faults import as_callers, of_callers
from dueline.aws.per_process import PerProcess
from dueline.aws.published import Published
from dueline.aws.resources import Resources
from dueline.aws.service_clock import ServiceClock
from dueline.aws.sessions import of_each_process
from dueline.client.answers import Job
from dueline.client.dated import Moment
from dueline.client.http_schedules import HttpSchedules
from dueline.client.id_terms import IdTerms
from dueline.client.listed import ScheduledJob
from dueline.client.new_job import NewJob
from dueline.config.names import Names
from dueline.config.settings import ApiSettings
from dueline.errors import DuelineError, Forbidden, JobNotFound
from dueline.lookup.control import Control
from dueline.lookup.listing import FAR_END, MOST_JOBS, Span, list_jobs
from dueline.lookup.overview import Overview
from dueline.lookup.status import Status, status_of
from dueline.lookup.submitted import JobStatus, moved_status, submitted_statuses
from dueline.model import instant
from dueline.model import job as core
from dueline.model.job import JobId, State
from dueline.model.queue_settings import QueueSettings
from dueline.model.rate import Rate
from dueline.model.request import Request, json_text
from dueline.model.trace import TraceContext
from dueline.operate import control
from dueline.ports import Clock
from dueline.protocol.cancel import Cancelled, CancelMany
from dueline.protocol.uploads import check_size

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

    @property
    def group(self) -> None:
        """None: each carries its own trace."""

    def after(self, error: DuelineError) -> Self:
        return replace(self, request=replace(self.request, id=error.job_id or self.request.id))


class DirectApi:
    """Asks the deployment's queues and table themselves, with the code that the HTTP API runs.

    `published` and `resources` return those of this process.
    """

    def __init__(
        self, published: Callable[[], Published], resources: Callable[[], Resources], *, settings: ApiSettings
    ) -> None:
        self._published_here = published
        self._resources_here = resources
        self._direct_horizon = timedelta(seconds=settings.direct_horizon)
        self._lookahead = timedelta(seconds=settings.lookahead)

    @property
    def _published(self) -> Published:
        return self._published_here()

    @property
    def _resources(self) -> Resources:
        return self._resources_here()

    def draft(self, job: NewJob, *, trace: TraceContext | None = None) -> DirectDraft:
        asked = job.checked(now=self._resources.clock.now(), trace=trace)
        # Its owner may change it before it is sent, or is sent again.
        text = json_text(asked.payload)
        check_size(len(text))
        return DirectDraft(request=replace(asked, payload=None, text=text))

    def schedule(self, queue: str, drafts: Sequence[DirectDraft]) -> Sequence[Job | DuelineError]:
        with of_callers(f"scheduling jobs of queue {queue}"):
            settings, until = self._published.queue(queue), self._until()
            submit = self._resources.submit(settings, direct_horizon=self._direct_horizon, is_buffered=False)
            results = submit.run([draft.request for draft in drafts], until=until)
            # From here on nothing fails as a whole: what was sent would be sent again, under other ids.
            statuses = self._statuses(results, queue=settings, until=until)
            return [as_callers(each) if isinstance(each, DuelineError) else _job(*each) for each in statuses]

    def id_terms(self, queue: str) -> IdTerms:
        with of_callers(f"asking for queue {queue}"):
            partitions, now = self._published.queue(queue).partitions, self._resources.clock.now()
        moment = Moment(earliest=now, latest=now)
        return IdTerms(partitions=partitions, direct_horizon=self._direct_horizon, moment=moment)

    def get(self, id: JobId) -> Job:
        with of_callers(f"looking up job {id}"):
            table, now = self._resources.table, self._resources.clock.now()
            return self._ask_again_if_missing(
                id.queue, lambda queue: _job(id, status_of(id, queue=queue, table=table, now=now))
            )

    def cancel(self, queue: str, ids: Sequence[JobId]) -> Sequence[State | DuelineError]:
        with of_callers(f"cancelling jobs of queue {queue}"):
            results = self._cancelled(ids, queue=self._published.queue(queue))
            lost = [place for place, each in enumerate(results) if isinstance(each, JobNotFound)]
            found = self._cancelled_anew(queue, [ids[place] for place in lost]) if lost else []
            again = dict(zip(lost, found, strict=True))
            results = [again.get(place, each) for place, each in enumerate(results)]
            return [each.state if isinstance(each, Cancelled) else as_callers(each) for each in results]

    def reschedule(self, id: JobId, *, at: datetime | None, delay: float | None, key: str) -> Job:
        with of_callers(f"moving job {id}"):

            def move(queue: QueueSettings) -> JobStatus:
                moved = self._resources.reschedule(queue).run(id, at=at, delay=delay, key=key)
                return moved_status(moved, queue=queue, table=self._resources.table, now=self._resources.clock.now())

            return _job(*self._ask_again_if_missing(id.queue, move))

    def page(
        self, queue: str, *, start: datetime | None, end: datetime | None, after: str
    ) -> tuple[Sequence[ScheduledJob], str]:
        now = self._resources.clock.now()
        # What goes on begins behind `after`: the present has moved since.
        first = start or (instant.EPOCH if after else now)
        span = Span(start=first, end=end or FAR_END, after=after, limit=MOST_JOBS)
        with of_callers(f"listing jobs of queue {queue}"):
            settings, table, spread = self._published.queue(queue), self._resources.table, self._resources.spread
            listed = list_jobs(span, queue=settings, table=table, now=now, spread=spread)
        return [ScheduledJob.waiting(job) for job in listed.jobs], listed.after or ""

    def queues(self) -> Sequence[QueueSettings]:
        with of_callers("asking for the queues"):
            return self._published.queues()

    def overview(self, queue: str) -> Overview:
        with of_callers(f"asking how queue {queue} is doing"):
            return self._resources.overview(self._published.queue(queue), lookahead=self._lookahead)

    def pause(self, queue: str) -> Control:
        with of_callers(f"pausing queue {queue}"):
            return control.pause(self._existing(queue), table=self._resources.table, now=self._resources.clock.now())

    def resume(self, queue: str) -> Control:
        with of_callers(f"resuming queue {queue}"):
            return control.resume(self._existing(queue), table=self._resources.table, now=self._resources.clock.now())

    def set_rate(self, queue: str, rate: Rate | None) -> Control:
        with of_callers(f"setting the rate of queue {queue}"):
            name, now = self._existing(queue), self._resources.clock.now()
            return control.set_rate(name, rate, table=self._resources.table, now=now)

    def schedules(self, queue: str) -> HttpSchedules:
        raise Forbidden(f"a direct client has no rights on schedules of queue {queue!r}: connect without direct=True")

    def _existing(self, queue: str) -> str:
        """Return the name of a queue that exists. Raises QueueNotFound."""
        return self._published.queue(queue).name

    def _cancelled(self, ids: Sequence[JobId], *, queue: QueueSettings) -> Sequence[Cancelled | DuelineError]:
        table, clock, spread = self._resources.table, self._resources.clock, self._resources.spread
        return CancelMany(queue, table=table, clock=clock, until=self._until(), spread=spread).run(ids)

    def _statuses(
        self, results: Sequence[core.Job | DuelineError], *, queue: QueueSettings, until: float
    ) -> Sequence[JobStatus | DuelineError]:
        table, clock, spread = self._resources.table, self._resources.clock, self._resources.spread
        return submitted_statuses(results, queue=queue, table=table, clock=clock, until=until, spread=spread)

    def _cancelled_anew(self, queue: str, ids: Sequence[JobId]) -> Sequence[Cancelled | DuelineError]:
        """Cancel what was not found: its partition may be newer than what is known of its queue.

        Where that cannot be asked, it is the error of each of these, and takes nothing from those beside them.
        """
        try:
            with of_callers(f"asking for queue {queue}"):
                settings = self._published.anew(queue)
        except DuelineError as error:
            return [error.copy(job_id=str(id)) for id in ids]
        return self._cancelled(ids, queue=settings)

    def _ask_again_if_missing(self, queue: str, ask: Callable[[QueueSettings], T]) -> T:
        """Ask again where a job is not found: its partition may be newer than what is known of its queue."""
        try:
            return ask(self._published.queue(queue))
        except JobNotFound:
            return ask(self._published.anew(queue))

    def _until(self) -> float:
        return self._resources.clock.monotonic() + _LONGEST_CALL_SECONDS


def _job(id: JobId, status: Status) -> Job:
    return Job.known(id, status)


def connect(name: str, *, session: boto3.Session | None) -> tuple[DirectApi, Clock]:
    """Return a deployment's API without HTTP, and the time by which it counts.

    Raises DeploymentNotFound, DeploymentTooOld, ClientTooOld, Forbidden or Unavailable.
    """
    clock = ServiceClock()
    here = of_each_process(session)
    published = PerProcess(lambda: _published(name, session=here(), clock=clock))
    with of_callers(f"finding the deployment {name!r}"):
        settings = published().settings()
    resources = PerProcess(lambda: _resources(settings, session=here(), clock=clock))
    return DirectApi(published, resources, settings=settings), clock


def _published(name: str, *, session: boto3.Session, clock: ServiceClock) -> Published:
    ssm = clients.ssm(session, longest=_LONGEST_REQUEST)
    clock.listen_to(ssm)
    return Published(ssm, Names(name), clock=clock)


def _resources(settings: ApiSettings, *, session: boto3.Session, clock: ServiceClock) -> Resources:
    return Resources(
        settings.deployment,
        queue_urls=settings.queue_urls,
        bucket=settings.payloads,
        longest=_LONGEST_REQUEST,
        session=session,
        service_clock=clock,
    )
