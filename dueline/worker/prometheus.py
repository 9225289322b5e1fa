"""A worker's metrics and health over HTTP, as Prometheus reads them."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest

from dueline.worker.delivery import Event, EventKind

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
_LABELS = ("queue", "kind")
_OTHER = "other"


class Metrics:
    """Counts what happens, by queue and kind. Threads may share it.

    The kind is "" without one, and "other" where no handler is of that kind: callers may name any number of kinds.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        # Those that have a handler of their own, by queue.
        self.kinds: dict[str, tuple[str, ...]] = {}
        self._counters = {
            kind: Counter(f"dueline_{kind.value}", kind.counts, _LABELS, registry=self.registry)
            for kind in EventKind
            if kind.counts
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


# A worker looks for messages at least once in a long poll: one that has not for so long hangs.
HEALTHY_SECONDS = 60.0
# How often the server checks whether the context has ended.
_CHECK_SECONDS = 0.1
_EVERYWHERE = ""


@contextmanager
def served(port: int, ages: Callable[[], Mapping[str, float]], *, metrics: Metrics) -> Iterator[int]:
    """Serve `/health` and `/metrics` on a port while the context lasts; yield the port, a free one for 0.

    It listens on all IPv4 addresses of the machine: probes come from outside a container. `ages` is as in `health_of`.
    Raises ValueError or OSError, which name the port.
    """
    try:
        server = _Server((_EVERYWHERE, port), _answering(metrics, ages))
    except OverflowError:
        raise ValueError(f"port is {port}: it must be from 0, which is any free one, to 65535") from None
    except OSError as fault:
        message = f"port {port} is not to be had for health and metrics: {fault.strerror}"
        raise OSError(fault.errno, message) from fault
    threading.Thread(target=server.serve_forever, args=(_CHECK_SECONDS,), name="health", daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class _Server(ThreadingTCPServer):
    """Not HTTPServer: that resolves the machine's name, which may take long in a container."""

    daemon_threads = allow_reuse_address = True


def _answering(metrics: Metrics, ages: Callable[[], Mapping[str, float]]) -> type[BaseHTTPRequestHandler]:
    class HealthRequest(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            match self.path.partition("?")[0]:
                case "/metrics":
                    self._answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(metrics.registry))
                case "/health":
                    report = health_of(ages(), metrics.kinds)
                    status = HTTPStatus.OK if report["healthy"] else HTTPStatus.SERVICE_UNAVAILABLE
                    self._answer(status, "application/json", json.dumps(report).encode())
                case _:
                    self.send_error(HTTPStatus.NOT_FOUND, explain="There are /health and /metrics.")

        def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Log nothing: probes come every few seconds."""

    return HealthRequest


def health_of(ages: Mapping[str, float], kinds: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the health of a process: `ages` says, by queue, how many seconds ago its worker looked for messages.

    `kinds` are those that have a handler of their own, by queue: a rollout is over when all processes have them.
    """
    hung = [queue for queue, age in ages.items() if age > HEALTHY_SECONDS]
    of_queues = {queue: list(kinds.get(queue, ())) for queue in ages}
    return {"healthy": not hung, "hung": hung, "seconds_since_poll": dict(ages), "kinds": of_queues}
