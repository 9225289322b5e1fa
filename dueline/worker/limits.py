"""Apply the pause and the rate of a queue, which all its workers share."""

import math

from dueline.core.message import BATCH_MESSAGES
from dueline.core.overview import Control, read_control
from dueline.core.queue_settings import Rate
from dueline.core.rows import slots_key
from dueline.worker.queue_context import QueueContext

# A change takes effect within 5 s: a read, and what it takes to act on it, stay well below.
WATCH_SECONDS = 2.0
# How far ahead slots are reserved: far for requests to cost none, near for a change to take effect soon.
AHEAD_SECONDS = 0.5
_MICROSECONDS = 1_000_000
# The row of a rate that is no longer used expires.
_KEPT_SECONDS = 30 * 86_400


def common_time(context: QueueContext) -> float:
    """Return AWS's own time in seconds since 1970, as far as it is known: the only clock that all workers share.

    Slots are instants: a machine whose own clock is an hour ahead would reserve the slots of an hour.
    """
    behind = context.behind()
    return context.clock.now().timestamp() + (behind / 2 if math.isfinite(behind) else 0.0)


class RateLimiter:
    """Decides whether jobs of a queue may begin, and when.

    Each job takes a slot of its own. Slots follow one another at the queue's rate. A worker reserves some by moving the
    instant up to which all are reserved, in one request, so no two workers get the same. A slot that is not reserved in
    time is lost.
    """

    def __init__(self, context: QueueContext) -> None:
        self._context = context
        self._control = Control()

    def read(self) -> None:
        """Read the pause and the rate. Raises Throttled or Unavailable."""
        self._control = read_control(self._context.queue, table=self._context.table)

    @property
    def is_open(self) -> bool:
        return not self._control.is_stopped

    @property
    def is_limited(self) -> bool:
        return self._control.rate is not None

    @property
    def rate_set(self) -> str:
        """When the rate was set: slots that were reserved under another one are void."""
        return self._control.rate_set

    def most(self) -> int:
        """Return how many jobs to receive now: 0 while none may begin soon. Raises Throttled or Unavailable."""
        control = self._control
        if control.is_stopped:
            return 0
        if control.rate is None:
            return BATCH_MESSAGES
        if self._reserved_until(control) - self._now() > AHEAD_SECONDS * _MICROSECONDS:
            return 0
        return min(BATCH_MESSAGES, math.ceil(AHEAD_SECONDS * _MICROSECONDS / _interval(control.rate)))

    def slots(self, count: int) -> list[float]:
        """Reserve slots for so many jobs; return in how many seconds each begins. Raises Throttled or Unavailable.

        At a rate of 0 none are reserved: no job may begin then.
        """
        # Another thread may replace it meanwhile.
        control = self._control
        if control.rate is None or not control.rate.jobs or not count:
            return [0.0] * count
        interval, now = _interval(control.rate), self._now()
        key, amount = slots_key(self._context.queue, control.rate_set), round(count * interval)
        ttl = int(common_time(self._context)) + _KEPT_SECONDS
        until = self._context.table.reserve(key, now=now, amount=amount, ttl=ttl)
        return [(until - amount + number * interval - now) / _MICROSECONDS for number in range(count)]

    def _now(self) -> int:
        return int(common_time(self._context) * _MICROSECONDS)

    def _reserved_until(self, control: Control) -> int:
        key = slots_key(self._context.queue, control.rate_set)
        row = self._context.table.read([key], consistent=False).rows.get(key)
        return int(row["until"]) if row else 0


def _interval(rate: Rate) -> float:
    """Return the microseconds between two slots."""
    return rate.seconds * _MICROSECONDS / rate.jobs
