"""What is due in the next hours, by minute, counted as far as 1,000 jobs go."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from dueline.console.reach import Reach
from dueline.lookup.listing import MOST_JOBS
from dueline.model import instant

MOST_COUNTED = 1000
# Large payloads make small pages: so long at most, and then what was counted is told.
_SECONDS = 3
_MINUTE_SECONDS = 60
_OVERDUE = -1


def due(queue: str, span: timedelta, *, reach: Reach) -> dict[str, Any]:
    """Return how many scheduled jobs of a queue are due in each minute of a span, and how many are overdue.

    However many there are, it costs eleven requests at most for jobs of usual size. Raises QueueNotFound, Throttled,
    Unavailable or Forbidden.
    """
    now, late = reach.clock.now(), reach.clock.monotonic() + _SECONDS
    end, last, more = now + span, now, False
    minutes: Counter[int] = Counter()
    for at in _due_times(queue, end, reach=reach):
        if more := minutes.total() == MOST_COUNTED or reach.clock.monotonic() > late:
            break
        last = at
        minutes[_minute_of(at) if at >= now else _OVERDUE] += 1
    counted, overdue = minutes.total(), minutes.pop(_OVERDUE, 0)
    until = instant.text(last if more else end)
    told = {"from": instant.text(now), "to": instant.text(end), "minutes": sorted(minutes.items())}
    return told | {"overdue": overdue, "counted": counted, "more": more, "until": until}


def _due_times(queue: str, end: datetime, *, reach: Reach) -> Iterator[datetime]:
    """Yield when each job is due, what is overdue first: it waits for a tick."""
    query = {"from": instant.text(instant.EPOCH), "to": instant.text(instant.round_up(end)), "limit": str(MOST_JOBS)}
    while True:
        page = reach.ask(f"/queues/{queue}/jobs?{urlencode(query)}")
        yield from (instant.parse(job["due"]) for job in page["jobs"])
        if page["next"] is None:
            return
        query["next"] = page["next"]


def _minute_of(at: datetime) -> int:
    seconds = instant.epoch_ms(at) // 1000
    return seconds - seconds % _MINUTE_SECONDS
