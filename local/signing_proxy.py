"""A proxy before the HTTP API on loopback, which signs each request: so curl works without a signature.

It serves the API's documentation as well, under /docs and /openapi.json, which the API itself does not have.
Only a local run has one. On AWS every request is signed by its caller, and IAM decides.
"""

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from local.docs_pages import page
from local.signed import Signed

_REQUEST_HEADERS = {
    *("content-type", "accept", "idempotency-key", "if-match", "if-none-match", "traceparent", "tracestate")
}
_RESPONSE_HEADERS = {"content-type", "etag", "retry-after"}


@contextmanager
def signing_proxy(api: str, *, verify: ssl.SSLContext | bool = True) -> Iterator[str]:
    """Run a proxy before the API at the URL `api` while the context is open; yield the proxy's own URL."""
    with httpx.Client(base_url=api, auth=Signed(), timeout=60, verify=verify) as client:
        server = _Proxy(client)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, client: httpx.Client) -> None:
        super().__init__(("127.0.0.1", 0), _ProxyHandler)
        self.client = client


class _ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Proxy

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        # Blanks around a value are none of it (RFC 9110, 5.5), and httpx takes none.
        headers = {name: value.strip() for name, value in self.headers.items() if name.lower() in _REQUEST_HEADERS}
        answer = self.server.client.request(self.command, self.path, content=body, headers=headers)
        returned = {name: answer.headers[name] for name in _RESPONSE_HEADERS & set(answer.headers)}
        self._respond(answer.status_code, returned, answer.content)

    def _serve_page_or_forward(self) -> None:
        shown = page(self.path)
        if shown is None:
            self._forward()
        else:
            self._respond(HTTPStatus.OK, {"content-type": shown.content_type}, shown.content)

    def _respond(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = _serve_page_or_forward  # noqa: N815, names that http.server calls
    do_POST = do_DELETE = do_PATCH = do_PUT = _forward  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Say nothing: a request's line may be long, and the demonstration owns the screen."""
