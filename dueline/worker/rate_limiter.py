"""Heed the pause and the rate of a queue, which all its workers share."""

import math
import threading
from collections.abc import Callable

from dueline.lookup.control import Control, read_control
from dueline.model.control_rows import slots_key
from dueline.model.message import BATCH_MESSAGES
from dueline.model.rate import Rate
from dueline.worker.queue_connection import QueueConnection
from dueline.worker.watch.event import Report, trouble

# What is changed is heeded within 5 s: a read, and what it takes to act on it, stay well below.
WATCH_SECONDS = 2.0
# How far ahead slots are taken: so much that requests take no time from them, so little that a change is soon heeded.
AHEAD_SECONDS = 0.5
_MICROSECONDS = 1_000_000
# The row of a rate that nobody asks for any more is collected.
_KEPT_SECONDS = 30 * 86_400


def common_time(connection: QueueConnection) -> float:
    """Return AWS's own time in seconds since 1970, as far as it is known: the only one that all workers share.

    Slots are instants. A machine whose own clock is ahead would take those of hours, and leave none to the others.
    """
    behind = connection.behind()
    return connection.clock.now().timestamp() + (behind / 2 if math.isfinite(behind) else 0.0)


class RateLimiter:
    """Whether jobs of a queue may begin, and when. `wall` returns the time in seconds since 1970.

    Each job has a slot of its own: slots follow one another as the queue's rate says, and no two workers get the same,
    because who takes some moves the instant up to which all are taken, in one request. A slot that nobody took in time
    is over.
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
        """Read them every two seconds until `stopped`; tell of a change, and once more a look later.

        Then those, too, have heard of it that took slots while it was told.
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
                # To be told again. A thread that ends would heed no pause any more.
                changed = True
                self._report(
                    trouble(fault, queue=self._connection.queue, what="a changed pause or rate was not heeded")
                )

    @property
    def is_open(self) -> bool:
        return not self._control.is_stopped

    @property
    def is_limited(self) -> bool:
        return self._control.rate is not None

    def most(self) -> int:
        """Return how many jobs to ask for now: 0 while none may begin soon. Raises Throttled or Unavailable."""
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

        At a rate of 0 there are none to take: then none may begin.
        """
        # Another thread may read them anew meanwhile.
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
