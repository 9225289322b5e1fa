"""A worker's health and metrics over HTTP."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

# A worker looks for messages at least once in a long poll: one that has not for so long hangs.
HEALTHY_SECONDS = 60.0
# How often the server checks whether the context has ended.
_CHECK_SECONDS = 0.1
_EVERYWHERE = ""
_MOST_PORT = 65_535

Ages = Callable[[], Mapping[str, float]]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # HTTPServer's own version asks DNS for the machine's name, which may take long in a container.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "worker", self.socket.getsockname()[1]
        self.setup_environ()


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: probes come every few seconds."""


@contextmanager
def served(port: int, *, registry: CollectorRegistry, ages: Ages) -> Iterator[int]:
    """Serve `/health` and `/metrics` on a port while the context lasts; yield the port, a free one for 0.

    It listens on all IPv4 addresses of the machine: probes come from outside a container. `ages` returns, by queue, how
    many seconds ago its worker last looked for messages. Raises ValueError or OSError, which name the port.
    """
    with answering(port, registry=registry, health=lambda: health_of(ages())) as served_port:
        yield served_port


@contextmanager
def answering(port: int, *, registry: CollectorRegistry, health: Callable[[], dict[str, Any]]) -> Iterator[int]:
    """Do as `served` does, with a health of which `healthy` tells whether all is well."""
    server = _listening(port, _app(make_wsgi_app(registry), health))
    threading.Thread(target=server.serve_forever, args=(_CHECK_SECONDS,), name="health", daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _listening(port: int, app: Callable[..., Any]) -> WSGIServer:
    if not 0 <= port <= _MOST_PORT:
        raise ValueError(f"port is {port}: it must be from 0, which is any free one, to {_MOST_PORT}")
    try:
        return make_server(_EVERYWHERE, port, app, _Server, _Silent)
    except OSError as fault:
        message = f"port {port} is not to be had for health and metrics: {fault.strerror}"
        raise OSError(fault.errno, message) from fault


def _app(metrics: Callable[..., Any], health: Callable[[], dict[str, Any]]) -> Callable[..., Iterable[bytes]]:
    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/metrics":
            page: Iterable[bytes] = metrics(environ, start_response)
            return page
        if environ["PATH_INFO"] != "/health":
            return _json(start_response, HTTPStatus.NOT_FOUND, {"paths": ["/health", "/metrics"]})
        told = health()
        return _json(start_response, HTTPStatus.OK if told["healthy"] else HTTPStatus.SERVICE_UNAVAILABLE, told)

    return answer


def health_of(ages: Mapping[str, float]) -> dict[str, Any]:
    """Return the health of a process, whose `ages` are by queue."""
    hung = [queue for queue, age in ages.items() if age > HEALTHY_SECONDS]
    return {"healthy": not hung, "hung": hung, "seconds_since_asked": dict(ages)}


def health_of_all(processes: Sequence[tuple[int | None, Mapping[str, float] | None]]) -> dict[str, Any]:
    """Return the health of several processes, which is that of the worst.

    Each has its id, None before it is started, and its ages, None before it has begun to work.
    """
    oldest: dict[str, float] = {}
    for queue, age in (item for _, ages in processes for item in (ages or {}).items()):
        oldest[queue] = max(age, oldest.get(queue, age))
    each = [{"pid": pid, **({"healthy": False} if ages is None else health_of(ages))} for pid, ages in processes]
    return health_of(oldest) | {"healthy": all(one["healthy"] for one in each), "processes": each}


def _json(start_response: Callable[..., Any], status: HTTPStatus, body: object) -> list[bytes]:
    start_response(f"{status.value} {status.phrase}", [("Content-Type", "application/json")])
    return [json.dumps(body).encode()]
