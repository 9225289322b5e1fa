"""Requests: jobs as they are asked for, and when they are due."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from dueline import instant
from dueline.errors import InvalidJob
from dueline.job import JobId
from dueline.trace import TraceContext

FURTHEST = timedelta(days=3653)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A job as it is asked for: `payload` is any JSON value, `delay` is in seconds; without a time it is due now.

    An `upload`, by its id, takes the place of the payload. One job is submitted under a `key` within its retention,
    however often it is asked for. SQS treats a `tenant` fairly beside the queue's others. A `priority` is from 1, the
    most urgent, to as many as the queue has. `again` is the id of an earlier try, which may have submitted it: one job
    then. Its `trace` goes with the job.
    """

    payload: object = None
    at: datetime | None = None
    delay: float | None = None
    key: str | None = None
    tenant: str | None = None
    priority: int = 1
    upload: str | None = None
    again: JobId | None = None
    trace: TraceContext | None = None


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
