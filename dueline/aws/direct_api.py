"""A deployment's own SQS queues and tables, for direct producers: no HTTP in between."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from typing import Any, Protocol, TypeVar

import boto3

from dueline.aws.aws_deployment import AwsDeployment
from dueline.aws.botocore_errors import as_caller_error, map_caller_errors
from dueline.aws.server_clock import ServiceClock
from dueline.client.api import Draft, JobKey, JobRef
from dueline.client.job_ids import IdParameters
from dueline.client.models import Job, NewJob, ScheduledJob
from dueline.config.environment import ApiSettings
from dueline.core import core_deployment, instant, listing, ports, threads
from dueline.core.cancel import CancelMany, CancelResult
from dueline.core.clock import TimeBounds
from dueline.core.job import JobId, State, SubmitResult, new_uid
from dueline.core.keys import Submission
from dueline.core.overview import Control, Overview
from dueline.core.queue_settings import QueueSettings, Rate
from dueline.core.request import FURTHEST, Default, Request
from dueline.core.status import ATTEMPTED, JobStatus, moved_status, status_of, status_under, submitted_statuses
from dueline.core.trace import TraceContext
from dueline.errors import DuelineError, Forbidden, JobNotFound
from dueline.operations import control

_LONGEST_REQUEST = timedelta(seconds=5)
_LONGEST_CALL_SECONDS = 30

T = TypeVar("T")
_OF_FIRST_CALLS = (
    "_strptime",
    "encodings.idna",
    "dueline.aws.s3",
    "dueline.aws.settings",
    "dueline.core.overview",
    "dueline.core.reschedule",
)


class PublishedQueues(Protocol):
    """The settings of a deployment and its queues, as they are published; `refresh` reads a queue's as they are now."""

    def queue(self, name: str) -> QueueSettings: ...

    def refresh(self, name: str) -> QueueSettings: ...

    def queues(self) -> Sequence[QueueSettings]: ...

    def settings(self) -> ApiSettings: ...


class BoundedClock(ports.Clock, Protocol):
    """The time by AWS's own clock, as far as that is known."""

    def moment(self) -> TimeBounds | None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectDeployment:
    """A deployment, its settings, and what it publishes of itself and its queues."""

    deployed: core_deployment.CoreDeployment
    published: PublishedQueues
    settings: ApiSettings


class DirectApi:
    """Calls the deployment's queues and table directly, with the code that the HTTP API runs.

    `find` returns the deployment for this process, and may request it at its first use. `clock` listens to what AWS
    answers.
    """

    def __init__(
        self, find: Callable[[], DirectDeployment], *, clock: BoundedClock, close: Callable[[], None] = lambda: None
    ) -> None:
        self._clock, self._find, self.close = clock, find, close

    @property
    def _published(self) -> PublishedQueues:
        return self._find().published

    @property
    def _deployed(self) -> core_deployment.CoreDeployment:
        return self._find().deployed

    @property
    def _direct_horizon(self) -> timedelta:
        return timedelta(seconds=self._find().settings.direct_horizon)

    def draft(self, job: NewJob, *, trace: TraceContext | None = None, default: Default | None = None) -> Draft:
        request = job.checked(now=self._clock.now(), trace=trace, default=default)
        if request.key is not None and request.call is None:
            request = replace(request, call=new_uid())
        return Draft(request=request)

    def schedule_many(self, queue: str, drafts: Sequence[Draft]) -> Sequence[Job | DuelineError]:
        with map_caller_errors(f"scheduling jobs of queue {queue}"):
            settings, until = self._published.queue(queue), self._until()
            submit = self._deployed.submit(settings, direct_horizon=self._direct_horizon, is_buffered=False)
            made = submit.drafts([self._counted(draft.request) for draft in drafts])
            for draft, one in zip(drafts, made, strict=True):
                # What has a named call is known by that, whatever its id.
                if isinstance(one, Submission) and draft.request.call is None:
                    draft.request = replace(draft.request, id=str(one.job.id))
            results = submit.send(made, until=until)
            table, clock, spread = self._deployed.table, self._deployed.clock, self._deployed.spread
            statuses = submitted_statuses(results, queue=settings, table=table, clock=clock, until=until, spread=spread)
            return list(map(_scheduled, results, statuses))

    def id_parameters(self, queue: str) -> IdParameters:
        with map_caller_errors(f"reading queue {queue}"):
            partitions, moment = self._published.queue(queue).partitions, self._moment()
        return IdParameters(partitions=partitions, direct_horizon=self._direct_horizon, moment=moment)

    def get(self, ref: JobRef) -> Job:
        with map_caller_errors(f"looking up job {ref}"):
            table, now = self._deployed.table, self._deployed.clock.now()

            def find(queue: QueueSettings) -> Job:
                if isinstance(ref, JobKey):
                    return Job.of_status(*status_under(ref.key, queue=queue, table=table, now=now))
                return Job.of_status(*status_of(ref, queue=queue, table=table, now=now))

            return self._retry_with_new_settings(ref.queue, find)

    def cancel_many(self, queue: str, refs: Sequence[JobRef]) -> Sequence[State | DuelineError]:
        with map_caller_errors(f"cancelling jobs of queue {queue}"):
            results = self._cancelled(refs, queue=self._published.queue(queue))
            lost = [place for place, each in enumerate(results) if isinstance(each, JobNotFound)]
            retried = self._cancel_again(queue, [refs[place] for place in lost]) if lost else []
            again = dict(zip(lost, retried, strict=True))
            results = [again.get(place, each) for place, each in enumerate(results)]
            return [each.state if isinstance(each, CancelResult) else as_caller_error(each) for each in results]

    def reschedule(self, ref: JobRef, *, at: datetime | None, delay: float | None, call: str) -> Job:
        named: dict[str, Any] = {"key": ref.key} if isinstance(ref, JobKey) else {"id": ref}
        with map_caller_errors(f"moving job {ref}"):

            def move(queue: QueueSettings) -> JobStatus:
                request = self._counted(Request(at=at, delay=delay))
                moved = self._deployed.reschedule(queue).run(**named, at=request.at, delay=request.delay, call=call)
                return moved_status(moved, queue=queue, table=self._deployed.table, now=self._deployed.clock.now())

            return Job.of_status(*self._retry_with_new_settings(ref.queue, move))

    def page(
        self, queue: str, *, state: str, start: datetime | None, end: datetime | None, kind: str | None, after: str
    ) -> tuple[Sequence[Any], str]:
        with map_caller_errors(f"listing jobs of queue {queue}"):
            now, is_scheduled = self._deployed.clock.now(), state == State.SCHEDULED
            # What goes on begins behind `after`: the present has moved since.
            first, end = start or (now if is_scheduled and not after else instant.EPOCH), end or listing.FAR_END
            span = listing.Span(start=first, end=end, after=after, limit=listing.MOST_JOBS, kind=kind)
            settings, table, spread = self._published.queue(queue), self._deployed.table, self._deployed.spread
            where: dict[str, Any] = {"queue": settings, "table": table, "now": now, "spread": spread}
            if is_scheduled:
                page = listing.list_jobs(span, **where)
                return [ScheduledJob.of_job(job) for job in page.jobs], page.after or ""
            tracked = listing.list_tracked(span, state=None if state == ATTEMPTED else State(state), **where)
            return [Job.of_status(*each) for each in tracked.jobs], tracked.before or ""

    def queues(self) -> Sequence[QueueSettings]:
        with map_caller_errors("reading the queues"):
            return self._published.queues()

    def overview(self, queue: str) -> Overview:
        with map_caller_errors(f"reading how queue {queue} is doing"):
            return self._deployed.overview(
                self._published.queue(queue), lookahead=timedelta(seconds=self._find().settings.lookahead)
            )

    def set_paused(self, queue: str, paused: bool) -> Control:
        return self._change(queue, control.pause if paused else control.resume)

    def set_rate(self, queue: str, rate: Rate | None) -> Control:
        return self._change(queue, partial(control.set_rate, rate=rate))

    def requester(self) -> Callable[..., dict[str, Any]]:
        raise Forbidden("a direct client has no rights on schedules: connect without direct=True")

    def _counted(self, request: Request) -> Request:
        """Return a request whose delay, if it has one, counts from the latest time that AWS's clock may show."""
        if not request.delay or request.id:
            return request
        moment, delay = self._moment(), timedelta(seconds=request.delay)
        return replace(request, at=min(moment.latest + delay, moment.earliest + FURTHEST), delay=None)

    def _moment(self) -> TimeBounds:
        """Return what AWS's clock shows, read again where this machine's own was set since the last answer."""
        if moment := self._clock.moment():
            return moment
        self._published.settings()
        now = self._clock.now()
        return self._clock.moment() or TimeBounds(earliest=now, latest=now)

    def _change(self, queue: str, change: Callable[..., Control]) -> Control:
        with map_caller_errors(f"pausing queue {queue}, or setting its rate"):
            name = self._published.queue(queue).name
            return change(name, table=self._deployed.table, now=self._deployed.clock.now())

    def _cancelled(self, refs: Sequence[JobRef], *, queue: QueueSettings) -> Sequence[CancelResult | DuelineError]:
        table, clock, spread = self._deployed.table, self._deployed.clock, self._deployed.spread
        cancels = CancelMany(queue=queue, table=table, clock=clock, until=self._until(), spread=spread)
        keys = [ref.key for ref in refs if isinstance(ref, JobKey)]
        return cancels.run_by_keys(keys) if keys else cancels.run([ref for ref in refs if isinstance(ref, JobId)])

    def _cancel_again(self, queue: str, refs: Sequence[JobRef]) -> Sequence[CancelResult | DuelineError]:
        """Cancel what was not found: its partition may be newer than what is known of its queue.

        Where that cannot be read, it is the error of each of these alone.
        """
        try:
            with map_caller_errors(f"reading queue {queue}"):
                settings = self._published.refresh(queue)
        except DuelineError as error:
            return [error.copy(job_id=str(ref) if isinstance(ref, JobId) else None) for ref in refs]
        return self._cancelled(refs, queue=settings)

    def _retry_with_new_settings(self, queue: str, call: Callable[[QueueSettings], T]) -> T:
        """Call again where a job is not found: its partition may be newer than what is known of its queue."""
        try:
            return call(self._published.queue(queue))
        except JobNotFound:
            return call(self._published.refresh(queue))

    def _until(self) -> float:
        return self._deployed.clock.monotonic() + _LONGEST_CALL_SECONDS


def _scheduled(result: SubmitResult | DuelineError, status: JobStatus | DuelineError) -> Job | DuelineError:
    """Return a job that was scheduled, or the error of one that was not."""
    if isinstance(status, DuelineError):
        return as_caller_error(status)
    if isinstance(result, DuelineError):
        return as_caller_error(result)
    return Job.of_status(*status, created=result.is_new and not result.is_repeat)


def connect(name: str, *, session: boto3.Session | None) -> tuple[DirectApi, ports.Clock]:
    """Return a deployment's API without HTTP, and the time by which it counts. It requests nothing yet.

    Its first call raises DeploymentNotFound, DeploymentTooOld, ClientTooOld, Forbidden or Unavailable.
    """
    # A process that forks during a first call would inherit the locks of what that imports.
    for each in _OF_FIRST_CALLS:
        import_module(each)
    clock = ServiceClock()
    here = threads.PerProcess(lambda: session or boto3.Session())

    def find() -> tuple[AwsDeployment, DirectDeployment]:
        deployed = AwsDeployment(name, longest=_LONGEST_REQUEST, session=here(), service_clock=clock)
        with map_caller_errors(f"finding the deployment {name!r}"):
            settings = deployed.find()
        return deployed, DirectDeployment(deployed=deployed, published=deployed.settings_store(), settings=settings)

    located = threads.PerProcess(find)

    def close() -> None:
        for deployed, _ in located.made:
            deployed.clients.close()

    return DirectApi(lambda: located()[1], clock=clock, close=close), clock
