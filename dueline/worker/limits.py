"""Apply the pause and the rate of a queue, which all its workers share."""

import math

from dueline.core.message import BATCH_MESSAGES
from dueline.core.overview import Control, read_control
from dueline.core.queue_settings import LONGEST_HIDDEN_SECONDS, Rate
from dueline.core.rows import Key, slots_key, turns_key
from dueline.worker.queue_context import QueueContext

# A change takes effect within 5 s: a read, and what it takes to act on it, stay well below.
WATCH_SECONDS = 2.0
# How far ahead slots are reserved: far for requests to cost none, near for a change to take effect soon.
AHEAD_SECONDS = 0.5
# At slower rates than one job in so long, workers receive in turns. Idle ones would all receive a job at once
# otherwise, and reserve slots that begin when their claims on these jobs have ended.
_SLOW_SECONDS = 10.0
# A turn has time for a long poll, and to reserve a slot.
_TURN_SECONDS = 6
# At a slow rate no slot is reserved further ahead.
_LONGEST_WAIT_SECONDS = 3600.0
_MICROSECONDS = 1_000_000
# The row of a rate that is no longer used expires.
_KEPT_SECONDS = 30 * 86_400


class RateLimiter:
    """Decides whether jobs of a queue may begin, and when.

    Each job takes a slot of its own. Slots follow one another at the queue's rate. A worker reserves some by moving the
    instant up to which all are reserved, in one request, so no two workers get the same. A slot that is not reserved in
    time is lost.
    """

    def __init__(self, context: QueueContext) -> None:
        self._context = context
        self._control = Control()
        self._turn_ends = 0

    def read(self) -> None:
        """Read the pause and the rate. Raises Throttled or Unavailable."""
        before, self._control = self._control, read_control(self._context.queue, table=self._context.table)
        if before.rate_set != self._control.rate_set:
            self._turn_ends = 0

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
        is_slow = _is_slow(control.rate)
        if is_slow and self._turn_ends - self._now() > _TURN_SECONDS * _MICROSECONDS:
            return 0
        if self._reserved_until(control) - self._now() > AHEAD_SECONDS * _MICROSECONDS:
            return 0
        if is_slow and not self._has_turn(control):
            return 0
        return min(BATCH_MESSAGES, math.ceil(AHEAD_SECONDS * _MICROSECONDS / _interval(control.rate)))

    def slots(self, count: int) -> list[float]:
        """Reserve slots for so many jobs; return in how many seconds each begins. Raises Throttled or Unavailable.

        At a rate of 0 none are reserved: no job may begin then. At a slow rate the slots of some may be too far ahead:
        these get none, but infinity.
        """
        # Another thread may replace it meanwhile.
        control = self._control
        if control.rate is None or not control.rate.jobs or not count:
            return [0.0] * count
        interval, now = _interval(control.rate), self._now()
        reserved = min(count, self._near(control, interval)) if _is_slow(control.rate) else count
        amount = round(reserved * interval)
        until = self._reserve(slots_key(self._context.queue, control.rate_set), amount, now=now) if reserved else 0
        slots = [(until - amount + number * interval - now) / _MICROSECONDS for number in range(reserved)]
        return slots + [math.inf] * (count - reserved)

    def _near(self, control: Control, interval: float) -> int:
        """Return how many slots begin soon enough for a worker to keep jobs until then."""
        keeps = min(_LONGEST_WAIT_SECONDS, LONGEST_HIDDEN_SECONDS - self._context.settings.longest_run)
        ahead = max(0, self._reserved_until(control) - self._now())
        return max(0, math.floor((keeps * _MICROSECONDS - ahead) / interval) + 1)

    def _has_turn(self, control: Control) -> bool:
        """Return whether it is this worker's turn to receive; if it has none, get in line for one.

        A turn that a worker misses, as one that has died does, delays the others by its few seconds.
        """
        now, turn = self._now(), _TURN_SECONDS * _MICROSECONDS
        if self._turn_ends <= now:
            self._turn_ends = self._reserve(turns_key(self._context.queue, control.rate_set), turn, now=now)
        return self._turn_ends - turn <= now

    def _reserve(self, key: Key, amount: int, *, now: int) -> int:
        ttl = now // _MICROSECONDS + _KEPT_SECONDS
        return self._context.table.reserve(key, now=now, amount=amount, ttl=ttl)

    def _now(self) -> int:
        """Return AWS's own time in microseconds since 1970, as far as it is known: the only clock that workers share.

        Slots are instants: a machine whose own clock is an hour ahead would reserve the slots of an hour.
        """
        behind = self._context.behind()
        seconds = self._context.clock.now().timestamp() + (behind / 2 if math.isfinite(behind) else 0.0)
        return int(seconds * _MICROSECONDS)

    def _reserved_until(self, control: Control) -> int:
        key = slots_key(self._context.queue, control.rate_set)
        row = self._context.table.read([key], consistent=False).rows.get(key)
        return int(row["until"]) if row else 0


def _is_slow(rate: Rate) -> bool:
    return bool(rate.jobs) and _interval(rate) > _SLOW_SECONDS * _MICROSECONDS


def _interval(rate: Rate) -> float:
    """Return the microseconds between two slots."""
    return rate.seconds * _MICROSECONDS / rate.jobs
