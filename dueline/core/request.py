"""A request for a job: what is to be scheduled, when it is due, and by which route it goes."""

import json
import math
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import accumulate
from typing import Any

from dueline.core import instant
from dueline.core.job import Route
from dueline.core.text import shown
from dueline.core.trace import TraceContext
from dueline.errors import InvalidJob

FURTHEST = timedelta(days=3653)
# How deep Python reads depends on how deep its caller's stack is, and ends at a thousand in all.
MOST_LEVELS = 200
_COMPACT: dict[str, Any] = {"separators": (",", ":"), "allow_nan": False}
_TO_JSON = json.JSONEncoder(**_COMPACT).encode
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_BRACKETS = re.compile(r"[\[\]{}]")
# What can be written out, whatever the time is.
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


class IfExists(StrEnum):
    """What a call does with a job that has its key and still waits: return it, replace it, or fail."""

    KEEP = "keep"
    REPLACE = "replace"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A job to schedule: `payload` is any JSON value, `delay` is in seconds; without `at` or `delay` it is due now.

    `text`, the payload as JSON text, replaces `payload`, and so does `upload`, the id of an upload. `key` names the
    job: one job of its queue has that name at a time, and `if_exists` says what becomes of one that has it. `call` is
    the name of the call, the same at each repeat: it makes one job. `kind` says which handler runs it. `tenant` is the
    message group of SQS fair queues. `priority` is from 1, the most urgent, to as many as the queue has. `id` is one
    that the caller made, or that of an earlier attempt, which may have submitted the job: there is one job under it.
    `trace` goes with it.
    """

    payload: object = None
    text: str | None = field(default=None, repr=False)
    at: datetime | None = None
    delay: float | None = None
    key: str | None = None
    if_exists: IfExists = IfExists.KEEP
    call: str | None = None
    kind: str | None = None
    tenant: str | None = None
    priority: int = 1
    upload: str | None = None
    id: str | None = None
    trace: TraceContext | None = None

    def due(self, *, now: datetime) -> datetime:
        """Return when it is due: `at`, or `now` plus `delay`, in whole milliseconds, and never in the past.

        Raises InvalidJob, naming the field, its value and what is allowed.
        """
        self.check_time(now=now)
        # The present is this millisecond: rounded up, what is due now would wait for a whole second of SQS's.
        present = instant.from_epoch_ms(instant.epoch_ms(now))
        if self.delay:
            return instant.round_up(now + timedelta(seconds=self.delay))
        return present if self.at is None else max(present, instant.round_up(self.at))

    def check_time(self, *, now: datetime | None) -> None:
        """Raise InvalidJob, as `due` does, unless its time is valid.

        Without `now` it is not checked how far ahead `at` is: the caller's clock may be wrong.
        """
        if self.at is not None and self.delay is not None:
            raise InvalidJob("at and delay are both given: give one of them")
        furthest = FURTHEST.total_seconds()
        if self.delay is not None and not 0 <= self.delay <= furthest:  # also NaN and infinity
            raise InvalidJob(f"delay is {shown(self.delay)}: it must be from 0 to {furthest:.0f} seconds (10 years)")
        if self.at is not None:
            _check_at(self.at, latest=_LATEST if now is None else now + FURTHEST)

    def payload_text(self) -> str:
        """Return its payload as JSON text, as it was given. Raises InvalidJob when it is no JSON value."""
        return json_text(self.payload) if self.text is None else self.text


# What json.dumps calls with what is no JSON value, to write what it returns.
Default = Callable[[Any], Any]


def json_text(payload: object, *, default: Default | None = None) -> str:
    """Return a payload as JSON text, compact, with every character beyond ASCII escaped.

    Raises InvalidJob when it is no JSON value, or nests more than 200 levels deep.
    """
    try:
        text = _TO_JSON(payload) if default is None else json.dumps(payload, default=default, **_COMPACT)
    except RecursionError:
        raise InvalidJob(f"payload nests too deep: at most {MOST_LEVELS} levels are allowed") from None
    except (TypeError, ValueError, StopIteration) as error:
        if "digits" in str(error):
            error = ValueError("an integer has too many digits: send it as a text")
        raise InvalidJob(f"payload is not JSON: {error}") from None
    if (levels := _levels(text)) > MOST_LEVELS:
        raise InvalidJob(f"payload nests {levels} levels deep: at most {MOST_LEVELS} are allowed")
    return text


def _levels(text: str) -> int:
    """Return how deep a JSON text nests; where it has no more brackets than levels are allowed, their number."""
    most = text.count("[") + text.count("{")
    if most <= MOST_LEVELS:
        return most
    brackets = _BRACKETS.findall(_STRING.sub("", text))
    return max(accumulate(1 if each in "[{" else -1 for each in brackets), default=0)


def _check_at(at: datetime, *, latest: datetime) -> None:
    if at.utcoffset() is None:
        raise InvalidJob(f"at is {at.isoformat()}, which has no time zone: add one, such as Z or +01:00")
    if not instant.EPOCH <= at <= latest:
        allowed = f"from {instant.text(instant.EPOCH)} to {instant.text(latest)}"
        raise InvalidJob(f"at is {at.isoformat()}: it must be {allowed}")


MAX_DELAY_SECONDS = 900
# By how much a job of a precise queue is visible before it is due at least, so that a worker has it in time.
PRECISE_MARGIN_SECONDS = 0.25

# How much longer than its time SQS holds a message at least, so that it comes no earlier by a clock 20 ms behind.
GUARD = timedelta(milliseconds=20)

# Of one call: one fence is read for them. A partition key takes 1,000 write units a second: so few do not throttle it.
JOBS_TO_A_PARTITION = 100


def partition_of(uid: str, partitions: int) -> int:
    """Return the partition of a job, the same for a uid in every process.

    >>> partition_of("5f0f3f5e-0000-4000-8000-000000000000", 1)
    0
    """
    return zlib.crc32(uid.encode()) % partitions


def route_of(due: datetime, *, now: datetime, direct_horizon: timedelta) -> Route:
    """Return the direct route for a job that SQS's own timer can hold, the table's for any later one."""
    return Route.DIRECT if due - now <= direct_horizon else Route.TABLE


def delay_seconds(due: datetime, *, now: datetime, precise: bool = False) -> int:
    """Return the whole seconds that SQS must hold a job, 0 to 900.

    Rounds up, and 20 ms more: SQS counts in seconds from when it has accepted a message, by clocks of its own, and a
    job is never early. Rounds down for a `precise` queue, so that a message is visible 0.25 to 1.25 s before its job is
    due: its workers wait out the rest. Raises ValueError when that is over 900 s (the limit of SQS message timers).

    >>> from dueline.core.instant import parse
    >>> delay_seconds(parse("2026-01-01T00:00:00.001Z"), now=parse("2026-01-01T00:00:00Z"))
    1
    """
    left = due - now
    is_guarded = left > timedelta(0) and not precise
    return whole_seconds((left + GUARD if is_guarded else left).total_seconds(), precise=precise)


def whole_seconds(delay: float, *, precise: bool = False) -> int:
    """Return `delay` as SQS takes it: rounded up, or down and less a margin if `precise`, and never negative.

    Raises ValueError when it is over 900 s.
    """
    whole = math.floor(delay) if precise else math.ceil(delay)
    if whole > MAX_DELAY_SECONDS:
        raise ValueError(f"a delay of {whole} s is over the {MAX_DELAY_SECONDS} s that SQS can hold a message")
    return max(0, math.floor(delay - PRECISE_MARGIN_SECONDS) if precise else whole)
