"""What is due in the next hours, by minute, counted as far as 1,000 jobs go."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dueline.client.listed import ScheduledJob
from dueline.console import asked
from dueline.console.reach import Reach
from dueline.model import instant
from dueline.ports import Clock

MOST_COUNTED = 1000
# Large payloads make small pages: so long at most, and then what was counted is told.
_SECONDS = 3
_DEFAULT_HOURS, _MOST_HOURS = 6, 7 * 24
_MINUTE_SECONDS = 60


@dataclass(kw_only=True, slots=True)
class _Counted:
    """Jobs in due order: how many there are, up to when, and whether they are all."""

    minutes: Counter[int] = field(default_factory=Counter)
    overdue: int = 0
    last: datetime | None = None
    more: bool = False

    @property
    def total(self) -> int:
        return self.overdue + self.minutes.total()

    def count(self, jobs: Iterable[ScheduledJob], *, now: datetime, until: float, clock: Clock) -> None:
        for job in jobs:
            if self.total == MOST_COUNTED or clock.monotonic() > until:
                self.more = True
                return
            self.last = job.due
            if job.due < now:
                self.overdue += 1
            else:
                self.minutes[_minute_of(job.due)] += 1


def due(queue: str, query: Mapping[str, str], *, reach: Reach) -> dict[str, Any]:
    """Return how many scheduled jobs of a queue are due in each minute of the next `hours`, and how many are overdue.

    However many there are, it costs eleven requests at most for jobs of usual size. Raises QueueNotFound or InvalidJob,
    Throttled, Unavailable or Forbidden.
    """
    span = asked.hours(query, default=_DEFAULT_HOURS, most=_MOST_HOURS)
    clock = reach.clock
    now, until = clock.now(), clock.monotonic() + _SECONDS
    end = now + span
    counted = _Counted()
    # What is overdue waits for a tick, and is listed first.
    counted.count(reach.client.jobs(queue, start=instant.EPOCH, end=end), now=now, until=until, clock=clock)
    return {
        "from": instant.text(now),
        "to": instant.text(end),
        "minutes": [[minute, count] for minute, count in sorted(counted.minutes.items())],
        "overdue": counted.overdue,
        "counted": counted.total,
        "more": counted.more,
        "until": instant.text(counted.last or now) if counted.more else instant.text(end),
    }


def _minute_of(at: datetime) -> int:
    seconds = instant.epoch_ms(at) // 1000
    return seconds - seconds % _MINUTE_SECONDS
