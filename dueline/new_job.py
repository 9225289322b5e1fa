"""Jobs as a client is given them, checked before any request."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dueline import keys
from dueline.errors import InvalidJob
from dueline.request import Request, due_of
from dueline.trace import TraceContext


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob:
    """A job to schedule.

    `payload` is any JSON value, 10 MiB at most. It is due `at` an instant with a zone, or after `delay` (seconds, or a
    timedelta), or else now. `key` is its idempotency key: of one queue and key there is one job, however often it is
    asked for. SQS treats a `tenant` fairly beside the queue's others. A `priority` is from 1, the most urgent, to as
    many as the queue has.
    """

    payload: object = field(repr=False)
    at: datetime | None = None
    delay: float | timedelta | None = None
    key: str | None = None
    tenant: str | None = None
    priority: int = 1

    def checked(self, *, now: datetime, trace: TraceContext | None = None) -> Request:
        """Return this as a request, whose time and key are good, and whose job is to carry `trace`.

        Raises InvalidJob, naming the field, its value and what is allowed.
        """
        key = None if self.key is None else keys.checked(self.key)
        delay = seconds_of(self.delay)
        request = Request(
            payload=self.payload,
            at=instant_of(self.at),
            delay=delay,
            key=key,
            tenant=self.tenant,
            priority=self.priority,
            trace=trace,
        )
        due_of(request, now=now)
        return request


def instant_of(at: object) -> datetime | None:
    if at is not None and not isinstance(at, datetime):
        raise InvalidJob(f"at is {_shown(at)}: it must be a datetime with a zone")
    return at


def seconds_of(delay: object) -> float | None:
    if delay is None:
        return None
    if isinstance(delay, timedelta):
        return delay.total_seconds()
    if isinstance(delay, bool) or not isinstance(delay, int | float):
        raise InvalidJob(f"delay is {_shown(delay)}: it must be a number of seconds, or a timedelta")
    return delay


def _shown(value: object) -> str:
    return repr(value)[:100]
