"""The client: schedule, look up, list, move and cancel jobs from Python."""

import random
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, TypeVar

from dueline import otel
from dueline.client.answers import Job, ScheduledJob
from dueline.client.api import MOST_AT_ONCE, Api, Draft
from dueline.client.http_api import MOST_BYTES, HttpApi
from dueline.client.new_job import NewJob, a_job, bound_of
from dueline.clock import SystemClock
from dueline.errors import DuelineError, InvalidJob
from dueline.lookup.control import Control
from dueline.lookup.overview import Overview
from dueline.model.job import JobId, State, queue_name
from dueline.model.queue_settings import QueueSettings
from dueline.model.rate import Rate, rate_of
from dueline.model.request import Request
from dueline.ports import Clock
from dueline.retry.calls import LANES, Calls, attempt, in_lanes
from dueline.retry.pace import Pace
from dueline.retry.patience import Patience

if TYPE_CHECKING:
    import boto3

A = TypeVar("A")


class Client:
    """Schedules, looks up, lists, moves and cancels jobs of one deployment. Threads may share it.

    Every call tries again, as `patience` says, after Throttled, Unavailable and connections that fail. That is safe: a
    job that is sent again is the same job, and the other calls change nothing the second time. What it raises is a
    DuelineError. When it gives up on a job with Throttled or Unavailable, the job may be scheduled all the same: the
    error has its `key`, under which it can be scheduled again and is there once, or its `job_id`.
    """

    def __init__(
        self,
        api: Api[Any],
        *,
        patience: Patience | None = None,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._api = api
        self._clock = clock or SystemClock()
        self._calls = Calls(patience=patience or Patience(), clock=self._clock, jitter=jitter)

    @classmethod
    def connect(
        cls,
        name: str = "dueline",
        *,
        url: str | None = None,
        session: "boto3.Session | None" = None,
        direct: bool = False,
        patience: Patience | None = None,
    ) -> Self:
        """Return a client of the deployment of that name, found in the account and region of the AWS session.

        `session` has the credentials that requests are signed with, by default those that boto3 finds. With `url`, that
        of a local run, nothing is looked up, and without a session of one's own nothing is signed. A `direct` client
        goes straight to SQS and DynamoDB, for producers that the platform team trusts with all queues.
        Raises DeploymentNotFound, Forbidden or Unavailable.
        """
        from dueline.aws import direct_api, gateway

        if direct and url is not None:
            raise ValueError("url and direct are both given: a direct client asks no URL")
        if direct:
            api, clock = direct_api.connect(name, session=session)
            return cls(api, clock=clock, patience=patience)
        http = gateway.connect(name, url=url, session=session, lanes=LANES)
        return cls(HttpApi(http, clock=SystemClock(), new_key=_new_key), patience=patience)

    def schedule(
        self,
        queue: str,
        payload: object,
        *,
        at: datetime | None = None,
        delay: float | timedelta | None = None,
        key: str | None = None,
        tenant: str | None = None,
        priority: int = 1,
    ) -> Job:
        """Schedule a job, which NewJob describes, and return it.

        Raises InvalidJob, before any request where the time, the key or the payload is no good, PayloadTooLarge when
        it has over 10 MiB; QueueNotFound; KeyReused when the key belongs to a job with another payload.
        """
        job = NewJob(payload=payload, at=at, delay=delay, key=key, tenant=tenant, priority=priority)
        draft = self._api.draft(job, trace=otel.current())
        return _only(self._schedule(queue_name(queue), [draft], pace=Pace(most=1)))

    def schedule_many(self, queue: str, jobs: Iterable[NewJob]) -> list[Job | DuelineError]:
        """Schedule each job for itself; return, in their order, the job as it was scheduled or its error.

        They travel several requests at once, each with as many as are answered in good time, 500 and 5 MB at most.
        Patience counts from the last progress: any number of jobs may be given. Raises QueueNotFound for what is no
        name of a queue.
        """
        return list(self.schedule_each(queue, jobs))

    def schedule_each(self, queue: str, jobs: Iterable[NewJob]) -> Generator[Job | DuelineError, None, None]:
        """Schedule as schedule_many does, and yield the results, in order, as they come.

        Jobs are taken from the iterable as they are sent, in the thread that asks for results, so that neither need
        be held. Whoever stops asking leaves some of those that were taken unsent.
        """
        pace = Pace(most=MOST_AT_ONCE)
        schedule = partial(self._schedule, queue_name(queue), pace=pace)
        trace = otel.current()
        drafts = (attempt(lambda each: self._api.draft(a_job(each), trace=trace), job) for job in jobs)
        cut = pace.cut(drafts, size=_size, most_bytes=MOST_BYTES)
        return (result for results in in_lanes(schedule, cut) for result in results)

    def get(self, id: str) -> Job:
        """Look a job up. Raises JobNotFound once it is past its retention."""
        parsed = JobId.parse(id)
        return self._calls.ask(lambda: self._api.get(parsed))

    def jobs(self, queue: str, *, start: datetime | None = None, end: datetime | None = None) -> Iterator[ScheduledJob]:
        """Yield the jobs that are scheduled, in due order, from `start` (by default now) to just before `end`.

        A page is fetched when the one before it is used up. What is scheduled or cancelled meanwhile may be among them
        or not. Raises InvalidJob, before any request, for a time without a zone or outside the years 1970 to 9998.
        """
        first, last = bound_of(start, name="start"), bound_of(end, name="end")
        return self._pages(partial(self._api.page, queue_name(queue), start=first, end=last))

    def reschedule(self, id: str, *, at: datetime | None = None, delay: float | timedelta | None = None) -> Job:
        """Move a job to `at`, or to `delay` from now, by the deployment's clock; return the job that took its place.

        That is a promise: the job of the old id never reaches its queue. Raises AlreadyFinished when it has left, was
        cancelled or was moved before: then there is no second job. Raises JobNotFound or InvalidJob. After Throttled or
        Unavailable either the old job is there or the new one, whose id is the error's `job_id`.
        """
        parsed, asked = JobId.parse(id), self._checked_time(at, delay)
        move = partial(self._api.reschedule, parsed, at=asked.at, delay=asked.delay, key=_new_key())
        return self._calls.ask(move)

    def cancel(self, id: str) -> State:
        """Take a job back; return CANCELLED or CANCEL_REQUESTED.

        CANCELLED is a promise: the job never reaches its queue. CANCEL_REQUESTED: it is or may be there already.
        Raises JobNotFound for what is no id of a job.
        """
        return _only(self._cancel([JobId.parse(id)], pace=Pace(most=1)))

    def cancel_many(self, ids: Iterable[str]) -> list[State | DuelineError]:
        """Take each job back for itself; return, in their order, what `cancel` returns or raises.

        They travel as the jobs of schedule_many do.
        """
        pace = Pace(most=MOST_AT_ONCE)
        cut = pace.cut((attempt(JobId.parse, id) for id in ids), size=lambda _: 0, most_bytes=MOST_BYTES)
        return list(chain.from_iterable(in_lanes(partial(self._cancel, pace=pace), cut)))

    def queues(self) -> list[QueueSettings]:
        """Return the deployment's queues with their settings."""
        return list(self._calls.ask(self._api.queues))

    def queue(self, name: str) -> Overview:
        """Return how a queue is doing. Raises QueueNotFound."""
        known = queue_name(name)
        return self._calls.ask(lambda: self._api.overview(known))

    def pause(self, queue: str) -> Control:
        """Let a queue's workers begin no more jobs, within 5 s, until it is resumed; return what holds then.

        What they have begun they end, and jobs go on being scheduled and handed to the queue. Raises QueueNotFound.
        """
        known = queue_name(queue)
        return self._calls.ask(lambda: self._api.pause(known))

    def resume(self, queue: str) -> Control:
        """Let a queue's workers go on, as fast as its rate allows; return what holds then. Raises QueueNotFound."""
        known = queue_name(queue)
        return self._calls.ask(lambda: self._api.resume(known))

    def set_rate(self, queue: str, rate: Rate | str | None) -> Control:
        """Limit how many jobs a queue's workers begin, all together, to a rate such as "50/s"; None lifts the limit.

        Workers heed it within 5 s; 0 jobs stops them. Returns what holds then. Raises QueueNotFound, or InvalidJob,
        before any request, for what is no rate.
        """
        known, limit = queue_name(queue), rate_of(rate)
        return self._calls.ask(lambda: self._api.set_rate(known, limit))

    def _schedule(self, queue: str, drafts: Sequence[Draft | DuelineError], *, pace: Pace) -> list[Job | DuelineError]:
        schedule = partial(self._api.schedule, queue)
        results = self._calls.ask_for_each(schedule, drafts, pace=pace, again=lambda draft, error: draft.after(error))
        for draft, result in zip(drafts, results, strict=True):
            if isinstance(result, DuelineError) and not isinstance(draft, DuelineError):
                result.key = draft.key
        return results

    def _cancel(self, ids: Sequence[JobId | DuelineError], *, pace: Pace) -> list[State | DuelineError]:
        results: dict[int, State | DuelineError] = {}
        for queue in dict.fromkeys(map(_queue_of, ids)):
            places = [place for place, id in enumerate(ids) if _queue_of(id) == queue]
            cancel = partial(self._api.cancel, queue)
            of_queue = self._calls.ask_for_each(cancel, [ids[place] for place in places], pace=pace)
            results |= zip(places, of_queue, strict=True)
        return [results[place] for place in range(len(ids))]

    def _pages(self, ask: Callable[..., tuple[Sequence[ScheduledJob], str]]) -> Iterator[ScheduledJob]:
        jobs, after = self._calls.ask(partial(ask, after=""))
        yield from jobs
        while after:
            jobs, after = self._calls.ask(partial(ask, after=after))
            yield from jobs

    def _checked_time(self, at: datetime | None, delay: float | timedelta | None) -> Request:
        if at is None and delay is None:
            raise InvalidJob("at and delay are both missing: give one of them")
        return NewJob(payload=None, at=at, delay=delay).checked(now=None)


def _only(results: Sequence[A | DuelineError]) -> A:
    (result,) = results
    if isinstance(result, DuelineError):
        raise result
    return result


def _queue_of(id: JobId | DuelineError) -> str:
    return id.queue if isinstance(id, JobId) else ""


def _size(draft: Draft | DuelineError) -> int:
    return 0 if isinstance(draft, DuelineError) else draft.size


def _new_key() -> str:
    return str(uuid.uuid4())
