"""Apply the pause and the rate of a queue, which all its workers share."""

import math
import threading
from collections.abc import Callable

from dueline.lookup.control import Control, read_control
from dueline.model.control_rows import slots_key
from dueline.model.message import BATCH_MESSAGES
from dueline.model.rate import Rate
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.watch.event import Report, trouble

# A change takes effect within 5 s: a read, and what it takes to act on it, stay well below.
WATCH_SECONDS = 2.0
# How far ahead slots are taken: far enough for requests to cost no slots, near enough for a change to take effect soon.
AHEAD_SECONDS = 0.5
_MICROSECONDS = 1_000_000
# The row of a rate that is no longer used expires.
_KEPT_SECONDS = 30 * 86_400


def common_time(connection: QueueConnection) -> float:
    """Return AWS's own time in seconds since 1970, as far as it is known: the only clock that all workers share.

    Slots are instants: a machine whose own clock is an hour ahead would take the slots of an hour.
    """
    behind = connection.behind()
    return connection.clock.now().timestamp() + (behind / 2 if math.isfinite(behind) else 0.0)


class RateLimiter:
    """Decides whether jobs of a queue may begin, and when. `wall` returns the time in seconds since 1970.

    Each job takes a slot of its own. Slots follow one another at the queue's rate. A worker takes some by moving the
    instant up to which all are taken, in one request, so no two workers get the same. A slot that nobody took in time
    is lost.
    """

    def __init__(self, connection: QueueConnection, *, wall: Callable[[], float], report: Report) -> None:
        self._connection = connection
        self._wall = wall
        self._report = report
        self._control = Control()

    def read(self) -> bool:
        """Read the pause and the rate; tell whether they have changed. Raises Throttled or Unavailable."""
        before, self._control = self._control, read_control(self._connection.queue, table=self._connection.table)
        return before != self._control

    def watch(self, stopped: threading.Event, *, on_change: Callable[[], None]) -> None:
        """Read pause and rate every two seconds until `stopped`; call `on_change` when they have changed.

        It is called again after the next read, for the jobs that took slots during the first call.
        """
        changed = False
        while not stopped.wait(WATCH_SECONDS):
            before = changed
            try:
                changed = self.read()
            except Exception as fault:
                self._report(trouble(fault, queue=self._connection.queue, what="pause and rate could not be read"))
            try:
                if before or changed:
                    on_change()
            except Exception as fault:
                # It is called again. A thread that ended would leave later pauses without effect.
                changed = True
                self._report(
                    trouble(fault, queue=self._connection.queue, what="a changed pause or rate was not applied")
                )

    @property
    def is_open(self) -> bool:
        return not self._control.is_stopped

    @property
    def is_limited(self) -> bool:
        return self._control.rate is not None

    def most(self) -> int:
        """Return how many jobs to receive now: 0 while none may begin soon. Raises Throttled or Unavailable."""
        control = self._control
        if control.is_stopped:
            return 0
        if control.rate is None:
            return BATCH_MESSAGES
        if self._taken_until(control) - self._now() > AHEAD_SECONDS * _MICROSECONDS:
            return 0
        return min(BATCH_MESSAGES, math.ceil(AHEAD_SECONDS * _MICROSECONDS / _interval(control.rate)))

    def slots(self, count: int) -> list[float]:
        """Take slots for so many jobs; return in how many seconds each begins. Raises Throttled or Unavailable.

        At a rate of 0 no slots are taken: no job may begin then.
        """
        # Another thread may replace it meanwhile.
        control = self._control
        if control.rate is None or not control.rate.jobs or not count:
            return [0.0] * count
        interval, now = _interval(control.rate), self._now()
        amount = round(count * interval)
        key = slots_key(self._connection.queue, control.rate_set)
        until = self._connection.table.reserve(key, now=now, amount=amount, ttl=int(self._wall()) + _KEPT_SECONDS)
        return [(until - amount + number * interval - now) / _MICROSECONDS for number in range(count)]

    def _now(self) -> int:
        return int(self._wall() * _MICROSECONDS)

    def _taken_until(self, control: Control) -> int:
        key = slots_key(self._connection.queue, control.rate_set)
        row = self._connection.table.read([key], consistent=False).rows.get(key)
        return int(row["until"]) if row else 0


def _interval(rate: Rate) -> float:
    """Return the microseconds between two slots."""
    return rate.seconds * _MICROSECONDS / rate.jobs
