"""A door to the HTTP API on loopback: it signs what comes through, so that anyone's curl works without a signature.

It shows the API's description as well, under /docs and /openapi.json, which the API itself does not have.
Only a local run has one. On AWS every request is signed by its caller, and IAM decides.
"""

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from local.pages import page
from local.signed import Signed

_PASSED_ON = {"content-type", "accept", "idempotency-key", "traceparent", "tracestate"}
_HANDED_BACK = {"content-type", "retry-after"}


@contextmanager
def door(api: str, *, verify: ssl.SSLContext | bool = True) -> Iterator[str]:
    """Open a door to the API at the URL `api` while the context lasts; yield the door's own URL."""
    with httpx.Client(base_url=api, auth=Signed(), timeout=60, verify=verify) as client:
        server = _Door(client)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()


class _Door(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(("127.0.0.1", 0), _Passage)
        self.client = client


class _Passage(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Door

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() in _PASSED_ON}
        answer = self.server.client.request(self.command, self.path, content=body, headers=headers)
        told = {name: answer.headers[name] for name in _HANDED_BACK & set(answer.headers)}
        self._tell(answer.status_code, told, answer.content)

    def _show(self) -> None:
        shown = page(self.path)
        if shown is None:
            self._pass()
        else:
            self._tell(HTTPStatus.OK, {"content-type": shown.content_type}, shown.content)

    def _tell(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = _show  # noqa: N815, names that http.server calls
    do_POST = do_DELETE = do_PATCH = do_PUT = _pass  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing: a request's line may be long, and the demonstration owns the screen."""
