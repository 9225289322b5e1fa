"""The client: schedule, look up, list, reschedule and cancel jobs from Python."""

import random
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self

from dueline import otel
from dueline.client import http_api
from dueline.client.answers import Job
from dueline.client.api import MOST_AT_ONCE, Api, Draft
from dueline.client.by_queue import by_queue
from dueline.client.http_api import MOST_BYTES
from dueline.client.linger import shared_requests
from dueline.client.listed import ScheduledJob
from dueline.client.new_job import NewJob, a_job, bound_of, checked_time
from dueline.client.pages import pages_of
from dueline.client.schedules import Schedules
from dueline.client.single import Single
from dueline.clock import SystemClock
from dueline.errors import DuelineError
from dueline.lookup.control import Control
from dueline.lookup.overview import Overview
from dueline.model.job import JobId, State, queue_name
from dueline.model.queue_settings import QueueSettings
from dueline.model.rate import Rate, rate_of
from dueline.ports import Clock
from dueline.retry.calls import LANES, Calls, attempt, in_lanes
from dueline.retry.pace import Pace
from dueline.retry.patience import Patience

if TYPE_CHECKING:
    import boto3


class Client:
    """Schedules, looks up, lists, reschedules and cancels the jobs of one deployment. Threads may share it.

    Every method retries, as `patience` says, after throttling, AWS failures and broken connections. That is safe: a
    retry never schedules a second job, and repeating any other call changes nothing. Every error is a DuelineError.
    After Throttled or Unavailable a job may have been scheduled all the same. The error then has its `job_id`, or the
    `key` that it went under: scheduled again with `id=` or `key=`, it exists once, however often that is done.
    """

    def __init__(
        self,
        api: Api[Any],
        *,
        patience: Patience | None = None,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        linger: float | timedelta | None = None,
    ) -> None:
        self._api = api
        self._shared = shared_requests(api, linger)
        self._calls = Calls(patience=patience or Patience(), clock=clock or SystemClock(), jitter=jitter)

    @classmethod
    def connect(
        cls,
        name: str = "dueline",
        *,
        url: str | None = None,
        session: "boto3.Session | None" = None,
        direct: bool = False,
        patience: Patience | None = None,
        linger: float | timedelta | None = None,
    ) -> Self:
        """Return a client of the deployment of that name, in the account and region of the AWS session.

        `session` has the credentials that requests are signed with, by default those that boto3 finds. `url` is the
        API of a local run: nothing is looked up on AWS, and requests are signed only if a session is given. A `direct`
        client uses SQS and DynamoDB without the HTTP API, with the rights of a queue's direct producers. With `linger`
        (seconds or a timedelta, 1 s at most), calls of `schedule` and of `cancel` that several threads or tasks make
        within so long of each other travel as one request; one that is alone leaves at once.
        Raises DeploymentNotFound, Forbidden or Unavailable; if direct, DeploymentTooOld or ClientTooOld.
        """
        from dueline.aws import direct_api, gateway

        if direct and url is not None:
            raise ValueError("url and direct are both given: a direct client uses no URL")
        if direct:
            api, clock = direct_api.connect(name, session=session)
            return cls(api, clock=clock, patience=patience, linger=linger)
        http = gateway.connect(name, url=url, session=session, lanes=LANES)
        http_calls = http_api.with_ids(http, clock=SystemClock(), new_uuid=lambda: str(uuid.uuid4()))
        return cls(http_calls, patience=patience, linger=linger)

    def schedule(
        self,
        queue: str,
        payload: object,
        *,
        at: datetime | None = None,
        delay: float | timedelta | None = None,
        key: str | None = None,
        id: str | None = None,
        tenant: str | None = None,
        priority: int = 1,
    ) -> Job:
        """Schedule a job and return it. NewJob describes the arguments.

        Raises InvalidJob, PayloadTooLarge for a payload over 10 MiB, QueueNotFound, or KeyReused or IdReused when the
        key or the id belongs to a job with another payload. A wrong time, key or payload raises before any request.
        """
        job = NewJob(payload=payload, at=at, delay=delay, key=key, id=id, tenant=tenant, priority=priority)
        return self._one_schedule(queue, job).result()

    def schedule_many(self, queue: str, jobs: Iterable[NewJob]) -> list[Job | DuelineError]:
        """Schedule any number of jobs; return for each, in order, the scheduled job or its error.

        One job's error does not affect the others. Several requests run at once, each with up to 500 jobs and 5 MB;
        they get smaller while answers are slow. Patience counts from the last progress. Raises QueueNotFound if
        `queue` cannot be the name of a queue.
        """
        return list(self.schedule_each(queue, jobs))

    def schedule_each(self, queue: str, jobs: Iterable[NewJob]) -> Generator[Job | DuelineError, None, None]:
        """Schedule jobs as schedule_many does, and yield the results, in order, as they arrive.

        `jobs` is read as jobs are sent, in the thread that iterates over the results: neither jobs nor results need to
        fit into memory. If that thread stops early, some of the jobs that were read stay unsent. A process that is
        forked meanwhile cannot read on: RuntimeError.
        """
        pace = Pace(most=MOST_AT_ONCE)
        schedule = partial(self._schedule, queue_name(queue), pace=pace)
        trace = otel.current()
        drafts = (attempt(lambda each: self._api.draft(a_job(each), trace=trace), job) for job in jobs)
        cut = pace.cut(drafts, size=lambda each: getattr(each, "size", 0), most_bytes=MOST_BYTES)
        return (result for results in in_lanes(schedule, cut) for result in results)

    def get(self, id: str) -> Job:
        """Return a job and its state. Raises JobNotFound once it is past its retention."""
        parsed = JobId.parse(id)
        return self._calls.ask(lambda: self._api.get(parsed))

    def jobs(self, queue: str, *, start: datetime | None = None, end: datetime | None = None) -> Iterator[ScheduledJob]:
        """Yield the scheduled jobs in order of due time, from `start` (by default now) to just before `end`.

        The next page is fetched when the last one is used up. Jobs that are scheduled or cancelled meanwhile may or may
        not appear. Raises InvalidJob, before any request, for a time without a time zone or outside the years 1970 to
        9998.
        """
        first, last = bound_of(start, name="start"), bound_of(end, name="end")
        return pages_of(self._calls, partial(self._api.page, queue_name(queue), start=first, end=last))

    def reschedule(self, id: str, *, at: datetime | None = None, delay: float | timedelta | None = None) -> Job:
        """Move a job to `at`, or to `delay` from now by the deployment's clock; return the new job that replaces it.

        The new job has a new id, and the job with the old id never reaches its queue. Raises AlreadyFinished when the
        job was already sent to its queue, cancelled or rescheduled, and RunOfSchedule when a schedule made it: then
        there is no new job. Raises JobNotFound or InvalidJob. After Throttled or Unavailable either the old job exists
        or the new one, whose id is the error's `job_id`.
        """
        parsed, asked, key = JobId.parse(id), checked_time(at, delay), str(uuid.uuid4())
        return self._calls.ask(partial(self._api.reschedule, parsed, at=asked.at, delay=asked.delay, key=key))

    def run_now(self, id: str) -> Job:
        """Move a scheduled job to now; return the new job that replaces it. It reaches its queue within seconds.

        Raises as `reschedule` does: AlreadyFinished also for a job that is due within minutes and on its way already.
        """
        return self.reschedule(id, delay=0)

    def cancel(self, id: str) -> State:
        """Cancel (unschedule) a job; return CANCELLED or CANCEL_REQUESTED.

        CANCELLED: the job never reaches its queue. CANCEL_REQUESTED: it is or may be in its queue already; workers
        that use this library skip it if they have not begun it. Raises JobNotFound for a malformed id.
        """
        return self._one_cancel(id).result()

    def cancel_many(self, ids: Iterable[str]) -> list[State | DuelineError]:
        """Cancel any number of jobs; return for each, in order, its state as `cancel` does, or its error.

        Requests are batched as those of schedule_many.
        """
        pace = Pace(most=MOST_AT_ONCE)
        cut = pace.cut((attempt(JobId.parse, id) for id in ids), size=lambda _: 0, most_bytes=MOST_BYTES)
        return list(chain.from_iterable(in_lanes(partial(self._cancel, pace=pace), cut)))

    def queues(self) -> list[QueueSettings]:
        """Return the settings of all queues of the deployment."""
        return list(self._calls.ask(self._api.queues))

    def queue(self, name: str) -> Overview:
        """Return how a queue is doing: what is scheduled, waiting and dead. Raises QueueNotFound."""
        checked = queue_name(name)
        return self._calls.ask(lambda: self._api.overview(checked))

    def pause(self, queue: str) -> Control:
        """Pause a queue: within 5 s its workers begin no more jobs, until it is resumed. Return its pause and rate.

        Jobs that have begun run to their end. Jobs are still scheduled and sent to the queue. Raises QueueNotFound.
        """
        checked = queue_name(queue)
        return self._calls.ask(lambda: self._api.pause(checked))

    def resume(self, queue: str) -> Control:
        """Resume a paused queue, as fast as its rate allows. Return its pause and rate. Raises QueueNotFound."""
        checked = queue_name(queue)
        return self._calls.ask(lambda: self._api.resume(checked))

    def set_rate(self, queue: str, rate: Rate | str | None) -> Control:
        """Limit how many jobs all workers of a queue together begin, such as "50/s"; None lifts the limit.

        Workers follow it within 5 s; a rate of 0 stops them. Returns the queue's pause and rate. Raises QueueNotFound,
        or InvalidJob, before any request, for a malformed rate.
        """
        checked, limit = queue_name(queue), rate_of(rate)
        return self._calls.ask(lambda: self._api.set_rate(checked, limit))

    def schedules(self, queue: str) -> Schedules:
        """Return the schedules of a queue, which make jobs by a rule. Nothing is asked yet.

        Raises QueueNotFound if `queue` cannot be the name of a queue, and Forbidden for a direct client.
        """
        return Schedules(self._api.schedules(queue_name(queue)), calls=self._calls)

    def _one_schedule(self, queue: str, job: NewJob) -> Single[Draft, Job]:
        draft = self._api.draft(job, trace=otel.current())
        ask, share = self._api.schedule, self._shared.schedule
        return Single(
            queue_name(queue), draft, ask=ask, share=share, calls=self._calls, again=_after, key_of=attrgetter("key")
        )

    def _one_cancel(self, id: str) -> Single[JobId, State]:
        parsed = JobId.parse(id)
        return Single(parsed.queue, parsed, ask=self._api.cancel, share=self._shared.cancel, calls=self._calls)

    def _schedule(self, queue: str, drafts: Sequence[Draft | DuelineError], *, pace: Pace) -> list[Job | DuelineError]:
        results = self._calls.ask_for_each(partial(self._api.schedule, queue), drafts, pace=pace, again=_after)
        for draft, result in zip(drafts, results, strict=True):
            if isinstance(result, DuelineError) and not isinstance(draft, DuelineError):
                result.key = draft.key or result.key
        return results

    def _cancel(self, ids: Sequence[JobId | DuelineError], *, pace: Pace) -> list[State | DuelineError]:
        return by_queue(
            ids, lambda queue, some: self._calls.ask_for_each(partial(self._api.cancel, queue), some, pace=pace)
        )


def _after(draft: Draft, error: DuelineError) -> Draft:
    return draft.after(error)
