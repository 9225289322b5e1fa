"""NewJob: a job to schedule, checked before any request is made."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dueline.errors import InvalidJob
from dueline.lookup.listing import FAR_END
from dueline.model import instant
from dueline.model.job import check_priority, check_tenant
from dueline.model.request import Request, check_time
from dueline.model.text import shown
from dueline.model.trace import TraceContext
from dueline.protocol import given_id, keys


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob:
    """A job to schedule: its payload, and when it is due.

    `payload` is any JSON value of up to 10 MiB, nested up to 200 levels deep. The job is due `at` a datetime with a
    time zone, or after `delay` (seconds or a timedelta); without either, now. `key` is an idempotency key: scheduling
    again with the same queue and key returns the job that is there. `id` takes the place of these three: it is the id
    that the job is to have, such as the `job_id` of an error. There is one job under it, however often that is
    scheduled. `tenant` is the customer or group that the job belongs to: SQS fair queues keep one tenant's backlog from
    delaying the others. `priority` is from 1, the most urgent, to as many as the queue has.
    """

    payload: object = field(repr=False)
    at: datetime | None = None
    delay: float | timedelta | None = None
    key: str | None = None
    id: str | None = None
    tenant: str | None = None
    priority: int = 1

    def checked(self, *, now: datetime | None, trace: TraceContext | None = None) -> Request:
        """Return the request to schedule this job, checked; the job will carry `trace`.

        Without `now`, how far ahead the job may be due is left to the deployment to check. Raises InvalidJob, naming
        the field, its value and what is allowed.
        """
        check_tenant(self.tenant)
        check_priority(self.priority)
        key = None if self.key is None else keys.checked(self.key)
        delay = seconds_of(self.delay)
        request = Request(
            payload=self.payload,
            at=instant_of(self.at),
            delay=delay,
            key=key,
            id=None if self.id is None else str(given_id.parsed(self.id)),
            tenant=self.tenant,
            priority=self.priority,
            trace=trace,
        )
        given_id.check_alone(request)
        check_time(request, now=now)
        return request


def a_job(given: object) -> NewJob:
    """Return a NewJob. Raises InvalidJob for anything else, which is not quoted: it may be a payload."""
    if not isinstance(given, NewJob):
        raise InvalidJob(f"a job is of type {type(given).__name__}: it must be a NewJob")
    return given


def instant_of(at: object, *, name: str = "at") -> datetime | None:
    if at is not None and not isinstance(at, datetime):
        raise InvalidJob(f"{name} is {shown(at)}: it must be a datetime with a time zone")
    return at


def bound_of(at: object, *, name: str) -> datetime | None:
    """Return the start or the end of a listing, or None. Raises InvalidJob."""
    bound = instant_of(at, name=name)
    if bound is not None and (bound.utcoffset() is None or not instant.EPOCH <= bound <= FAR_END):
        allowed = f"from {instant.text(instant.EPOCH)} to {instant.text(FAR_END)}"
        raise InvalidJob(f"{name} is {bound.isoformat()}: it must have a time zone, and be {allowed}")
    return bound


def seconds_of(delay: object) -> float | None:
    if delay is None:
        return None
    if isinstance(delay, timedelta):
        return delay.total_seconds()
    if isinstance(delay, bool) or not isinstance(delay, int | float):
        raise InvalidJob(f"delay is {shown(delay)}: it must be a number of seconds, or a timedelta")
    return delay


def checked_time(at: datetime | None, delay: float | timedelta | None) -> Request:
    """Return a request with one of the two, checked. Raises InvalidJob."""
    if at is None and delay is None:
        raise InvalidJob("at and delay are both missing: give one of them")
    return NewJob(payload=None, at=at, delay=delay).checked(now=None)
