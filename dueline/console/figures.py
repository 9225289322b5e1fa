"""The figures of queues over time, from the metrics that the deployment's functions report."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from dueline.config import metrics
from dueline.console import asked
from dueline.console.reach import Reach
from dueline.errors import DuelineError
from dueline.model import instant
from dueline.model.job import queue_name
from dueline.operate.figures import Points, Series

_DEFAULT_HOURS, _MOST_HOURS = 3, 14 * 24
# CloudWatch keeps minutes for 15 days; a chart has room for some 400 points.
_PERIODS = ((6, 60), (36, 300), (_MOST_HOURS, 3600))
# What the functions report of a queue, and which statistic of it tells how the queue was.
WANTED = {metrics.LATENESS: "Maximum", metrics.DISPATCHED: "Sum", metrics.ON_TIME: "Sum", metrics.DELAYED: "Sum"}


def figures(queue: str, query: Mapping[str, str], *, reach: Reach) -> dict[str, Any]:
    """Return what is known of a queue's last `hours`; where that is nothing, or may not be read, the reason.

    Raises QueueNotFound for what is no queue's name, or InvalidJob.
    """
    name = queue_name(queue)
    span = asked.hours(query, default=_DEFAULT_HOURS, most=_MOST_HOURS)
    period = next(period for most, period in _PERIODS if span <= timedelta(hours=most))
    end = reach.clock.now()
    told = {"period": period, "from": instant.text(end - span), "to": instant.text(end)}
    wanted = [Series(queue=name, metric=metric, statistic=statistic) for metric, statistic in WANTED.items()]
    try:
        read = reach.figures.read(wanted, start=end - span, end=end, period=period)
    except DuelineError as error:
        return told | {"series": None, "reason": str(error)}
    if not any(read):
        return told | {"series": None, "reason": f"CloudWatch has no metrics of queue {name!r} in this time"}
    return told | {"series": _series(dict(zip(WANTED, read, strict=True))), "reason": None}


def share(on_time: float, delayed: float) -> float | None:
    """Return the share of jobs that were on time, None of no jobs."""
    return on_time / (on_time + delayed) if on_time + delayed else None


def _series(read: Mapping[str, Points]) -> dict[str, list[list[float]]]:
    on_time, delayed = dict(read[metrics.ON_TIME]), dict(read[metrics.DELAYED])
    shares = ((at, share(on_time.get(at, 0), delayed.get(at, 0))) for at in sorted({*on_time, *delayed}))
    return {
        "lateness": _told(read[metrics.LATENESS]),
        "throughput": _told(read[metrics.DISPATCHED]),
        "on_time": _told([(at, value) for at, value in shares if value is not None]),
    }


def _told(points: Points) -> list[list[float]]:
    return [[_seconds(at), value] for at, value in points]


def _seconds(at: datetime) -> int:
    return instant.epoch_ms(at) // 1000
