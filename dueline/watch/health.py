"""A worker's health and metrics over HTTP."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

# A turn takes a long poll at most; one that takes so long hangs.
HEALTHY_SECONDS = 60.0

Ages = Callable[[], Mapping[str, float]]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: it is asked every few seconds."""


@contextmanager
def served(port: int, *, registry: CollectorRegistry, ages: Ages) -> Iterator[int]:
    """Answer `/health` and `/metrics` on a port while the context lasts; yield the port, a free one for 0.

    `ages` returns, by queue, how many seconds ago its worker last asked for messages.
    """
    server = make_server("", port, _app(make_wsgi_app(registry), ages), _Server, _Silent)
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def _app(metrics: Callable[..., Any], ages: Ages) -> Callable[..., Iterable[bytes]]:
    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/metrics":
            told: Iterable[bytes] = metrics(environ, start_response)
            return told
        if environ["PATH_INFO"] != "/health":
            return _json(start_response, HTTPStatus.NOT_FOUND, {"paths": ["/health", "/metrics"]})
        known = ages()
        hung = [queue for queue, age in known.items() if age > HEALTHY_SECONDS]
        status = HTTPStatus.SERVICE_UNAVAILABLE if hung else HTTPStatus.OK
        return _json(start_response, status, {"healthy": not hung, "seconds_since_asked": known})

    return answer


def _json(start_response: Callable[..., Any], status: HTTPStatus, told: object) -> list[bytes]:
    start_response(f"{status.value} {status.phrase}", [("Content-Type", "application/json")])
    return [json.dumps(told).encode()]
