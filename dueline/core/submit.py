"""Submission: a job on its way to its queue, and how one is made of a request."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, groupby
from operator import attrgetter

from dueline import errors
from dueline.core import idempotency, instant
from dueline.core.dispatch import Dispatcher
from dueline.core.job import JobId, Partition, Route, State, StoredJob, SubmitResult
from dueline.core.keys import JobKeys, Submission, content_hash, row_of
from dueline.core.message import ATTRIBUTES_BYTES, Message, batches
from dueline.core.move import Mover
from dueline.core.payloads import Offload, content_of, hash_of, inline, is_large
from dueline.core.ports import BatchFailure, Clock, Payloads, Queue, Table, cut
from dueline.core.queue_settings import QueueSettings, not_there
from dueline.core.request import JOBS_TO_A_PARTITION, MAX_DELAY_SECONDS, Request, partition_of, route_of, whole_seconds
from dueline.core.table_writer import TableWriter, WriteResult
from dueline.core.text import shown

# A request on its way: a job to submit, one that an earlier call submitted, or an error.
Draft = Submission | SubmitResult | errors.DuelineError


# As long as DynamoDB takes to split a hot partition is minutes; an outage ends in its own time. So look often.
OPEN_SECONDS = 5.0


class Breaker:
    """Is open for 2.5 to 5 s after a failure, so that a flood does not wait for one time-out a call.

    `jitter` returns a random number from 0 to 1: processes that failed together do not come back together.
    """

    def __init__(self, *, clock: Clock, jitter: Callable[[], float]) -> None:
        self._clock = clock
        self._jitter = jitter
        self._closes = 0.0

    @property
    def is_open(self) -> bool:
        return self._clock.monotonic() < self._closes

    def trip(self) -> None:
        self._closes = self._clock.monotonic() + OPEN_SECONDS * (1 - self._jitter() / 2)


_TOO_EARLY = f"a direct job is due in over {MAX_DELAY_SECONDS} s, longer than SQS can hold it: it was not sent"
Errors = dict[JobId, errors.DuelineError]
Results = dict[JobId, SubmitResult | errors.DuelineError]


class Submit:
    """Submits jobs to one queue.

    What is due within `direct_horizon` goes straight to its queue, the rest into the table. What the table does not
    take is sent to the `inbound` queue, if it `is_buffered`, and ingest writes it. `dispatcher` and `breaker` are the
    queue's, of this process; `new_uid` returns a random UUID.
    """

    def __init__(
        self,
        queue: QueueSettings,
        *,
        table: Table,
        payloads: Payloads,
        inbound: Queue,
        dispatcher: Dispatcher,
        breaker: Breaker,
        direct_horizon: timedelta,
        new_uid: Callable[[], str],
        is_buffered: bool = True,
    ) -> None:
        self._queue, self._table, self._inbound = queue, table, inbound
        self._level, self._clock, self._spread = dispatcher.level, dispatcher.clock, dispatcher.spread
        self._writer = TableWriter(table=table, dispatcher=lambda _: dispatcher, clock=self._clock, spread=self._spread)
        self._offload = Offload(queue.name, payloads=payloads, clock=self._clock)
        mover = Mover(table=table, inbound=inbound, clock=self._clock)
        self._keys = JobKeys(queue, mover=mover, offload=self._offload, new_uid=new_uid)
        self._breaker = breaker
        self._direct_horizon = direct_horizon
        self._new_uid = new_uid
        self._is_buffered = is_buffered

    def run(
        self, requests: Sequence[Request | errors.DuelineError], *, until: float
    ) -> list[SubmitResult | errors.DuelineError]:
        """Submit each request separately; return its result or its error, in order. Both as `drafts` and `send` do."""
        return self.send(self.drafts(requests), until=until)

    def drafts(self, requests: Sequence[Request | errors.DuelineError]) -> list[Draft]:
        """Return for each request the job to send, with its id, or the InvalidJob that says what is wrong with it.

        An error in a request's place is returned as it is. Up to 100 jobs share a partition, so that one fence has to
        be read for them.
        """
        now, drafts = self._clock.now(), list[Draft]()
        for some in cut(requests, JOBS_TO_A_PARTITION):
            uids = [self._new_uid() for _ in some]
            partition = Partition(queue=self._queue.name, number=partition_of(uids[0], self._queue.partitions))
            for request, uid in zip(some, uids, strict=True):
                drafts.append(self._draft(request, partition=partition, uid=uid, now=now))
        return drafts

    def _draft(self, request: Request | errors.DuelineError, *, partition: Partition, uid: str, now: datetime) -> Draft:
        if isinstance(request, errors.DuelineError):
            return request
        try:
            id = self._id_of(request, partition=partition, uid=uid, now=now)
            priority = _checked_priority(request.priority, queue=self._queue)
            content = content_of(request.upload, text=request.payload_text)
            job = StoredJob(
                id=id,
                payload=inline(content),
                expires=id.due + self._queue.retention,
                key=request.key,
                kind=request.kind,
                tenant=request.tenant,
                priority=priority,
                trace=request.trace,
            )
            return Submission(
                job=job,
                content=content,
                delay=None if request.id else request.delay,
                earliest=id.due if request.at is None else min(id.due, instant.round_up(request.at)),
                if_exists=request.if_exists,
                call=request.call,
                row=row_of(request, queue=self._queue.name),
                content_hash="" if request.key is None else content_hash(job, payload_hash=hash_of(content)),
            )
        except errors.InvalidJob as error:
            return error

    def _id_of(self, request: Request, *, partition: Partition, uid: str, now: datetime) -> JobId:
        if request.id is not None:
            return idempotency.checked_id(request.id, queue=self._queue, now=now)
        due = request.due(now=now)
        if request.key is not None:
            # However soon it is due, it can be found under its key.
            return JobId(partition=partition, route=Route.TABLE, due=due, uid=uid)
        route = route_of(due, now=now, direct_horizon=self._direct_horizon)
        return JobId(partition=partition, route=route, due=due, uid=uid)

    def send(self, drafts: Sequence[Draft], *, until: float) -> list[SubmitResult | errors.DuelineError]:
        """Send each job separately; return its result or its error, in order. Begins no send after `until` (monotonic).

        After Throttled or Unavailable a job may or may not be scheduled, and the error names its id; after any other
        error it is not.
        """
        drafts = _one_an_id(self._prepare(drafts, until=until))
        submissions = list({draft.job.id: draft for draft in drafts if isinstance(draft, Submission)}.values())
        direct = [each for each in submissions if each.job.id.route is Route.DIRECT]
        results = self._write([each for each in submissions if each.job.id.route is Route.TABLE], until=until)
        if direct:
            unsent = self._send(direct, until=until)
            results |= {each.job.id: SubmitResult(job=each.job, state=State.DISPATCHED) for each in direct}
            results |= unsent
            self._release(
                each for each in direct if isinstance(results[each.job.id], errors.InvalidJob | errors.QueueNotFound)
            )
        sent = [(each.row, each.job.id) for each in submissions if each.row]
        sent = [(row, id) for row, id in sent if isinstance(results[id], SubmitResult)]
        idempotency.note_done(sent, table=self._table, spread=self._spread)
        first = {each.job.id: each for each in reversed(drafts) if isinstance(each, Submission)}
        return [
            _answer(draft, results, is_first=draft is first[draft.job.id]) if isinstance(draft, Submission) else draft
            for draft in drafts
        ]

    def _prepare(self, drafts: Sequence[Draft], *, until: float) -> list[Draft]:
        """Claim keys, and store large payloads, before anything is sent; several at once."""
        submissions = [draft for draft in drafts if isinstance(draft, Submission)]
        chosen = [draft for draft in submissions if _has_row(draft) or _is_to_be_placed(draft)]
        prepared = self._spread(partial(self._prepared, until=until), chosen)
        by_draft = dict(zip(map(id, chosen), prepared, strict=True))
        return [by_draft.get(id(draft), draft) for draft in drafts]

    def _prepared(self, draft: Submission, *, until: float) -> Draft:
        """Return a draft with its key claimed and its payload placed, or what became of it instead."""
        for is_chosen, step in ((_has_row, partial(self._claim, until=until)), (_is_to_be_placed, self._place)):
            if not is_chosen(draft):
                continue
            if self._clock.monotonic() >= until:
                return _out_of_time(draft.job.id)
            try:
                changed = step(draft)
            except errors.RETRYABLE as error:
                return error.copy(job_id=str(draft.job.id))
            except (errors.InvalidJob, errors.JobExists, errors.KeyReused) as error:
                return error
            if not isinstance(changed, Submission):
                return changed
            draft = changed
        return draft

    def _claim(self, draft: Submission, *, until: float) -> Draft:
        """Claim a key, and not for a job that can never be: then its caller may give it to a better one."""
        now = self._clock.now()
        try:
            self._offload.check(draft.content)
        except errors.InvalidJob:
            # Of a repeat the upload may be gone by now.
            if draft.row is None or idempotency.is_free(draft.row, table=self._table, now=now):
                raise
        if draft.job.key is not None:
            try:
                return self._keys.claim(draft, until=until)
            except errors.RETRYABLE as error:
                # Which job has the key is not known, and an id that a move gives is not to be submitted.
                error.job_id = None
                return error
        payload_hash = hash_of(draft.content)
        if draft.job.kind is not None:
            payload_hash = hash_of(f"{draft.job.kind} {payload_hash}")
        claim = idempotency.claim(draft.call or "", draft.job, payload_hash=payload_hash, table=self._table, now=now)
        if claim.is_done:
            return SubmitResult(job=claim.job, state=None)
        return draft if claim.job == draft.job else replace(draft, job=claim.job, delay=None)

    def _place(self, draft: Submission) -> Submission:
        try:
            return replace(draft, job=self._offload.place(draft.job, draft.content))
        except errors.InvalidJob:
            self._release([draft])
            raise

    def _release(self, refused: Iterable[Submission]) -> None:
        """Release the keys of jobs that were refused, and never sent. That of a call is free then."""
        for each in refused:
            if each.row is not None:
                past = self._clock.now() - idempotency.CLOCKS_DIFFER
                ttl = past if each.job.key is None else each.job.expires
                idempotency.release(each.row, each.job.id, table=self._table, ttl=ttl)

    def _write(self, submissions: Sequence[Submission], *, until: float) -> Results:
        """Write each job and ensure that it is sent, or put it into the inbound queue, if that is a buffer."""
        by_job = {each.job: each for each in submissions}
        if not by_job:
            return {}
        if self._is_buffered and self._breaker.is_open:
            return self._buffer(list(by_job.values()), until=until)
        jobs = list(by_job)
        write = self._writer
        written = write.write(jobs, until=until) if len(jobs) > 1 else write.write_first(jobs[0], until=until)
        if written.undone:
            self._breaker.trip()
        left = [submission for job, submission in by_job.items() if job in written.undone]
        results: Results = {job.id: SubmitResult(job=job, state=State.SCHEDULED) for job in by_job}
        results |= _results_of(written, keyed={job for job, each in by_job.items() if each.row is not None})
        return results | (self._buffer(left, until=until) if self._is_buffered else _not_written(left, written))

    def _buffer(self, left: Sequence[Submission], *, until: float) -> Results:
        refused = self._attempt(self._send_to_inbound, _batches(left), until=until)
        accepted = (SubmitResult(job=each.job, state=State.ACCEPTED) for each in left)
        return {each.job.id: refused.get(each.job.id, each) for each in accepted}

    def _send(self, direct: Iterable[Submission], *, until: float) -> Errors:
        """Send jobs to their levels; return the error of each that was not sent."""
        levels = groupby(sorted(direct, key=_BY_PRIORITY), key=_BY_PRIORITY)
        by_level = chain.from_iterable(_batches(level) for _, level in levels)
        return self._attempt(self._send_to_level, by_level, until=until)

    def _attempt(
        self, send: Callable[[Sequence[Submission]], Errors], some: Iterable[Sequence[Submission]], *, until: float
    ) -> Errors:
        def attempt(batch: Sequence[Submission]) -> Errors:
            if self._clock.monotonic() >= until:
                return {each.job.id: _out_of_time(each.job.id) for each in batch}
            try:
                return send(batch)
            except errors.RETRYABLE as error:
                return {each.job.id: error.copy(job_id=str(each.job.id)) for each in batch}

        return {id: error for refused in self._spread(attempt, some) for id, error in refused.items()}

    def _send_to_level(self, batch: Sequence[Submission]) -> Errors:
        now, priority = self._clock.now(), batch[0].job.priority
        refused: Errors = {
            each.job.id: errors.NotYet(_TOO_EARLY).copy(job_id=str(each.job.id))
            for each in batch
            if _is_too_early(each, now)
        }
        sendable = [each for each in batch if each.job.id not in refused]
        try:
            return refused | _send_all(self._level(priority), sendable, lambda each: self._message(each, now=now))
        except errors.QueueNotFound:
            return refused | {each.job.id: not_there(self._queue, priority=priority) for each in sendable}

    def _send_to_inbound(self, batch: Sequence[Submission]) -> Errors:
        try:
            return _send_all(self._inbound, batch, lambda each: Message.of(each.job, group=self._queue.name))
        except errors.QueueNotFound as error:
            # Only a queue's own SQS queue may be missing for good.
            raise errors.Unavailable(str(error)) from None

    def _message(self, submission: Submission, *, now: datetime) -> Message:
        job = submission.job
        left = (job.id.due - now).total_seconds() if submission.delay is None else submission.delay
        return Message.of(job, delay=whole_seconds(left, precise=self._queue.precise), group=job.tenant)


def _has_row(draft: Submission) -> bool:
    return draft.row is not None


def _is_to_be_placed(draft: Submission) -> bool:
    return is_large(draft.content) and draft.job.offloaded_bytes is None


def _answer(submission: Submission, results: Results, *, is_first: bool) -> SubmitResult | errors.DuelineError:
    """Return the result of a submission: of several with one id, the first made the job."""
    result, is_new = results[submission.job.id], submission.is_new and is_first
    if not isinstance(result, SubmitResult) or result.is_new == is_new:
        return result
    return replace(result, is_new=is_new)


def _out_of_time(id: JobId) -> errors.DuelineError:
    """Return the error of a job that there was no time left to send."""
    return errors.NotYet("out of time: it was not sent").copy(job_id=str(id))


def _checked_priority(priority: int, *, queue: QueueSettings) -> int:
    if not 1 <= priority <= queue.priorities:
        raise errors.InvalidJob(f"priority is {shown(priority)}: {queue.allowed_priorities}")
    return priority


_BY_PRIORITY = attrgetter("job.priority")


def _batches(submissions: Iterable[Submission]) -> Iterable[Sequence[Submission]]:
    return batches(submissions, size=lambda each: each.job.size + ATTRIBUTES_BYTES)


def _send_all(queue: Queue, batch: Sequence[Submission], message: Callable[[Submission], Message]) -> Errors:
    """Send a batch; return the errors of the messages that SQS refused."""
    ids = [each.job.id for each in batch]
    refusals = queue.send(list(map(message, batch))) if batch else []
    return {ids[each.index]: _refused(each).copy(job_id=str(ids[each.index])) for each in refusals}


def _is_too_early(submission: Submission, now: datetime) -> bool:
    """Return whether SQS cannot hold a direct job until it is due, as one that a key's row names may be."""
    return submission.delay is None and submission.job.id.due - now > timedelta(seconds=MAX_DELAY_SECONDS)


def _refused(failure: BatchFailure) -> errors.DuelineError:
    return errors.InvalidJob(failure.reason) if failure.final else errors.Unavailable(failure.reason)


def _not_written(left: Sequence[Submission], written: WriteResult) -> Results:
    error = written.cause or errors.Unavailable("; ".join(sorted(written.faults)) or "the table did not take it")
    return {each.job.id: error.copy(job_id=str(each.job.id)) for each in left}


def _results_of(written: WriteResult, *, keyed: Collection[StoredJob]) -> Results:
    # Under a key it is the key's first job, with the same payload, whose caller died before it noted that it is done.
    results: Results = {job.id: SubmitResult(job=job, state=None) for job in written.reused if job in keyed}
    for job in written.reused.difference(keyed):
        reason = f"id is {str(job.id)!r}: it belongs to a job with another payload, kind, tenant or priority"
        results[job.id] = errors.IdReused(reason)
    results |= {job.id: SubmitResult(job=job, state=State.DISPATCHED) for job in written.late}
    results |= {each.job.id: SubmitResult(job=each.job, state=State.PARKED) for each in written.parked}
    return results


def _one_an_id(drafts: Iterable[Draft]) -> list[Draft]:
    """Return the drafts, with an error for each that has another's id but is not the same job."""
    first: dict[JobId, Submission] = {}
    return [
        _beside(first.setdefault(draft.job.id, draft), draft) if isinstance(draft, Submission) else draft
        for draft in drafts
    ]


def _beside(first: Submission, draft: Submission) -> Draft:
    """Return a draft beside the first of its id. What has its key too is a repeat, whatever else it has."""
    if draft.job == first.job and draft.row == first.row:
        return draft
    if draft.row is not None and draft.row == first.row:
        return first
    return errors.IdReused(f"id is {str(draft.job.id)!r}: an earlier job of this call has it, and is not the same")
