"""Breaker: for some seconds, keep away from what just failed."""

from collections.abc import Callable

from dueline.ports import Clock

# As long as DynamoDB takes to split a hot partition is minutes; an outage ends in its own time. So look often.
OPEN_SECONDS = 5.0


class Breaker:
    """Is open for 2.5 to 5 s after a failure, so that a flood does not wait for one time-out a call.

    `jitter` returns a random number from 0 to 1: processes that failed together do not come back together.
    """

    def __init__(self, *, clock: Clock, jitter: Callable[[], float]) -> None:
        self._clock = clock
        self._jitter = jitter
        self._closes = 0.0

    @property
    def is_open(self) -> bool:
        return self._clock.monotonic() < self._closes

    def trip(self) -> None:
        self._closes = self._clock.monotonic() + OPEN_SECONDS * (1 - self._jitter() / 2)
