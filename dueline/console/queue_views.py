"""`/console/…`: what the page shows of queues that no one route of the API answers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from dueline.config import metrics
from dueline.console.routing import make_route
from dueline.core import instant
from dueline.core.ports import Clock, ParallelMap
from dueline.operations.observation import Figures, Series
from dueline.operations.redrive import RedriveQueues

# The figures of a queue's charts, each with its statistic.
METRICS = {
    "lateness": (metrics.LATENESS, "Maximum"),
    "on_time": (metrics.ON_TIME, "Sum"),
    "delayed": (metrics.DELAYED, "Sum"),
    "throughput": (metrics.DISPATCHED, "Sum"),
}
# Those that the state of a queue depends on: the API's log, which has a line a request, is not read for them.
AT_A_GLANCE = ("lateness", "on_time", "delayed")
_TTL = Series(queue=None, metric=metrics.TTL_OFF, statistic="Maximum")
_MINUTE = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Backend:
    """A deployment, with the caller's credentials: its API, the dead letters of its queues, and its metrics.

    `get` returns what the API answers to a GET of a path, or raises its error. `dead_letters` raises QueueNotFound,
    DeploymentNotFound, Forbidden or Unavailable. `parallel_map` makes several calls at once.
    """

    get: Callable[[str], dict[str, Any]]
    dead_letters: Callable[[str], RedriveQueues]
    figures: Figures
    clock: Clock
    parallel_map: ParallelMap


def queue_routes(about: dict[str, Any], backend: Backend) -> Iterator[Route]:
    """Return the routes to what the page shows of a deployment, `about` it, and of its queues."""

    def figures_of_all(*_: object) -> dict[str, Any]:
        names = [queue["queue"] for queue in backend.get("/queues")["queues"]]
        return figures(names, AT_A_GLANCE, hours=1, backend=backend)

    def figures_of_one(request: Request, _: bytes) -> dict[str, Any]:
        return figures([request.path_params["queue"]], METRICS, hours=6, backend=backend)

    yield make_route("/console/about", ["GET"], lambda *_: about)
    yield make_route("/console/figures", ["GET"], figures_of_all)
    yield make_route("/console/queues/{queue}/figures", ["GET"], figures_of_one)


def figures(queues: Sequence[str], names: Iterable[str], *, hours: int, backend: Backend) -> dict[str, Any]:
    """Return figures of queues by minute, of the last hours. Raises as Figures.read does.

    `ttl_off` is what the watch reported last, None if that is not known.
    """
    end = backend.clock.now()
    start = end - timedelta(hours=hours)
    pairs = [(queue, name) for queue in queues for name in names]
    series = [Series(queue=queue, metric=METRICS[name][0], statistic=METRICS[name][1]) for queue, name in pairs]
    *read, ttl = backend.figures.read([*series, _TTL], start=start, end=end, period=_MINUTE)
    by_queue: dict[str, dict[str, list[list[float]]]] = {queue: {} for queue in queues}
    for (queue, name), points in zip(pairs, read, strict=True):
        by_queue[queue][name] = [[instant.epoch_ms(at) // 1000, value] for at, value in points]
    return {
        "from": instant.text(start),
        "to": instant.text(end),
        "ttl_off": bool(ttl[-1][1]) if ttl else None,
        "series": by_queue,
    }
