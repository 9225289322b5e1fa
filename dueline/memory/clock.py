"""A clock for tests, which moves only on demand."""

from datetime import datetime, timedelta


class VirtualClock:
    """A clock that stands still until `sleep` moves it."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    def sleep(self, seconds: float) -> None:
        self._elapsed += seconds
