"""What a client needs of a deployment: the same calls over HTTP and straight on AWS."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from dueline.client.job_ids import IdParameters
from dueline.client.models import Job, NewJob
from dueline.core.job import JobId, State, checked_key, queue_name
from dueline.core.overview import Control, Overview
from dueline.core.queue_settings import QueueSettings, Rate
from dueline.core.request import Default, Request
from dueline.core.trace import TraceContext
from dueline.errors import RETRYABLE, DuelineError, InvalidJob, NotYet

# The most jobs, and the most bytes, of one request: a Lambda function's event has 6 MB, the rest of it included.
MOST_AT_ONCE = 500
MOST_BYTES = 5_000_000

A = TypeVar("A")
B = TypeVar("B")


@dataclass(kw_only=True, slots=True)
class Draft:
    """A checked job that is being scheduled: the same job at every try, by the id or the call of its `request`.

    One without either gets one before its first try. `size` is what it adds to a request, in bytes; drafts of one
    `group` may share a request. `may_exist`: a try that failed may have scheduled the job.
    """

    request: Request
    size: int = 0
    group: Hashable = None
    may_exist: bool = False

    @property
    def headers(self) -> Mapping[str, str]:
        """What its request has besides the usual headers."""
        return {} if self.request.trace is None else self.request.trace.headers

    def named(self, error: DuelineError) -> DuelineError:
        """Return the error of a try, with how to schedule this job again: its call and its key, and its id.

        A process that knows fewer partitions may refuse the id of a job that an earlier try has scheduled.
        """
        if self.may_exist and self.request.id is not None and type(error) is InvalidJob:
            error = NotYet(f"an earlier attempt may have scheduled it, and now: {error}")
        self.may_exist = self.may_exist or isinstance(error, RETRYABLE)
        error.key = self.request.key or error.key
        error.idempotency_key = self.request.call or error.idempotency_key
        if self.may_exist:
            error.job_id = error.job_id or self.request.id
        return error


@dataclass(frozen=True, kw_only=True, slots=True)
class JobKey:
    """The key of a job, which is its name in a queue."""

    queue: str
    key: str

    def __str__(self) -> str:
        return f"of key {self.key!r}"


# What a job is found by.
JobRef = JobId | JobKey


def job_ref(id: object, *, queue: object, key: object) -> JobRef:
    """Return what a caller named a job by. Raises InvalidJob, JobNotFound or QueueNotFound, before any request."""
    if id is not None and queue is None and key is None:
        return JobId.parse(id)  # type: ignore[arg-type]  # it may be anything
    if id is None and queue is not None and key is not None:
        return JobKey(queue=queue_name(queue), key=checked_key(key))  # type: ignore[arg-type]
    arguments = {"id": id, "queue": queue, "key": key}
    names = [name for name, value in arguments.items() if value is not None]
    raise InvalidJob(f"{' and '.join(names) or 'nothing'} given: give an id, or a queue and a key")


def call_for_one(call: Callable[[str, Sequence[B]], Sequence[A | DuelineError]], queue: str, item: B) -> A:
    """Return the result of a call for several that is made for one, or raise its error."""
    (result,) = call(queue, [item])
    if isinstance(result, DuelineError):
        raise result
    return result


class Api(Protocol):
    """Makes each call once; every call is safe to repeat. Each may raise Throttled, Unavailable or Forbidden."""

    def draft(self, job: NewJob, *, trace: TraceContext | None = None, default: Default | None = None) -> Draft:
        """Check a job, which is to carry `trace`, before any request. `default` is as in json.dumps.

        Raises InvalidJob, naming the field, its value and what is allowed, or PayloadTooLarge.
        """

    def schedule_many(self, queue: str, drafts: Sequence[Draft]) -> Sequence[Job | DuelineError]:
        """Schedule up to 500 jobs; return the job or the error of each, in order: QueueNotFound, KeyReused, …"""

    def id_parameters(self, queue: str) -> IdParameters | None:
        """Return what the ids of a queue's jobs need, None if the deployment does not say. Raises QueueNotFound."""

    def get(self, ref: JobRef) -> Job:
        """Look a job up. Raises JobNotFound."""

    def cancel_many(self, queue: str, refs: Sequence[JobRef]) -> Sequence[State | DuelineError]:
        """Cancel up to 500 jobs of one queue, all by their ids or all by their keys.

        Returns CANCELLED or CANCEL_REQUESTED, or the error of each, in order.
        """

    def reschedule(self, ref: JobRef, *, at: datetime | None, delay: float | None, call: str) -> Job:
        """Move a job to `at`, or to `delay` seconds after the first try of `call`; return it as it is then.

        Raises AlreadyFinished, RunOfSchedule or JobNotFound.
        """

    def page(
        self, queue: str, *, state: str, start: datetime | None, end: datetime | None, kind: str | None, after: str
    ) -> tuple[Sequence[Any], str]:
        """Return a page of jobs, all or of one kind, and the `after` of the next page: "" after the last.

        With the state `scheduled`, ScheduledJobs in due order; else what workers recorded, the last due first: of one
        state, or `attempted` for all.
        """

    def queues(self) -> Sequence[QueueSettings]:
        """Return the settings of all queues."""

    def overview(self, queue: str) -> Overview:
        """Return how a queue is doing. Raises QueueNotFound."""

    def set_paused(self, queue: str, paused: bool) -> Control:
        """Pause or resume a queue; return its pause and rate. Raises QueueNotFound."""

    def set_rate(self, queue: str, rate: Rate | None) -> Control:
        """Limit how many jobs a queue's workers start, or lift the limit; return its pause and rate.

        Raises QueueNotFound.
        """

    def requester(self) -> Callable[..., dict[str, Any]]:
        """Return what sends requests about schedules: (method, path, body, headers=) to a JSON object.

        Raises Forbidden where there is no HTTP.
        """

    def close(self) -> None:
        """Close the connections that are kept. The next call opens new ones."""
