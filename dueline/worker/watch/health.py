"""A worker's health and metrics over HTTP."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
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
    server = _listening(port, _app(make_wsgi_app(registry), ages))
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


def _app(metrics: Callable[..., Any], ages: Ages) -> Callable[..., Iterable[bytes]]:
    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/metrics":
            page: Iterable[bytes] = metrics(environ, start_response)
            return page
        if environ["PATH_INFO"] != "/health":
            return _json(start_response, HTTPStatus.NOT_FOUND, {"paths": ["/health", "/metrics"]})
        return _json(start_response, *_health(ages()))

    return answer


def _health(ages: Mapping[str, float]) -> tuple[HTTPStatus, dict[str, Any]]:
    hung = [queue for queue, age in ages.items() if age > HEALTHY_SECONDS]
    status = HTTPStatus.SERVICE_UNAVAILABLE if hung else HTTPStatus.OK
    return status, {"healthy": not hung, "hung": hung, "seconds_since_asked": dict(ages)}


def _json(start_response: Callable[..., Any], status: HTTPStatus, body: object) -> list[bytes]:
    start_response(f"{status.value} {status.phrase}", [("Content-Type", "application/json")])
    return [json.dumps(body).encode()]
