"""A door to the HTTP API on loopback: it signs what comes through, so that anyone's curl works without a signature.

Only a local run has one. On AWS every request is signed by its caller, and IAM decides.
"""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from local.signed import Signed

_PASSED_ON = {"content-type", "accept"}
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
    server: _Door

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() in _PASSED_ON}
        answer = self.server.client.request(self.command, self.path, content=body, headers=headers)
        self.send_response(answer.status_code)
        for name in _HANDED_BACK & set(answer.headers):
            self.send_header(name, answer.headers[name])
        self.send_header("content-length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _pass  # noqa: N815, names that http.server calls

    def log_message(self, *_: object) -> None:
        """Say nothing: a request's line may be long, and the demonstration owns the screen."""
