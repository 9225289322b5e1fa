"""All queues at a glance: what their API tells of each, and whether their jobs were on time.

A glance is one request for each queue, each at a cost that does not grow with what is scheduled. CloudWatch is asked
once in a minute, since it learns no more often, and is paid for each metric that it tells; nobody waits for it long.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from dueline.config import metrics
from dueline.config.registry import settings_of
from dueline.console import problems
from dueline.console.figures import share
from dueline.console.lately import Lately
from dueline.console.reach import Reach
from dueline.errors import DuelineError
from dueline.lookup.overview import Overview
from dueline.model import instant
from dueline.model.queue_settings import QueueSettings
from dueline.operate.figures import Points, Series
from dueline.ports import Depth
from dueline.retry.calls import attempt

_PERIOD_SECONDS = 60
_ON_TIME_SPAN = timedelta(hours=1)
# A tick reports each minute, and CloudWatch shows it a minute or so later.
_NOW_SPAN = timedelta(minutes=4)
_WANTED = {metrics.LATENESS: "Maximum", metrics.ON_TIME: "Sum", metrics.DELAYED: "Sum"}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reported:
    """What the metrics say of each queue: the share that was on time, and its lateness at `at` the latest."""

    at: datetime
    read: Mapping[str, Mapping[str, Points]]
    reason: str | None = None

    def on_time(self, queue: str) -> float | None:
        read = self.read.get(queue, {})
        return share(
            *(sum(value for _, value in read.get(metric, ())) for metric in (metrics.ON_TIME, metrics.DELAYED))
        )

    def lateness(self, queue: str) -> float:
        points = self.read.get(queue, {}).get(metrics.LATENESS, ())
        return points[-1][1] if points and points[-1][0] >= self.at - _NOW_SPAN else 0.0


class Glance:
    """Looks at all queues of a deployment. Threads may share it."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        unknown = _Reported(at=instant.EPOCH, read={}, reason="CloudWatch has not answered yet")
        self._reported = Lately(self._ask, unknown, seconds=_PERIOD_SECONDS, moment=reach.moment, clock=reach.clock)

    def read(self) -> dict[str, Any]:
        """Return how each queue is doing, and what went wrong with those of which that is not known.

        Raises Throttled, Unavailable or Forbidden where there are no queues to be told.
        """
        reach, queues = self._reach, self._reach.client.queues()
        asking: list[Callable[[], Any]] = [
            partial(self._reported.read, queues),
            *(partial(attempt, reach.client.queue, queue.name) for queue in queues),
        ]
        reported, *overviews = reach.spread(_answer_of, asking)
        now = reach.clock.now()
        return {
            "asked": instant.text(now),
            "figures": {"reason": reported.reason},
            "queues": [
                {**_settings(queue), **_told(queue.name, overview, reported, now=now)}
                for queue, overview in zip(queues, overviews, strict=True)
            ],
        }

    def _ask(self, queues: Sequence[QueueSettings]) -> _Reported:
        now = self._reach.clock.now()
        wanted = [
            Series(queue=queue.name, metric=metric, statistic=statistic)
            for queue in queues
            for metric, statistic in _WANTED.items()
        ]
        try:
            read = iter(self._reach.figures.read(wanted, start=now - _ON_TIME_SPAN, end=now, period=_PERIOD_SECONDS))
        except DuelineError as error:
            return _Reported(at=now, read={}, reason=str(error))
        by_queue = {queue.name: {metric: next(read) for metric in _WANTED} for queue in queues}
        is_empty = not any(points for of_queue in by_queue.values() for points in of_queue.values())
        reason = "CloudWatch has no metrics of this deployment in the last hour" if is_empty else None
        return _Reported(at=now, read=by_queue, reason=reason)


def _answer_of(ask: Callable[[], Any]) -> Any:
    return ask()


def _settings(queue: QueueSettings) -> dict[str, Any]:
    return {"name": queue.name, **settings_of(queue)}


_COUNTS = ("scheduled", "more_scheduled", "next_due", "fence_age", "waiting", "in_flight", "delayed", "levels", "dead")
_UNKNOWN: dict[str, Any] = dict.fromkeys((*_COUNTS, "overdue", "paused", "rate", "lateness", "on_time"))


def _told(queue: str, overview: Overview | DuelineError, reported: _Reported, *, now: datetime) -> dict[str, Any]:
    if isinstance(overview, DuelineError):
        return _UNKNOWN | {"error": problems.told(overview)}
    due = overview.next_due
    overdue = 0.0 if due is None else max(0.0, (now - due).total_seconds())
    return {
        "scheduled": overview.scheduled,
        "more_scheduled": overview.more_scheduled,
        "next_due": None if due is None else instant.text(due),
        "overdue": overdue > 0,
        "fence_age": overview.fence_age,
        **_depth(overview.depth),
        "levels": [{"priority": number, **_depth(depth)} for number, depth in enumerate(overview.levels, start=1)],
        "dead": overview.dead,
        "paused": overview.control.paused,
        "rate": None if overview.control.rate is None else str(overview.control.rate),
        "lateness": max(overdue, reported.lateness(queue)),
        "on_time": reported.on_time(queue),
        "error": None,
    }


def _depth(depth: Depth) -> dict[str, int]:
    return {"waiting": depth.waiting, "in_flight": depth.in_flight, "delayed": depth.delayed}
