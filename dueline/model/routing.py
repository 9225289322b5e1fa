"""Routing: a job's partition, its route, and how long SQS delays it."""

import math
import zlib
from datetime import datetime, timedelta

from dueline.model.job import Route

MAX_DELAY_SECONDS = 900
# By how much a job of a precise queue is visible before it is due at least, lest it be due before a worker has it.
PRECISE_MARGIN_SECONDS = 0.25

# Of one call: one fence is read for them. A partition key takes 1,000 write units a second: so few do not throttle it.
JOBS_TO_A_PARTITION = 100


def partition_of(uid: str, partitions: int) -> int:
    """Return the partition of a job, the same for a uid whatever process asks.

    >>> partition_of("5f0f3f5e-0000-4000-8000-000000000000", 1)
    0
    """
    return zlib.crc32(uid.encode()) % partitions


def route_of(due: datetime, *, now: datetime, direct_horizon: timedelta) -> Route:
    """Return the direct route for a job that SQS's own timer can hold, the table's for any later one."""
    return Route.DIRECT if due - now <= direct_horizon else Route.TABLE


def delay_seconds(due: datetime, *, now: datetime, precise: bool = False) -> int:
    """Return the whole seconds that SQS must hold a job, 0 to 900.

    Rounds up: SQS counts in seconds, and a job is never early. Rounds down for a `precise` queue, so that a message is
    visible 0.25 to 1.25 s before its job is due: its workers wait out the rest. Raises ValueError when `due` is over
    900 s away (the limit of SQS message timers).

    >>> from dueline.model.instant import parse
    >>> delay_seconds(parse("2026-01-01T00:00:00.001Z"), now=parse("2026-01-01T00:00:00Z"))
    1
    """
    return whole_seconds((due - now).total_seconds(), precise=precise)


def whole_seconds(delay: float, *, precise: bool = False) -> int:
    """Return `delay` as SQS takes it: rounded up, or down and less a margin if `precise`, and never negative.

    Raises ValueError when it is over 900 s.
    """
    whole = math.floor(delay) if precise else math.ceil(delay)
    if whole > MAX_DELAY_SECONDS:
        raise ValueError(f"a delay of {whole} s is over the {MAX_DELAY_SECONDS} s that SQS can hold a message")
    return max(0, math.floor(delay - PRECISE_MARGIN_SECONDS) if precise else whole)
