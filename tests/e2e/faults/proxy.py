"""A proxy between the functions and AWS, where a test may stand and let any request meet with a mishap."""

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from tests.e2e.faults.exchange import Answer, Around, Exchange, Record, straight
from tests.e2e.faults.processes import HEADER, Told
from tests.e2e.inbox import HANG_SECONDS

_MOST_AT_ONCE = 128
_NOT_PASSED_ON = {"host", "content-length", HEADER}
# The checksum is of a body that may be rewritten here.
_NOT_HANDED_BACK = {"connection", "content-length", "date", "server", "transfer-encoding", "x-amz-crc32"}


class Proxy(ThreadingHTTPServer):
    """Hands every request to `around`, which answers it. `records` tells what became of each, `faults` what broke."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Passage)
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        self.around: Around = straight
        self.records: list[Record] = []
        self.faults: list[BaseException] = []
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=30)
        self.carriers = ThreadPoolExecutor(_MOST_AT_ONCE)
        self.upstream = httpx.Client(base_url=upstream, timeout=HANG_SECONDS, limits=limits, verify=False)  # noqa: S501, plain HTTP

    def of_job(self, uid: str) -> list[Record]:
        return [record for record in list(self.records) if uid in record.uids]

    def handle_error(self, request: Any, client_address: Any) -> None:
        fault = sys.exc_info()[1]
        # Whoever asked may be dead, or may have stopped waiting: that is what this proxy is for.
        if fault is not None and not isinstance(fault, ConnectionError):
            self.faults.append(fault)


@contextmanager
def proxy(upstream: str) -> Iterator[Proxy]:
    """Run a proxy to the endpoint `upstream` while the context lasts."""
    server = Proxy(upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        # What is on its way ends first: a connection that were opened later would be closed by nobody.
        server.carriers.shutdown()
        server.upstream.close()


class _Passage(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Proxy

    def do_GET(self) -> None:
        """Pass on what is asked of EventBridge Scheduler and S3, which meets with no mishap."""
        get = partial(self.server.upstream.get, self.path, headers=self._passed_on())
        self._hand_back(_answer(self.server.carriers.submit(get).result()))

    def do_PUT(self) -> None:
        """Pass on what is put into S3, which meets with no mishap."""
        content = self.rfile.read(int(self.headers["content-length"]))
        put = partial(self.server.upstream.put, self.path, headers=self._passed_on(), content=content)
        self._hand_back(_answer(self.server.carriers.submit(put).result()))

    def do_POST(self) -> None:
        exchange = self._exchange(self.rfile.read(int(self.headers["content-length"])))
        try:
            answer = self.server.around(exchange)
        finally:
            self.server.records.append(exchange.record())
        if answer is None:
            self.close_connection = True
        else:
            self._hand_back(answer)

    def _exchange(self, body: bytes) -> Exchange:
        headers = self._passed_on()

        def carry(asked: bytes) -> Answer:
            post = partial(self.server.upstream.post, self.path, content=asked, headers=headers)
            return _answer(self.server.carriers.submit(post).result())

        return Exchange(
            operation=self.headers["x-amz-target"].rpartition(".")[2],
            body=body,
            told=Told.read(self.headers[HEADER]),
            carry=carry,
        )

    def _passed_on(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name.lower() not in _NOT_PASSED_ON}

    def _hand_back(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        """Say nothing: what happened is in the records."""


def _answer(told: httpx.Response) -> Answer:
    kept = {name: value for name, value in told.headers.items() if name not in _NOT_HANDED_BACK}
    return Answer(status=told.status_code, body=told.content, headers=kept)
