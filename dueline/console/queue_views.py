"""`/console/…`: what the page shows of queues that no one route of the API answers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from threading import Lock
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dueline.config import metrics
from dueline.console.backend import Backend
from dueline.console.routing import make_route, to_problem
from dueline.core import instant
from dueline.core.job import JobId
from dueline.core.listing import MOST_JOBS
from dueline.core.retry import attempt
from dueline.core.text import shown
from dueline.errors import DuelineError, InvalidJob, JobNotFound
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
# Of 50 schedules each: what is behind them is in the queue's own list.
_MOST_PAGES, _PAGE = 10, "50"


def queue_routes(about: Callable[[], dict[str, Any]], backend: Backend) -> Iterator[Route]:
    """Return the routes to what the page shows of a deployment, `about` it, and of its queues."""

    def figures_of_all(_: Request) -> dict[str, Any]:
        names = [queue["queue"] for queue in backend.get("/queues")["queues"]]
        return figures(names, timedelta(hours=1), backend=backend, names=AT_A_GLANCE)

    under_way = Lock()

    def overview_of_all(_: Request) -> dict[str, Any]:
        # Beside another one, AWS would start the API's function twice as often: the first has it started.
        is_alone = under_way.acquire(timeout=_MOST_SECONDS)
        try:
            return overview(backend)
        finally:
            if is_alone:
                under_way.release()

    def figures_of_one(request: Request) -> dict[str, Any]:
        return figures([request.path_params["queue"]], _hours(request), backend=backend)

    yield read_route("/console/about", lambda _: about())
    yield read_route("/console/overview", overview_of_all)
    yield read_route("/console/schedules", lambda _: schedules(backend))
    yield read_route("/console/search", lambda request: search(request.query_params.get("text", ""), backend=backend))
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


def overview(backend: Backend) -> dict[str, Any]:
    """Return what the API answers of each queue, or the error of that call.

    Raises Throttled, Unavailable or Forbidden where the queues cannot be entries, as the next two do.
    """
    return _of_each_queue(lambda queue: backend.get(f"/queues/{queue}"), backend)


def schedules(backend: Backend) -> dict[str, Any]:
    """Return the schedules of each queue, and whether it has more, or the error of that call."""

    def read(queue: str) -> dict[str, Any]:
        params, entries, unreadable = {"limit": _PAGE}, list[Any](), 0
        for _ in range(_MOST_PAGES):
            page = backend.get(f"/queues/{queue}/schedules?{urlencode(params)}")
            entries += page["schedules"]
            unreadable += page.get("unreadable", 0)
            if page["next"] is None:
                return {"schedules": entries, "more": False, "unreadable": unreadable}
            params["next"] = page["next"]
        return {"schedules": entries, "more": True, "unreadable": unreadable}

    return _of_each_queue(read, backend)


def search(text: str, *, backend: Backend) -> dict[str, Any]:
    """Return for each queue the job with an id or a key, None where it has none, or the error of that call.

    Raises InvalidJob for an empty text, too.
    """
    if not text:
        raise InvalidJob("text is empty: it must be the id or the key of a job")

    id = attempt(JobId.parse, text)
    of, path, key = getattr(id, "queue", None), f"/{text}", f"?{urlencode({'key': text})}"

    def look_up(queue: str) -> dict[str, Any]:
        try:
            return {"job": backend.get(f"/queues/{queue}/jobs{path if queue == of else key}")}
        except JobNotFound:
            return {"job": None}

    return _of_each_queue(look_up, backend)


def _of_each_queue(read: Callable[[str], dict[str, Any]], backend: Backend) -> dict[str, Any]:
    """Return the queues, each with what `read` returns for its name, or with the error that it raises."""
    queues = backend.get("/queues")["queues"]
    answers = backend.parallel_map(partial(attempt, read), [queue["queue"] for queue in queues])
    rows = [
        {"error": to_problem(answer)} if isinstance(answer, DuelineError) else answer | {"error": None}
        for answer in answers
    ]
    return {"queues": [queue | row for queue, row in zip(queues, rows, strict=True)]}


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
