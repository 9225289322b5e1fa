"""When a schedule runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class Rule:
    """When a schedule runs: by `cron` in a `zone`, or `every` so often.

    `cron` has five fields, and names times in `zone`, an IANA zone. `every` is 60 s or more, in whole seconds, and
    counts physical time from `start`, without it from 1970. A run is never before `start`, and always before `end`.
    `count` is how many there are from `start` on, 1 to 1,000. Raises InvalidSchedule, which names the field, its value
    and what is allowed.
    """

    cron: str | None = None
    every: timedelta | None = None
    zone: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None
    count: int | None = None

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Yield the nominals after an instant, strictly, the earliest first: in UTC, in whole minutes or seconds."""
        raise NotImplementedError

    def before(self, instant: datetime) -> Iterator[datetime]:
        """Yield the nominals at an instant and before, the latest first."""
        raise NotImplementedError

    @property
    def spacing(self) -> timedelta:
        """Return the shortest spacing between two nominals: the bound of a jitter."""
        raise NotImplementedError

    @property
    def never_fires(self) -> bool:
        """Tell whether there is no nominal at all."""
        raise NotImplementedError
