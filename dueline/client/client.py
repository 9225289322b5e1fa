"""The client: schedule, look up, list, reschedule and cancel jobs from Python."""

import random
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from dueline import otel
from dueline.client.api import MOST_BYTES, Api, Draft, JobRef, job_ref
from dueline.client.coalescing import RequestCoalescer, linger_seconds
from dueline.client.http import HttpApi
from dueline.client.models import ExistsRule, Job, NewJob, ScheduledJob, checked_bound
from dueline.client.schedules import Schedules, paginate
from dueline.core.clock import SystemClock
from dueline.core.job import JobId, State, check_kind, queue_name
from dueline.core.message import batches
from dueline.core.overview import Control, Overview
from dueline.core.ports import Clock
from dueline.core.queue_settings import QueueSettings, Rate
from dueline.core.request import Default
from dueline.core.retry import CALL_ITEMS, LANES, BatchSize, Calls, Patience, attempt, in_lanes
from dueline.core.status import ATTEMPTED, OF_WORKERS
from dueline.core.text import shown
from dueline.core.trace import TraceContext
from dueline.errors import DuelineError, InvalidJob

if TYPE_CHECKING:
    import boto3

T = TypeVar("T")
TransportName = Literal["invoke", "http"]


def rate_of(rate: object) -> Rate | None:
    """Return the rate that a caller gives as a Rate, a text or None (no limit). Raises InvalidJob.

    >>> rate_of("50/s")
    Rate(jobs=50, seconds=1)
    """
    if isinstance(rate, str):
        return Rate.parse(rate)
    if rate is None or isinstance(rate, Rate):
        return rate
    raise InvalidJob(f"rate is {shown(rate)}: it must be a Rate, a text such as 50/s, or None for no limit")


class Client:
    """Schedules, looks up, lists, reschedules and cancels the jobs of one deployment. Threads may share it.

    `default` returns what JSON can write in place of what it cannot in a payload, as that of json.dumps does.
    Leaving a `with` block closes the client.

    Every method retries, as `patience` says, after throttling, AWS failures and broken connections. That is safe: a
    retry never schedules a second job, and repeating any other call changes nothing. Every error is a DuelineError.
    After Throttled or Unavailable, or an error of a retry after these, a job may have been scheduled all the same. The
    error then has its `job_id`, or the `idempotency_key` of the call: scheduled again with `id=` or `idempotency_key=`,
    it exists once, however often that is done.
    """

    def __init__(
        self,
        api: Api,
        *,
        patience: Patience | None = None,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
        linger: float | timedelta | None = None,
        default: Default | None = None,
    ) -> None:
        # Once there is a client, a process forks while nothing is imported.
        otel.is_installed()
        self._api, self._default = api, default
        self._calls = Calls(patience=patience or Patience(), clock=clock or SystemClock(), jitter=jitter)
        seconds = linger_seconds(linger)
        self._lingers = seconds > 0
        self._scheduling: RequestCoalescer[Draft, Job] = RequestCoalescer(
            api.schedule_many, seconds=seconds, size=attrgetter("size"), group=attrgetter("group")
        )
        self._cancelling: RequestCoalescer[JobRef, State] = RequestCoalescer(
            api.cancel_many, seconds=seconds, group=type
        )

    @classmethod
    def connect(
        cls,
        name: str = "dueline",
        *,
        url: str | None = None,
        session: "boto3.Session | None" = None,
        direct: bool = False,
        transport: TransportName | None = None,
        patience: Patience | None = None,
        linger: float | timedelta | None = None,
        default: Default | None = None,
    ) -> Self:
        """Return a client of the deployment of that name, in the account and region of the AWS session.

        It requests nothing of AWS yet. Its first call finds the deployment, and raises DeploymentNotFound, Forbidden or
        Unavailable; if direct, DeploymentTooOld or ClientTooOld.
        `session` has the credentials that requests are signed with, by default those that boto3 finds. The API's
        function is invoked by the aliases of queues; where that is refused, requests go over HTTP, by API Gateway.
        `transport` allows one of the two alone. `url` is the ARN of the function, or the API of a local run: nothing is
        looked up on AWS, and HTTP requests are signed only if a session is given. A `direct` client uses SQS and
        DynamoDB without the API, with the rights of a queue's direct producers. With `linger` (seconds or a timedelta,
        1 s at most), calls of `schedule` and of `cancel` that several threads or tasks make within so long of each
        other travel as one request; one that is alone leaves at once.
        """
        from dueline.aws import api_transport, direct_api

        if direct and (url is not None or transport is not None):
            raise ValueError("direct is given with url or transport: a direct client uses neither")
        options: dict[str, Any] = {"patience": patience, "linger": linger, "default": default}
        if direct:
            api, clock = direct_api.connect(name, session=session)
            return cls(api, clock=clock, **options)
        api_transport.check_transport(transport, url=url)
        where: dict[str, Any] = {"url": url, "session": session, "transport": transport}
        connect = partial(api_transport.connect, name, lanes=LANES, **where)
        return cls(HttpApi(connect, clock=SystemClock()), **options)

    def close(self) -> None:
        """Close the connections that the client keeps. A later call opens new ones."""
        self._api.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def schedule(
        self,
        queue: str,
        payload: object,
        *,
        at: datetime | None = None,
        delay: float | timedelta | None = None,
        key: str | None = None,
        if_exists: ExistsRule = "keep",
        id: str | None = None,
        idempotency_key: str | None = None,
        kind: str | None = None,
        tenant: str | None = None,
        priority: int = 1,
    ) -> Job:
        """Schedule a job and return it. NewJob describes the arguments.

        Raises InvalidJob, PayloadTooLarge for a payload over 10 MiB, QueueNotFound, KeyReused or IdReused when the key
        or the id belongs to a job with another payload, or JobExists. A wrong time, key, kind or payload raises before
        any request.
        """
        time: dict[str, Any] = {"at": at, "delay": delay}
        which: dict[str, Any] = {"key": key, "if_exists": if_exists, "id": id, "idempotency_key": idempotency_key}
        job = NewJob(payload=payload, **time, **which, kind=kind, tenant=tenant, priority=priority)
        draft = self._draft(job, otel.current())
        return self._calls.run(partial(self._schedule_once, queue_name(queue), draft))

    def schedule_many(self, queue: str, jobs: Iterable[NewJob]) -> list[Job | DuelineError]:
        """Schedule any number of jobs; return for each, in order, the scheduled job or its error.

        One job's error does not affect the others. Several requests run at once, each with up to 100 jobs and 5 MB,
        and with half as many once one was unavailable. Patience counts from the last progress. Raises QueueNotFound
        if `queue` cannot be the name of a queue.
        """
        return list(self.schedule_each(queue, jobs))

    def schedule_each(self, queue: str, jobs: Iterable[NewJob]) -> Generator[Job | DuelineError, None, None]:
        """Schedule jobs as schedule_many does, and yield the results, in order, as they arrive.

        `jobs` is read as jobs are sent, in the thread that iterates over the results: neither jobs nor results need to
        fit into memory. If that thread stops early, some of the jobs that were read stay unsent.
        """
        schedule = partial(self._schedule_batch, queue_name(queue), size=BatchSize())
        trace = otel.current()

        def draft(job: object) -> Draft:
            if not isinstance(job, NewJob):
                # It is not quoted: it may be a payload.
                raise InvalidJob(f"a job is of type {type(job).__name__}: it must be a NewJob")
            return self._draft(job, trace)

        requests = _cut(
            (attempt(draft, job) for job in _several(jobs, name="jobs")), size=lambda each: getattr(each, "size", 0)
        )
        return (result for results in in_lanes(schedule, requests) for result in results)

    def get(self, id: str | None = None, *, queue: str | None = None, key: str | None = None) -> Job:
        """Return a job and its state, by its `id`, or by its `queue` and `key`; a ScheduledJob while it waits.

        An id that the job had before it was moved is as good. Raises JobNotFound where there is none, or once it is
        past its retention; InvalidJob, before any request, for any other combination.
        """
        return self._calls.run(partial(self._api.get, job_ref(id, queue=queue, key=key)))

    def jobs(
        self, queue: str, *, start: datetime | None = None, end: datetime | None = None, kind: str | None = None
    ) -> Iterator[ScheduledJob]:
        """Yield the scheduled jobs, all or of one kind, in order of due time, from `start` (by default now) to `end`.

        The next page is fetched when the last one is used up. Jobs that are scheduled or cancelled meanwhile may or may
        not appear. Raises InvalidJob, before any request, for a time without a time zone or outside the years 1970 to
        9998, and for a wrong kind.
        """
        return self._pages(queue, state=State.SCHEDULED, start=start, end=end, kind=kind)

    def tracked_jobs(
        self,
        queue: str,
        *,
        state: State | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        kind: str | None = None,
    ) -> Iterator[Job]:
        """Yield the jobs that workers of a queue with `track: true` have received, the last due first.

        All, or those in one of the states that they record: RUNNING (also where the worker has died since), DISPATCHED
        (between two attempts), SUCCEEDED, FAILED or SKIPPED. Pages, times and errors are as of `jobs`; a queue that
        does not track its jobs raises InvalidJob.
        """
        if state is not None and state not in OF_WORKERS:
            raise InvalidJob(f"state is {state}: it must be one of {', '.join(OF_WORKERS)}")
        return self._pages(queue, state=state or ATTEMPTED, start=start, end=end, kind=kind)

    def reschedule(
        self,
        id: str | None = None,
        *,
        queue: str | None = None,
        key: str | None = None,
        at: datetime | None = None,
        delay: float | timedelta | None = None,
    ) -> Job:
        """Move a job to `at`, or to `delay` from now by the deployment's clock; return it as it is then.

        The job is that of an `id`, any that it ever had, or of a `queue` and `key`. It gets a new id and keeps its key;
        a job with an earlier id never reaches its queue. With a `delay` of 0 it reaches it within seconds. Raises
        AlreadyFinished when the job was sent to its queue, is on its way there, or was cancelled, and RunOfSchedule
        when a schedule made it: then nothing is changed. Raises JobNotFound or InvalidJob. After Throttled or
        Unavailable it is as it was or moved; then its id is the error's `job_id`.
        """
        ref, call = job_ref(id, queue=queue, key=key), str(uuid.uuid4())
        if at is None and delay is None:
            raise InvalidJob("at and delay are both missing: give one of them")
        time = NewJob(payload=None, at=at, delay=delay).checked(now=None)
        return self._calls.run(partial(self._api.reschedule, ref, at=time.at, delay=time.delay, call=call))

    def cancel(self, id: str | None = None, *, queue: str | None = None, key: str | None = None) -> State:
        """Cancel (unschedule) a job, by its `id` or by its `queue` and `key`; return CANCELLED or CANCEL_REQUESTED.

        CANCELLED: the job never reaches its queue. CANCEL_REQUESTED: it is or may be in its queue already; workers
        that use this library skip it if they have not started it. An id that the job had before it was moved is as
        good. Raises JobNotFound for a malformed id or a key without a job, and InvalidJob, before any request, for any
        other combination.
        """
        ref = job_ref(id, queue=queue, key=key)
        return self._calls.run(partial(self._cancelling.send, ref.queue, ref))

    def cancel_many(
        self, ids: Iterable[str] | None = None, *, queue: str | None = None, keys: Iterable[str] | None = None
    ) -> list[State | DuelineError]:
        """Cancel any number of jobs, by their `ids`, or of one `queue` by their `keys`.

        Returns for each, in order, its state as `cancel` does, or its error. Requests are batched as those of
        schedule_many. Raises InvalidJob, before any request, for any other combination.
        """
        refs: Iterator[JobRef | DuelineError]
        if ids is not None and queue is None and keys is None:
            refs = (attempt(JobId.parse, id) for id in _several(ids, name="ids"))
        elif ids is None and queue is not None and keys is not None:
            of_key = partial(job_ref, None, queue=queue_name(queue))
            refs = (attempt(lambda key: of_key(key=key), key) for key in _several(keys, name="keys"))
        else:
            raise InvalidJob("give ids, or a queue and keys")
        requests = _cut(refs, size=lambda _: 0)
        return list(chain.from_iterable(in_lanes(partial(self._cancel_batch, size=BatchSize()), requests)))

    def queues(self) -> list[QueueSettings]:
        """Return the settings of all queues of the deployment."""
        return list(self._calls.run(self._api.queues))

    def queue(self, name: str) -> Overview:
        """Return how a queue is doing: what is scheduled, waiting and dead. Raises QueueNotFound."""
        return self._calls.run(partial(self._api.overview, queue_name(name)))

    def pause(self, queue: str) -> Control:
        """Pause a queue: within 5 s its workers start no more jobs, until it is resumed. Return its pause and rate.

        Jobs that have started run to their end. Jobs are still scheduled and sent to the queue. Raises QueueNotFound.
        """
        return self._calls.run(partial(self._api.set_paused, queue_name(queue), True))

    def resume(self, queue: str) -> Control:
        """Resume a paused queue, as fast as its rate allows. Return its pause and rate. Raises QueueNotFound."""
        return self._calls.run(partial(self._api.set_paused, queue_name(queue), False))

    def set_rate(self, queue: str, rate: Rate | str | None) -> Control:
        """Limit how many jobs all workers of a queue together start, such as "50/s"; None lifts the limit.

        Workers follow it within 5 s; a rate of 0 stops them. Returns the queue's pause and rate. Raises QueueNotFound,
        or InvalidJob, before any request, for a malformed rate.
        """
        return self._calls.run(partial(self._api.set_rate, queue_name(queue), rate_of(rate)))

    def schedules(self, queue: str) -> Schedules:
        """Return the schedules of a queue, which make jobs by a rule. It makes no request yet.

        Raises QueueNotFound if `queue` cannot be the name of a queue, and Forbidden for a direct client.
        """
        return Schedules(queue_name(queue), self._api.requester(), calls=self._calls, default=self._default)

    def _pages(
        self, queue: str, *, state: str, start: datetime | None, end: datetime | None, kind: str | None
    ) -> Iterator[Any]:
        first, last = checked_bound(start, name="start"), checked_bound(end, name="end")
        check_kind(kind)
        page = partial(self._api.page, queue_name(queue), state=state, start=first, end=last, kind=kind)
        return paginate(lambda after: self._calls.run(partial(page, after=after)))

    def _draft(self, job: NewJob, trace: TraceContext | None) -> Draft:
        return self._api.draft(job, trace=trace, default=self._default)

    def _schedule_once(self, queue: str, draft: Draft) -> Job:
        try:
            return self._scheduling.send(queue, draft)
        except DuelineError as error:
            raise draft.named(error) from error.__cause__

    def _schedule_batch(
        self, queue: str, drafts: Sequence[Draft | DuelineError], *, size: BatchSize
    ) -> list[Job | DuelineError]:
        def send(some: Sequence[Draft]) -> Sequence[Job | DuelineError]:
            try:
                results = self._api.schedule_many(queue, some)
            except DuelineError as error:
                results = [error.copy() for _ in some]
            return _named(some, results)

        return _named(drafts, self._calls.run_each(send, drafts, size=size))

    def _cancel_batch(self, refs: Sequence[JobRef | DuelineError], *, size: BatchSize) -> list[State | DuelineError]:
        results: dict[int, State | DuelineError] = {}
        queues = ["" if isinstance(ref, DuelineError) else ref.queue for ref in refs]
        for queue in dict.fromkeys(queues):
            of_queue = {place: refs[place] for place, each in enumerate(queues) if each == queue}
            cancel = partial(self._api.cancel_many, queue)
            states = self._calls.run_each(cancel, list(of_queue.values()), size=size)
            results |= zip(of_queue, states, strict=True)
        return [results[place] for place in range(len(refs))]


def _named(drafts: Sequence[Draft | DuelineError], results: Sequence[Job | DuelineError]) -> list[Job | DuelineError]:
    """Return the results of drafts, in whose errors the drafts are named."""
    return [
        draft.named(result) if isinstance(result, DuelineError) and isinstance(draft, Draft) else result
        for draft, result in zip(drafts, results, strict=True)
    ]


def _several(items: Iterable[T], *, name: str) -> Iterable[T]:
    """Return what a caller gives as several. Raises InvalidJob for one text, of which each character would be one."""
    if isinstance(items, Iterable) and not isinstance(items, str | bytes):
        return items
    # It is not quoted: it may be a payload.
    raise InvalidJob(f"{name} is of type {type(items).__name__}: it must be a list, or another iterable, of {name}")


def _cut(items: Iterable[T], *, size: Callable[[T], int]) -> Iterator[list[T]]:
    """Cut items, in order, into batches for one call each; none of the next batch is read before that is wanted."""
    iterator = iter(items)
    for first in iterator:
        some = chain([first], islice(iterator, CALL_ITEMS - 1))
        yield from batches(some, size=size, most=CALL_ITEMS, most_bytes=MOST_BYTES)
