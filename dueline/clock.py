"""The clock of this machine."""

import time
from datetime import UTC, datetime


class SystemClock:
    """Time as the operating system tells it."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
