"""DynamoDB's TTL in memory."""

from datetime import datetime, timedelta

from dueline.errors import NotYet
from dueline.ports import Clock
from dueline.protocol.ttl_guard import TtlStatus


class MemoryTimeToLive:
    """TTL, which can be switched once in `takes`, and may go on to collect for that long after it was switched off."""

    def __init__(self, *, clock: Clock, takes: timedelta = timedelta(hours=1)) -> None:
        self._clock = clock
        self._takes = takes
        self._is_on = True
        self._settled: datetime | None = None

    @property
    def collects(self) -> bool:
        """Whether a row past its TTL may be collected now."""
        return self._is_on or self._is_settling()

    def status(self) -> TtlStatus:
        if self._is_settling():
            return TtlStatus.ENABLING if self._is_on else TtlStatus.DISABLING
        return TtlStatus.ENABLED if self._is_on else TtlStatus.DISABLED

    def switch(self, *, on: bool) -> None:
        if on == self._is_on:
            return
        if self._is_settling():
            raise NotYet("TTL was switched within the last hour")
        self._is_on, self._settled = on, self._clock.now() + self._takes

    def _is_settling(self) -> bool:
        return self._settled is not None and self._clock.now() < self._settled
