"""The server: on 127.0.0.1 alone, a thread a connection. It logs no request."""

import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from dueline.console import problems
from dueline.console.content import Content
from dueline.console.problems import Refused
from dueline.console.web import Answer, Answering, Request
from dueline.errors import DuelineError

_ADDRESS = "127.0.0.1"
_IDLE_SECONDS = 120


@contextmanager
def served(
    answering: Callable[[int], Answering], *, port: int = 0, headers: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Serve what `answering` returns for the port while the context is open; yield the URL. Port 0 is any free one.

    `headers` go with every answer. Raises OSError where the port is taken.
    """
    server = _Server(port, answering, headers or {})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://{_ADDRESS}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, port: int, answering: Callable[[int], Answering], headers: Mapping[str, str]) -> None:
        super().__init__((_ADDRESS, port), _Handler)
        self.answering = answering(self.server_port)
        self.headers = headers

    def answer(self, request: Request) -> Answer:
        """Return an answer, whatever happens: a problem where it is no other."""
        try:
            return self.answering(request)
        except Exception as error:
            if not isinstance(error, Refused | DuelineError):
                _report(error, request)
            return problems.of(error)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that ended: its page was closed."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = default_request_version = "HTTP/1.1"
    server_version = "dueline"
    sys_version = ""
    disable_nagle_algorithm = True
    timeout = _IDLE_SECONDS
    server: _Server

    def _answer(self) -> None:
        # One that is repeated is no single value that anyone expects.
        headers = {name.lower(): ", ".join(map(_stripped, self.headers.get_all(name, ()))) for name in self.headers}
        content = Content(self.rfile, headers)
        # Not self.path: of that, http.server has removed a second slash.
        target = self.requestline.split()[1]
        request = Request(method=self.command, target=target, headers=headers, body=cache(content.read))
        answer = self.server.answer(request)
        self.close_connection |= not content.can_be_skipped
        self._give(answer)
        if not self.close_connection:
            self.close_connection = not content.skip()

    def _give(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in {**self.server.headers, **answer.headers}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("connection", "close")
        self.send_header("content-length", str(len(answer.content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _answer  # noqa: N815, of http.server

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that http.server cannot read, or whose method it does not know."""
        self.close_connection = True
        self._give(problems.of(Refused(code, message or HTTPStatus(code).description, code="bad_request")))

    def log_message(self, *_: object) -> None:
        """Say nothing: a request's line may hold what is secret, and others own the screen."""


def _stripped(value: str) -> str:
    """Return a header's value without the blanks around it, which are none of it (RFC 9110)."""
    return value.strip(" \t")


def _report(error: Exception, request: Request) -> None:
    """Write where it failed, and nothing of what was asked or answered."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    asked = f"{request.method} {request.path.encode('unicode_escape').decode()}"
    sys.stderr.write(f"dueline: {asked}: {type(error).__name__} at {last.filename}:{last.lineno}\n")
