"""Submit: make jobs of requests, and hand each to its queue or to the inbound queue."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, groupby

from dueline import instant, keys
from dueline.errors import RETRYABLE, DuelineError, InvalidJob, KeyReused, QueueNotFound, Unavailable
from dueline.job import Job, JobId, Partition, Route
from dueline.message import ATTRIBUTES_BYTES, Message, batches
from dueline.ports import Clock, Queue, Refusal, Spread, Table
from dueline.queue import QueueSettings, not_there
from dueline.routing import partition_of, route_of, whole_seconds

FURTHEST = timedelta(days=3653)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A job as it is asked for: `payload` is any JSON value, `delay` is in seconds; without a time it is due now.

    One job is submitted under a `key` within its retention, however often it is asked for. SQS treats a `tenant` fairly
    beside the queue's others. A `priority` is from 1, the most urgent, to as many as the queue has. `again` is the id
    of an earlier try, which may have submitted it: one job then.
    """

    payload: object
    at: datetime | None = None
    delay: float | None = None
    key: str | None = None
    tenant: str | None = None
    priority: int = 1
    again: JobId | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Submission:
    """A job on its way, and the delay that its caller gave, which SQS gets as it is."""

    job: Job
    delay: float | None
    key: str | None


class Submit:
    """Submits jobs to one queue.

    `level` returns the queue's SQS queue of a priority, `inbound` is the way into the table, which itself is for keys
    alone; `new_uid` returns a random UUID.
    """

    def __init__(
        self,
        queue: QueueSettings,
        *,
        level: Callable[[int], Queue],
        inbound: Queue,
        table: Table,
        direct_horizon: timedelta,
        clock: Clock,
        new_uid: Callable[[], str],
        spread: Spread = map,
    ) -> None:
        self._queue = queue
        self._level = level
        self._inbound = inbound
        self._table = table
        self._direct_horizon = direct_horizon
        self._clock = clock
        self._new_uid = new_uid
        self._spread = spread

    def run(self, requests: Sequence[Request | DuelineError], *, until: float) -> list[Job | DuelineError]:
        """Submit each request for itself; return its job or its error, in order.

        Begins no send after `until` (monotonic). An error among the requests, from an earlier check, is handed through.
        After Throttled or Unavailable a job may or may not be scheduled, and the error names its id; after any other
        error it is not. What an earlier call submitted under the same key is a Repeat.
        """
        now = self._clock.now()
        drafts = self._claim_all([self._draft(request, now=now) for request in requests], until)
        submissions = {draft.job.id: draft for draft in drafts if isinstance(draft, _Submission)}
        sent = partial(self._send_all, submissions.values(), until=until)
        failures = dict(chain.from_iterable(sent(route) for route in Route))
        done = [each.key for id, each in submissions.items() if each.key and id not in failures]
        keys.note_done(self._queue.name, done, table=self._table, spread=self._spread)
        return [failures.get(draft.job.id, draft.job) if isinstance(draft, _Submission) else draft for draft in drafts]

    def _draft(self, request: Request | DuelineError, *, now: datetime) -> _Submission | DuelineError:
        if isinstance(request, DuelineError):
            return request
        try:
            id = request.again or self._new_id(due_of(request, now=now), now=now)
            payload, expires = json_text(request.payload), id.due + self._queue.retention
            priority = _checked_priority(request.priority, queue=self._queue)
            job = Job(id=id, payload=payload, expires=expires, tenant=request.tenant, priority=priority)
            key = None if request.key is None else keys.checked(request.key)
            return _Submission(job=job, delay=None if request.again else request.delay, key=key)
        except InvalidJob as error:
            return error

    def _new_id(self, due: datetime, *, now: datetime) -> JobId:
        uid = self._new_uid()
        partition = Partition(queue=self._queue.name, number=partition_of(uid, self._queue.partitions))
        route = route_of(due, now=now, direct_horizon=self._direct_horizon)
        return JobId(partition=partition, route=route, due=due, uid=uid)

    def _claim_all(
        self, drafts: Sequence[_Submission | DuelineError], until: float
    ) -> list[_Submission | Job | DuelineError]:
        """Claim the keys of those that have one, several at once."""
        keyed = [draft for draft in drafts if isinstance(draft, _Submission) and draft.key is not None]
        claimed = dict(zip(map(id, keyed), self._spread(partial(self._claim, until=until), keyed), strict=True))
        return [claimed.get(id(draft), draft) for draft in drafts]

    def _claim(self, draft: _Submission, *, until: float) -> _Submission | Job | DuelineError:
        if self._clock.monotonic() >= until:
            return Unavailable("out of time: it was not sent").copy(job_id=str(draft.job.id))
        try:
            job = keys.claim(draft.key or "", draft.job, table=self._table, now=self._clock.now())
        except RETRYABLE as error:
            return error.copy(job_id=str(draft.job.id))
        except KeyReused as error:
            return error
        if isinstance(job, keys.Repeat):
            return job
        return draft if job == draft.job else replace(draft, job=job, delay=None)

    def _send_all(
        self, submissions: Iterable[_Submission], route: Route, *, until: float
    ) -> Iterable[tuple[JobId, DuelineError]]:
        """Send what takes one route, several batches at once; return the error of each job that was not sent."""
        chosen = sorted((each for each in submissions if each.job.id.route is route), key=_level_of)
        levels = (some for _, some in groupby(chosen, key=_level_of))
        cut = (batches(some, size=lambda each: each.job.size + ATTRIBUTES_BYTES) for some in levels)
        return chain.from_iterable(self._spread(partial(self._send, until=until), chain.from_iterable(cut)))

    def _send(self, batch: Sequence[_Submission], *, until: float) -> list[tuple[JobId, DuelineError]]:
        ids = [each.job.id for each in batch]
        if self._clock.monotonic() >= until:
            return [(id, Unavailable("out of time: it was not sent").copy(job_id=str(id))) for id in ids]
        now = self._clock.now()
        try:
            refusals = self._queue_of(batch[0].job).send([self._message(each, now=now) for each in batch])
        except QueueNotFound as error:
            return [(each.job.id, self._gone(each.job, error)) for each in batch]
        except RETRYABLE as error:
            return [(id, error.copy(job_id=str(id))) for id in ids]
        return [(ids[refusal.index], _refused(refusal).copy(job_id=str(ids[refusal.index]))) for refusal in refusals]

    def _queue_of(self, job: Job) -> Queue:
        return self._level(job.priority) if job.id.route is Route.DIRECT else self._inbound

    def _gone(self, job: Job, error: QueueNotFound) -> DuelineError:
        """Return what a missing queue means: its own may be missing by right, the inbound queue never."""
        if job.id.route is Route.TABLE:
            return Unavailable(str(error)).copy(job_id=str(job.id))
        return not_there(self._queue, priority=job.priority)

    def _message(self, submission: _Submission, *, now: datetime) -> Message:
        job = submission.job
        if job.id.route is Route.TABLE:
            return Message.of(job, group=job.id.queue)
        left = (job.id.due - now).total_seconds() if submission.delay is None else submission.delay
        return Message.of(job, delay=whole_seconds(left, precise=self._queue.precise), group=job.tenant)


def _level_of(submission: _Submission) -> int:
    """Return to which of its queue's levels a job is sent: none of them while its way is by the table."""
    return submission.job.priority if submission.job.id.route is Route.DIRECT else 0


def _refused(refusal: Refusal) -> DuelineError:
    return InvalidJob(refusal.reason) if refusal.final else Unavailable(refusal.reason)


def due_of(request: Request, *, now: datetime) -> datetime:
    """Return when a request is due: `at`, or `now` plus `delay`, in whole milliseconds, and never in the past.

    Raises InvalidJob, naming the field, its value and what is allowed.
    """
    if request.at is not None and request.delay is not None:
        raise InvalidJob("at and delay are both given: give one of them")
    # The present is this millisecond: rounded up, what is due now would wait for a whole second of SQS's.
    present = instant.from_epoch_ms(instant.epoch_ms(now))
    if request.delay is not None:
        return instant.round_up(present + _checked_delay(request.delay))
    return present if request.at is None else max(present, instant.round_up(_checked_at(request.at, now=now)))


def json_text(payload: object) -> str:
    """Return a payload as JSON text, compact, with every character beyond ASCII escaped.

    Raises InvalidJob when it is no JSON value.
    """
    try:
        return json.dumps(payload, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidJob(f"payload is not JSON: {error}") from None


def _checked_priority(priority: int, *, queue: QueueSettings) -> int:
    if not 1 <= priority <= queue.priorities:
        allowed = f"it must be from 1 to {queue.priorities}, the priorities of queue {queue.name!r}"
        raise InvalidJob(f"priority is {str(priority)[:100]}: {allowed}")
    return priority


def _checked_delay(delay: float) -> timedelta:
    furthest = FURTHEST.total_seconds()
    if not 0 <= delay <= furthest:  # also NaN and infinity
        raise InvalidJob(f"delay is {delay}: it must be from 0 to {furthest:.0f} seconds (10 years)")
    return timedelta(seconds=delay)


def _checked_at(at: datetime, *, now: datetime) -> datetime:
    if at.tzinfo is None:
        raise InvalidJob(f"at is {at.isoformat()}, which has no zone: add one, such as Z or +01:00")
    if not instant.EPOCH <= at <= now + FURTHEST:
        latest = instant.text(now + FURTHEST)
        raise InvalidJob(f"at is {at.isoformat()}: it must be from {instant.text(instant.EPOCH)} to {latest}")
    return at
