"""Submit: make jobs of requests, and hand each to its queue or to the inbound queue."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, groupby

from dueline.errors import RETRYABLE, DuelineError, InvalidJob, KeyReused, NotYet, QueueNotFound, Unavailable
from dueline.model.job import Job, JobId, Partition, Route
from dueline.model.message import ATTRIBUTES_BYTES, Message, batches
from dueline.model.queue_settings import QueueSettings, not_there
from dueline.model.request import Request, due_of, text_of
from dueline.model.routing import partition_of, route_of, whole_seconds
from dueline.model.text import shown
from dueline.ports import Clock, Payloads, Queue, Refusal, Spread, Table
from dueline.protocol import keys
from dueline.protocol.offload import Content, Offload, content_of, hash_of, inline, is_large


@dataclass(frozen=True, kw_only=True, slots=True)
class _Submission:
    """A job on its way, its payload as it was given, and the delay that its caller gave, which SQS gets as it is."""

    job: Job
    content: Content
    delay: float | None
    key: str | None


# What becomes of a request: a job to submit, one that was submitted before, or an error.
_Draft = _Submission | Job | DuelineError


class Submit:
    """Submits jobs to one queue.

    `level` returns the queue's SQS queue of a priority, `inbound` is the way into the table, which itself is for keys
    alone; `payloads` keeps what is too large for them; `new_uid` returns a random UUID.
    """

    def __init__(
        self,
        queue: QueueSettings,
        *,
        level: Callable[[int], Queue],
        inbound: Queue,
        table: Table,
        payloads: Payloads,
        direct_horizon: timedelta,
        clock: Clock,
        new_uid: Callable[[], str],
        spread: Spread = map,
    ) -> None:
        self._queue = queue
        self._level = level
        self._inbound = inbound
        self._table = table
        self._offload = Offload(queue.name, payloads=payloads, clock=clock)
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
        drafts = [self._draft(request, now=now) for request in requests]
        drafts = self._each(_has_key, partial(self._claim, until=until), drafts)
        drafts = self._each(_is_large, partial(self._place, until=until), drafts)
        submissions = {draft.job.id: draft for draft in drafts if isinstance(draft, _Submission)}
        sent = partial(self._send_all, submissions.values(), until=until)
        failures = dict(chain.from_iterable(sent(route) for route in Route))
        done = [(each.key, id) for id, each in submissions.items() if each.key and id not in failures]
        keys.note_done(done, table=self._table, spread=self._spread)
        return [failures.get(draft.job.id, draft.job) if isinstance(draft, _Submission) else draft for draft in drafts]

    def _draft(self, request: Request | DuelineError, *, now: datetime) -> _Draft:
        if isinstance(request, DuelineError):
            return request
        try:
            id = request.again or self._new_id(due_of(request, now=now), now=now)
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
            delay = None if request.again else request.delay
            return _Submission(job=job, content=content, delay=delay, key=key)
        except InvalidJob as error:
            return error

    def _new_id(self, due: datetime, *, now: datetime) -> JobId:
        uid = self._new_uid()
        partition = Partition(queue=self._queue.name, number=partition_of(uid, self._queue.partitions))
        route = route_of(due, now=now, direct_horizon=self._direct_horizon)
        return JobId(partition=partition, route=route, due=due, uid=uid)

    def _each(
        self, chosen: Callable[[_Submission], bool], do: Callable[[_Submission], _Draft], drafts: Sequence[_Draft]
    ) -> list[_Draft]:
        """Return the drafts as they are after something was done with the chosen ones, several at once."""
        picked = [draft for draft in drafts if isinstance(draft, _Submission) and chosen(draft)]
        done = dict(zip(map(id, picked), self._spread(do, picked), strict=True))
        return [done.get(id(draft), draft) for draft in drafts]

    def _claim(self, draft: _Submission, *, until: float) -> _Draft:
        if self._clock.monotonic() >= until:
            return _out_of_time(draft.job.id)
        try:
            hash, now = hash_of(draft.content), self._clock.now()
            job = keys.claim(draft.key or "", draft.job, payload_hash=hash, table=self._table, now=now)
        except RETRYABLE as error:
            return error.copy(job_id=str(draft.job.id))
        except KeyReused as error:
            return error
        if isinstance(job, keys.Repeat):
            return job
        return draft if job == draft.job else replace(draft, job=job, delay=None)

    def _place(self, draft: _Submission, *, until: float) -> _Draft:
        """Bring a payload to where it belongs, before its job is submitted."""
        if self._clock.monotonic() >= until:
            return _out_of_time(draft.job.id)
        try:
            return replace(draft, job=self._offload.place(draft.job, draft.content))
        except InvalidJob as error:
            return error
        except RETRYABLE as error:
            return error.copy(job_id=str(draft.job.id))

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
            return [(id, _out_of_time(id)) for id in ids]
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


def _has_key(submission: _Submission) -> bool:
    return submission.key is not None


def _is_large(submission: _Submission) -> bool:
    return is_large(submission.content)


def _level_of(submission: _Submission) -> int:
    """Return to which of its queue's levels a job is sent: none of them while its way is by the table."""
    return submission.job.priority if submission.job.id.route is Route.DIRECT else 0


def _refused(refusal: Refusal) -> DuelineError:
    return InvalidJob(refusal.reason) if refusal.final else Unavailable(refusal.reason)


def _out_of_time(id: JobId) -> DuelineError:
    return NotYet("out of time: it was not sent").copy(job_id=str(id))


def _checked_priority(priority: int, *, queue: QueueSettings) -> int:
    if not 1 <= priority <= queue.priorities:
        allowed = f"it must be from 1 to {queue.priorities}, the priorities of queue {queue.name!r}"
        raise InvalidJob(f"priority is {shown(priority)}: {allowed}")
    return priority
