"""Jobs and queues as a client returns them, and a job to schedule, checked before any request is made."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from datetime import datetime, timedelta
from functools import cache, wraps
from types import NoneType
from typing import Any, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

from dueline.core import idempotency, instant, keys
from dueline.core import job as core
from dueline.core.job import JobId, Route, State, check_kind, check_priority, check_tenant, checked_key
from dueline.core.listing import FAR_END
from dueline.core.payloads import check_size
from dueline.core.ports import Pointer
from dueline.core.request import Default, IfExists, Request, json_text
from dueline.core.status import Status
from dueline.core.text import shown
from dueline.core.trace import TraceContext
from dueline.errors import InvalidJob, Unavailable

# IfExists as a text, which is shorter to write.
ExistsRule = Literal["keep", "replace", "fail"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob:
    """A job to schedule: its payload, and when it is due.

    `payload` is any JSON value of up to 10 MiB, nested up to 200 levels deep. The job is due `at` a datetime with a
    time zone, or after `delay` (seconds or a timedelta); without either, now. `key` names the job: one job
    of its queue has it at a time. If one that has it waits, `if_exists` says what becomes of it: with "keep" it is
    returned, with "replace" it is moved to this time and gets this content, and with "fail" the call raises JobExists.
    `id` takes the place of these four: it is the id that the job is to have, such as the `job_id` of an error. There is
    one job under it, however often that is scheduled. `idempotency_key` names the call: repeats of it make one job; the
    client makes one for its own retries. `kind` says which handler of its queue runs it; a job without one goes to the
    handler without one. `tenant` is the customer or group that the job belongs to: SQS fair queues keep one tenant's
    backlog from delaying the others. `priority` is from 1, the most urgent, to as many as the queue has.
    """

    payload: object = field(repr=False)
    at: datetime | None = None
    delay: float | timedelta | None = None
    key: str | None = None
    if_exists: ExistsRule = "keep"
    id: str | None = None
    idempotency_key: str | None = None
    kind: str | None = None
    tenant: str | None = None
    priority: int = 1

    def checked(
        self, *, now: datetime | None, trace: TraceContext | None = None, default: Default | None = None
    ) -> Request:
        """Return the request to schedule this job, checked, with its payload as text; the job will carry `trace`.

        Without `now`, how far ahead the job may be due is left to the deployment to check. Raises InvalidJob, naming
        the field, its value and what is allowed, or PayloadTooLarge.
        """
        check_kind(self.kind)
        check_tenant(self.tenant)
        check_priority(self.priority)
        request = Request(
            # As text: the caller may change the payload before it is sent, or sent again.
            text=json_text(self.payload, default=default),
            at=checked_instant(self.at),
            delay=_checked_seconds(self.delay),
            key=None if self.key is None else checked_key(self.key),
            if_exists=_checked_rule(self.if_exists),
            call=None if self.idempotency_key is None else keys.checked_call(self.idempotency_key),
            id=None if self.id is None else str(idempotency.parsed(self.id)),
            kind=self.kind,
            tenant=self.tenant,
            priority=self.priority,
            trace=trace,
        )
        idempotency.check_alone(request)
        request.check_time(now=now)
        check_size(len(request.text or ""))
        return request


def checked_instant(at: object, *, name: str = "at") -> datetime | None:
    """Return a datetime, or None. Raises InvalidJob for anything else."""
    if at is not None and not isinstance(at, datetime):
        raise InvalidJob(f"{name} is {shown(at)}: it must be a datetime with a time zone")
    return at


def _checked_rule(rule: object) -> IfExists:
    if not (isinstance(rule, str) and rule in [*IfExists]):
        raise InvalidJob(f"if_exists is {shown(rule)}: it must be one of {', '.join(IfExists)}")
    return IfExists(rule)


def checked_bound(at: object, *, name: str) -> datetime | None:
    """Return the start or the end of a listing, or None. Raises InvalidJob."""
    bound = checked_instant(at, name=name)
    if bound is not None and (bound.utcoffset() is None or not instant.EPOCH <= bound <= FAR_END):
        allowed = f"from {instant.text(instant.EPOCH)} to {instant.text(FAR_END)}"
        raise InvalidJob(f"{name} is {bound.isoformat()}: it must have a time zone, and be {allowed}")
    return bound


def _checked_seconds(delay: object) -> float | None:
    if delay is None:
        return None
    if isinstance(delay, timedelta):
        return delay.total_seconds()
    if isinstance(delay, bool) or not isinstance(delay, int | float):
        raise InvalidJob(f"delay is {shown(delay)}: it must be a number of seconds, or a timedelta")
    return delay


A = TypeVar("A")
_logger = logging.getLogger("dueline")


def reader(what: str) -> Callable[[Callable[..., A]], Callable[..., A]]:
    """Have a function that reads a response raise Unavailable when that does not hold what it should."""

    def decorate(read: Callable[..., A]) -> Callable[..., A]:
        @wraps(read)
        def checked(*args: Any) -> A:
            try:
                return read(*args)
            except (LookupError, TypeError, ValueError, OverflowError) as fault:
                # The text of a ValueError may quote the response.
                raise Unavailable(f"the answer holds no {what}: {type(fault).__name__}") from None

        return checked

    return decorate


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def number_of(value: object) -> int:
    if type(value) is not int:
        raise TypeError
    return value


# What reads a field in a response, by the field's type. One of another type is as it is there.
_READERS: Mapping[Any, Callable[[Any], Any]] = {
    str: text_of,
    int: number_of,
    float: float,
    bool: bool,
    datetime: instant.parse,
    State: State,
    timedelta: lambda seconds: timedelta(seconds=number_of(seconds)),
    Route: lambda name: Route[text_of(name).upper()],
}


def _reader_of(hint: Any) -> Callable[[Any], Any]:
    kind: Any = next((each for each in get_args(hint) if each is not NoneType), hint)
    if get_origin(hint) is tuple:
        return lambda parts: tuple(map(kind.of, parts))
    is_part = is_dataclass(kind)
    return _READERS.get(kind, (lambda part: kind(**part)) if is_part else lambda value: value)


@cache
def _readers_of(kind: type[Any]) -> Sequence[tuple[str, bool, Callable[[Any], Any]]]:
    hints = get_type_hints(kind)
    return [(each.name, each.default is MISSING, _reader_of(hints[each.name])) for each in fields(kind)]


def read_fields(kind: type[A], response: Mapping[str, Any], **others: Any) -> A:
    """Return an object of the fields in a response: those that have a default may be missing. `others` are its rest."""
    of: Any = kind
    own = [(name, read) for name, is_needed, read in _readers_of(of) if is_needed or name in response]
    return kind(**{name: read(response[name]) for name, read in own if name not in others}, **others)


# Of a job's last attempt, in a queue that is set to `track`.
_OUTCOME = ("attempts", "started", "ended", "error", "kind")
# Of a job that waits in the table.
_ATTRIBUTES = ("key", "kind", "tenant", "priority", "schedule", "scheduled_for")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A job as the client returns it: its id, its queue, when it is due (in UTC), its route there, and its state.

    `created`: the call that returned it made it; None if that did not schedule. `moved_from` is the id that was given,
    if the job was rescheduled since: `id` is the one that it has now. If its queue is set to `track` its jobs and a
    worker has received it: how many `attempts` there were, when the last one `started` and `ended`, and its `error` if
    it failed. Its `kind` is known then too, or while it waits. If it was looked up or listed, and went by the
    table: its `key`, and if a schedule planned it, that `schedule`, and `scheduled_for`, the instant of its rule.
    """

    id: str
    queue: str
    due: datetime
    route: Route
    state: State
    created: bool | None = None
    moved_from: str | None = None
    attempts: int | None = None
    started: datetime | None = None
    ended: datetime | None = None
    error: str | None = None
    kind: str | None = None
    key: str | None = None
    schedule: str | None = None
    scheduled_for: datetime | None = None

    @classmethod
    @reader("job")
    def of(cls, response: Mapping[str, Any]) -> Self:
        """Return the job in a response. Raises Unavailable when it holds none."""
        return read_fields(cls, response)

    @classmethod
    def of_status(cls, id: JobId, status: Status, *, created: bool | None = None) -> "Job":
        """Return the job with that id and status."""
        names = () if status.outcome is None else _OUTCOME
        outcome = {name: getattr(status.outcome, name) for name in names}
        values = {name: getattr(status, name) for name in ("state", "key", "schedule", "scheduled_for")}
        values |= {"moved_from": status.moved_from and str(status.moved_from), "created": created}
        if status.job is not None:
            return replace(ScheduledJob.of_job(status.job), **values)
        return Job(**_in_id(id), **values, **outcome)


def warn_of_unreadable(page: Mapping[str, Any]) -> None:
    """Log how many rows a page leaves out because they cannot be read."""
    if number := number_of(page.get("unreadable", 0)):
        _logger.warning("rows that cannot be read were left out: %d; the API's log has the first one's key", number)


@dataclass(frozen=True, kw_only=True, slots=True)
class PayloadPlace:
    """Where a large payload is kept: the bucket and key of an S3 object, and its size in bytes."""

    bucket: str
    key: str
    bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduledJob(Job):
    """A job that waits in the table, with its `payload`, or where a large payload is kept (`payload_at`).

    A payload that is not JSON is in `payload_text`.
    """

    payload: object = field(default=None, repr=False)
    payload_text: str | None = field(default=None, repr=False)
    payload_at: PayloadPlace | None = None
    tenant: str | None = None
    priority: int = 1
    traceparent: str | None = None

    @classmethod
    def of_job(cls, job: core.StoredJob) -> "ScheduledJob":
        """Return a job that waits in the table, as the client returns it."""
        payload, trace = payload_fields(job), None if job.trace is None else job.trace.parent
        if place := payload.get("payload_at"):
            payload["payload_at"] = PayloadPlace(**place)
        attributes = {name: getattr(job, name) for name in _ATTRIBUTES}
        return cls(**_in_id(job.id), state=State.SCHEDULED, traceparent=trace, **attributes, **payload)


def _in_id(id: JobId) -> dict[str, Any]:
    return {"id": str(id), "queue": id.queue, "route": id.route, "due": id.due}


# How a field's value is written in a response, by its type. One of another type is as it is.
_WRITERS: Mapping[Any, Callable[[Any], Any]] = {
    datetime: instant.text,
    State: lambda state: state.value,
    Route: lambda route: route.name.lower(),
    PayloadPlace: asdict,
}


def job_json(job: Job) -> dict[str, Any]:
    """Return a job as the HTTP API has it: without fields that are None, but for the payload of a ScheduledJob."""
    has_payload = isinstance(job, ScheduledJob) and job.payload_text is None and job.payload_at is None
    values = {each.name: getattr(job, each.name) for each in fields(job)}
    return {
        name: _WRITERS.get(type(value), lambda value: value)(value)
        for name, value in values.items()
        if value is not None or (name == "payload" and has_payload)
    }


def payload_fields(job: core.StoredJob) -> dict[str, Any]:
    """Return a job's payload as JSON, or where it is kept, or as text where it is neither.

    A job that was sent to the inbound queue directly may have any text.
    """
    try:
        if job.offloaded_bytes is not None:
            place = Pointer.parse(job.payload)
            return {"payload_at": {"bucket": place.bucket, "key": place.key, "bytes": job.offloaded_bytes}}
        value = json.loads(job.payload)
        json_text(value)  # what JSON cannot write, such as NaN, or reads no deeper, fails here and not below
    except (ValueError, RecursionError):
        return {"payload_text": job.payload}
    return {"payload": value}
