"""The figures of queues over time, from the metrics that the deployment's functions report."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from dueline.config import metrics
from dueline.console.reach import Reach
from dueline.errors import DuelineError
from dueline.model import instant
from dueline.operate.figures import Points, Series

# What the page draws, and which statistic of which metric tells it.
WANTED = {
    "lateness": (metrics.LATENESS, "Maximum"),
    "on_time": (metrics.ON_TIME, "Sum"),
    "delayed": (metrics.DELAYED, "Sum"),
    "throughput": (metrics.DISPATCHED, "Sum"),
}
# Those of which it tells how a queue stands: CloudWatch is paid for each metric that it tells.
AT_A_GLANCE = ("lateness", "on_time", "delayed")
_TTL = Series(queue=None, metric=metrics.TTL_OFF, statistic="Maximum")
# A chart has room for some 400 points.
_MINUTE, _FIVE_MINUTES, _LONGEST_BY_MINUTE = 60, 300, timedelta(hours=6)


def figures(queues: Sequence[str], span: timedelta, *, reach: Reach, names: Iterable[str] = WANTED) -> dict[str, Any]:
    """Return what is known of queues' last hours; where that is nothing, or may not be read, the reason.

    `ttl_off` is what the guard of TTL reported last, None if that is not known.
    """
    period = _MINUTE if span <= _LONGEST_BY_MINUTE else _FIVE_MINUTES
    end = reach.clock.now()
    told: dict[str, Any] = {"period": period, "from": instant.text(end - span), "to": instant.text(end)}
    places = [(queue, name) for queue in queues for name in names]
    wanted = [Series(queue=queue, metric=WANTED[name][0], statistic=WANTED[name][1]) for queue, name in places]
    try:
        *read, ttl = reach.figures.read([*wanted, _TTL], start=end - span, end=end, period=period)
    except DuelineError as error:
        return told | {"series": None, "reason": str(error), "ttl_off": None}
    told |= {"ttl_off": bool(ttl[-1][1]) if ttl else None}
    if not any(read):
        return told | {"series": None, "reason": "CloudWatch has no metrics of this time"}
    return told | {"series": _by_queue(queues, places, read), "reason": None}


def _by_queue(queues: Iterable[str], places: Sequence[tuple[str, str]], read: Sequence[Points]) -> dict[str, Any]:
    series: dict[str, dict[str, list[list[float]]]] = {queue: {} for queue in queues}
    for (queue, name), points in zip(places, read, strict=True):
        series[queue][name] = [[instant.epoch_ms(at) // 1000, value] for at, value in points]
    return series
