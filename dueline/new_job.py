"""Jobs as a client asks for them, checked and written out before any request."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from dueline import instant, keys
from dueline.errors import InvalidJob
from dueline.submit import Request, due_of, json_text


@dataclass(frozen=True, kw_only=True, slots=True)
class NewJob:
    """A job to schedule.

    `payload` is any JSON value. It is due `at` an instant with a zone, or after `delay` (seconds, or a timedelta), or
    else now. `key` is its idempotency key: of one queue and key there is one job, however often it is asked for.
    """

    payload: object = field(repr=False)
    at: datetime | None = None
    delay: float | timedelta | None = None
    key: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """A job that was checked, as the JSON text that is posted each time it is tried."""

    key: str
    text: str = field(repr=False)

    @property
    def size(self) -> int:
        """The bytes that it takes of a function's event, in which a request's body is a JSON string, escaped."""
        return len(json.dumps(self.text))

    @classmethod
    def of(cls, job: NewJob, *, now: datetime, new_key: Callable[[], str]) -> "Draft":
        """Check a job and write it out, with its own key or a new one.

        Raises InvalidJob, naming the field, its value and what is allowed.
        """
        key = new_key() if job.key is None else keys.checked(job.key)
        asked = {**_time(job, now=now), "key": key}
        # The payload comes first, already as text: the braces of the two are joined.
        return cls(key=key, text=f'{{"payload":{json_text(job.payload)},{json.dumps(asked)[1:]}')


def _time(job: NewJob, *, now: datetime) -> dict[str, str | float]:
    delay = _seconds(job.delay)
    if job.at is not None and not isinstance(job.at, datetime):
        raise InvalidJob(f"at is {_shown(job.at)}: it must be a datetime with a zone")
    due_of(Request(payload=None, at=job.at, delay=delay), now=now)
    if job.at is not None:
        return {"at": instant.text(instant.round_up(job.at))}
    return {} if delay is None else {"delay": delay}


def _seconds(delay: float | timedelta | None) -> float | None:
    if delay is None:
        return None
    if isinstance(delay, timedelta):
        return delay.total_seconds()
    if isinstance(delay, bool) or not isinstance(delay, int | float):
        raise InvalidJob(f"delay is {_shown(delay)}: it must be a number of seconds, or a timedelta")
    return delay


def _shown(value: object) -> str:
    return repr(value)[:100]
