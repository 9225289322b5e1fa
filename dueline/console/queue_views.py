"""`/console/…`: what the page shows of queues that no one route of the API answers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dueline.config import metrics
from dueline.console.backend import Backend
from dueline.console.routing import make_route
from dueline.core import instant
from dueline.core.listing import MOST_JOBS
from dueline.core.text import shown
from dueline.errors import InvalidJob
from dueline.operations.observation import Series

# The figures that the page draws, each with its statistic.
METRICS = {
    "lateness": (metrics.LATENESS, "Maximum"),
    "on_time": (metrics.ON_TIME, "Sum"),
    "delayed": (metrics.DELAYED, "Sum"),
    "throughput": (metrics.DISPATCHED, "Sum"),
}
# Those that the state of a queue depends on: the API's log, which has a line a request, is not read for them.
AT_A_GLANCE = ("lateness", "on_time", "delayed")
_TTL = Series(queue=None, metric=metrics.TTL_OFF, statistic="Maximum")
# A chart has room for some 400 points.
_MINUTE, _FIVE_MINUTES, _LONGEST_BY_MINUTE = 60, 300, timedelta(hours=6)
MOST_COUNTED = 1000
# Large payloads make small pages: counting ends after so long, with what it has.
_MOST_SECONDS, _MOST_HOURS, _OVERDUE = 3, 24, -1


def queue_routes(about: Callable[[], dict[str, Any]], backend: Backend) -> Iterator[Route]:
    """Return the routes to what the page shows of a deployment, `about` it, and of its queues."""

    def figures_of_all(_: Request) -> dict[str, Any]:
        names = [queue["queue"] for queue in backend.get("/queues")["queues"]]
        return figures(names, timedelta(hours=1), backend=backend, names=AT_A_GLANCE)

    def figures_of_one(request: Request) -> dict[str, Any]:
        return figures([request.path_params["queue"]], _hours(request), backend=backend)

    yield read_route("/console/about", lambda _: about())
    yield read_route("/console/figures", figures_of_all)
    yield read_route("/console/queues/{queue}/figures", figures_of_one)
    yield read_route(
        "/console/queues/{queue}/due",
        lambda request: due(request.path_params["queue"], _hours(request), backend=backend),
    )


def read_route(path: str, read: Callable[[Request], dict[str, Any]]) -> Route:
    """Return the route whose response is a JSON object, which `read` returns."""

    def handler(request: Request, _: bytes) -> Response:
        return JSONResponse(read(request))

    return make_route(path, ["GET"], handler)


def figures(
    queues: Sequence[str], span: timedelta, *, backend: Backend, names: Iterable[str] = METRICS
) -> dict[str, Any]:
    """Return the figures of queues' last hours. Raises as Figures.read does.

    `ttl_off` is what the watch reported last, None if that is not known.
    """
    period = _MINUTE if span <= _LONGEST_BY_MINUTE else _FIVE_MINUTES
    end = backend.clock.now()
    pairs = [(queue, name) for queue in queues for name in names]
    series = [Series(queue=queue, metric=METRICS[name][0], statistic=METRICS[name][1]) for queue, name in pairs]
    *read, ttl = backend.figures.read([*series, _TTL], start=end - span, end=end, period=period)
    by_queue: dict[str, dict[str, list[list[float]]]] = {queue: {} for queue in queues}
    for (queue, name), points in zip(pairs, read, strict=True):
        by_queue[queue][name] = [[instant.epoch_ms(at) // 1000, value] for at, value in points]
    return {
        "period": period,
        "from": instant.text(end - span),
        "to": instant.text(end),
        "ttl_off": bool(ttl[-1][1]) if ttl else None,
        "series": by_queue,
    }


def due(queue: str, span: timedelta, *, backend: Backend) -> dict[str, Any]:
    """Return how many scheduled jobs of a queue are due in each minute of a span, and how many are overdue.

    However many there are, it costs eleven requests at most for jobs of usual size. Raises QueueNotFound, Throttled,
    Unavailable or Forbidden.
    """
    now, late = backend.clock.now(), backend.clock.monotonic() + _MOST_SECONDS
    end, last, more = now + span, now, False
    minutes: Counter[int] = Counter()
    for at in _due_times(queue, end, backend=backend):
        if more := minutes.total() == MOST_COUNTED or backend.clock.monotonic() > late:
            break
        last = at
        seconds = instant.epoch_ms(at) // 1000
        minutes[seconds - seconds % _MINUTE if at >= now else _OVERDUE] += 1
    counted, overdue = minutes.total(), minutes.pop(_OVERDUE, 0)
    return {
        "from": instant.text(now),
        "to": instant.text(end),
        "minutes": sorted(minutes.items()),
        "overdue": overdue,
        "counted": counted,
        "more": more,
        "until": instant.text(last if more else end),
    }


def _due_times(queue: str, end: datetime, *, backend: Backend) -> Iterator[datetime]:
    """Yield when each job is due, what is overdue first: it waits for a tick."""
    params = {"from": instant.text(instant.EPOCH), "to": instant.text(instant.round_up(end)), "limit": str(MOST_JOBS)}
    while True:
        page = backend.get(f"/queues/{queue}/jobs?{urlencode(params)}")
        yield from (instant.parse(job["due"]) for job in page["jobs"])
        if page["next"] is None:
            return
        params["next"] = page["next"]


def _hours(request: Request) -> timedelta:
    """Return the parameter `hours`."""
    text = request.query_params.get("hours", "")
    if text not in map(str, range(1, _MOST_HOURS + 1)):
        raise InvalidJob(f"hours is {shown(text)}: it must be a whole number from 1 to {_MOST_HOURS}")
    return timedelta(hours=int(text))
