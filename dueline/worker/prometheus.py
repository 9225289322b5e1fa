"""A worker's metrics and health over HTTP, as Prometheus reads them."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from socketserver import TCPServer, ThreadingMixIn
from tempfile import TemporaryDirectory
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, Counter, Histogram, make_wsgi_app, values
from prometheus_client.multiprocess import MultiProcessCollector

from dueline.worker.events import Event, EventKind

_COUNTED = {
    EventKind.RECEIVED: "Jobs that were received.",
    EventKind.SUCCEEDED: "Jobs whose handler returned.",
    EventKind.RETRIED: "Jobs that failed and went back into their queue.",
    EventKind.UNHANDLED: "Jobs that no handler takes, and that went back into their queue.",
    EventKind.FAILED: "Jobs that went into the dead-letter queue.",
    EventKind.SKIPPED: "Jobs that were skipped because they were cancelled.",
    EventKind.OVERLAPPED: "Jobs that were skipped because another job of their schedule had not ended.",
    EventKind.RETURNED: "Jobs that were put back before their handler ran.",
    EventKind.LOST: "Jobs whose claim was lost, so that they were not acknowledged.",
    EventKind.TROUBLE: "Requests to AWS that failed for good.",
}
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
_LABELS = ("queue", "kind")
_OTHER = "other"
# Where prometheus_client finds it, a process counts in files of this folder, its own metrics and those of its jobs.
SHARED = "PROMETHEUS_MULTIPROC_DIR"


class Metrics:
    """Counts what happens, by queue and kind. Threads may share it.

    The kind is "" without one, and "other" where no handler is of that kind: callers may name any number of kinds.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        # Those that have a handler of their own, by queue.
        self.kinds: dict[str, tuple[str, ...]] = {}
        self._counters = {
            kind: Counter(f"dueline_{kind.value}", what, _LABELS, registry=self.registry)
            for kind, what in _COUNTED.items()
        }
        self._lateness = self._histogram("lateness", "Seconds after its due time that a job's handler began, at least.")
        self._duration = self._histogram("duration", "Seconds that a handler took.")

    def _histogram(self, name: str, what: str) -> Histogram:
        return Histogram(f"dueline_{name}_seconds", what, _LABELS, registry=self.registry, buckets=_SECONDS)

    def __call__(self, event: Event) -> None:
        if event.kind is EventKind.OPENED:
            self.kinds[event.queue] = event.kinds
        labels = event.queue, self._label(event)
        if event.kind in self._counters:
            self._counters[event.kind].labels(*labels).inc()
        if event.kind is EventKind.STARTED and event.lateness is not None:
            self._lateness.labels(*labels).observe(event.lateness)
        if event.duration is not None:
            self._duration.labels(*labels).observe(event.duration)

    def _label(self, event: Event) -> str:
        is_known = not event.job_kind or event.job_kind in self.kinds.get(event.queue, ())
        return event.job_kind if is_known else _OTHER


@contextmanager
def shared(environ: Mapping[str, str]) -> Iterator[tuple[CollectorRegistry, dict[str, str]]]:
    """Yield the metrics of all processes that have the yielded environment, those of the dead among them."""
    with TemporaryDirectory(prefix="dueline-metrics-") as scratch:
        folder = environ.get(SHARED) or scratch
        registry = CollectorRegistry()
        MultiProcessCollector(registry, path=folder)  # type: ignore[no-untyped-call]
        yield registry, {SHARED: folder}


def count_on_as(name: str) -> None:
    """Let this process count on, where metrics are shared, from where the last process of that name ended.

    Each process would have files of its own otherwise, and they would be more with each that dies.
    """
    values.ValueClass = values.MultiProcessValue(lambda: name)  # type: ignore[no-untyped-call]


# A worker looks for messages at least once in a long poll: one that has not for so long hangs.
HEALTHY_SECONDS = 60.0
# How often the server checks whether the context has ended.
_CHECK_SECONDS = 0.1
_EVERYWHERE = ""
_MOST_PORT = 65_535


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # HTTPServer's own version resolves the machine's name, which may take long in a container.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "worker", self.socket.getsockname()[1]
        self.setup_environ()


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: probes come every few seconds."""


@contextmanager
def served(port: int, *, registry: CollectorRegistry, health: Callable[[], dict[str, Any]]) -> Iterator[int]:
    """Serve `/health` and `/metrics` on a port while the context lasts; yield the port, a free one for 0.

    It listens on all IPv4 addresses of the machine: probes come from outside a container. `healthy` of the health says
    whether all is well. Raises ValueError or OSError, which name the port.
    """
    if not 0 <= port <= _MOST_PORT:
        raise ValueError(f"port is {port}: it must be from 0, which is any free one, to {_MOST_PORT}")
    try:
        server = make_server(_EVERYWHERE, port, _app(make_wsgi_app(registry), health), _Server, _Silent)
    except OSError as fault:
        message = f"port {port} is not to be had for health and metrics: {fault.strerror}"
        raise OSError(fault.errno, message) from fault
    threading.Thread(target=server.serve_forever, args=(_CHECK_SECONDS,), name="health", daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _app(metrics: Callable[..., Any], health: Callable[[], dict[str, Any]]) -> Callable[..., Iterable[bytes]]:
    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/metrics":
            page: Iterable[bytes] = metrics(environ, start_response)
            return page
        if environ["PATH_INFO"] != "/health":
            return _json(start_response, HTTPStatus.NOT_FOUND, {"paths": ["/health", "/metrics"]})
        report = health()
        return _json(start_response, HTTPStatus.OK if report["healthy"] else HTTPStatus.SERVICE_UNAVAILABLE, report)

    return answer


def health_of(ages: Mapping[str, float], kinds: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the health of a process: `ages` says, by queue, how many seconds ago its worker looked for messages.

    `kinds` are those that have a handler of their own, by queue: a rollout is over when all processes have them.
    """
    hung = [queue for queue, age in ages.items() if age > HEALTHY_SECONDS]
    of_queues = {queue: list(kinds.get(queue, ())) for queue in ages}
    return {"healthy": not hung, "hung": hung, "seconds_since_poll": dict(ages), "kinds": of_queues}


def health_of_all(
    processes: Sequence[tuple[int | None, Mapping[str, float] | None]], kinds: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return the health of several processes, which is that of the worst.

    Each has its id, None before it is started, and its ages, None before it is ready.
    """
    oldest: dict[str, float] = {}
    for queue, age in (item for _, ages in processes for item in (ages or {}).items()):
        oldest[queue] = max(age, oldest.get(queue, age))
    each = [{"pid": pid, **({"healthy": False} if ages is None else health_of(ages, kinds))} for pid, ages in processes]
    return health_of(oldest, kinds) | {"healthy": all(one["healthy"] for one in each), "processes": each}


def _json(start_response: Callable[..., Any], status: HTTPStatus, body: object) -> list[bytes]:
    start_response(f"{status.value} {status.phrase}", [("Content-Type", "application/json")])
    return [json.dumps(body).encode()]
