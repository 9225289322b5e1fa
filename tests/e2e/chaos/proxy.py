"""A proxy between the functions and AWS: a test may delay, change or drop each request, and is kept.

Each request names the process and the invocation that make it (`site/sitecustomize.py`).
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from tests.waiting import HANG_SECONDS, wait_until

PROC = Path("/proc")
# Python reads this folder's sitecustomize.py as a function's process starts, or the one of which that is a fork.
_SITE = Path(__file__).parent / "site"
_HEADER = "x-sender"
_MAX_CONCURRENT = 128
_NOT_FORWARDED = {"host", "content-length", _HEADER}
# The checksum is of a body that may be rewritten here.
_NOT_RETURNED = {"connection", "content-length", "date", "server", "transfer-encoding", "x-amz-crc32"}


def environment(endpoint: str) -> dict[str, str]:
    """Return the environment of functions that reach AWS at `endpoint`, and say who makes each request."""
    return {"AWS_ENDPOINT_URL": endpoint, "PYTHONPATH": str(_SITE)}


def uid_of(id: str) -> str:
    """Return the UUID in a job's id."""
    return id.rpartition(".")[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sender:
    """Who makes a request: a function's process, in one invocation."""

    function: str
    pid: int
    invocation: str

    def kill(self) -> None:
        """Kill the process at once (SIGKILL), and return when it is dead."""
        os.kill(self.pid, signal.SIGKILL)
        assert wait_until(lambda: not self._is_running(), every=0.001), f"{self.function} {self.pid} did not die"

    def _is_running(self) -> bool:
        try:
            return (PROC / str(self.pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What AWS answers, or what is answered in its place."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, content: dict[str, Any], *, status: int = 200, headers: dict[str, str] | None = None) -> "Answer":
        return cls(
            status=status, body=json.dumps(content).encode(), headers={"x-amzn-requestid": "1"} | (headers or {})
        )

    def json(self) -> dict[str, Any]:
        return json.loads(self.body or b"{}")


@dataclass(kw_only=True, slots=True)
class Exchange:
    """One request on its way. `fault` names what was done to it; `statuses` are what AWS answered."""

    operation: str
    body: bytes
    sender: Sender
    carry: Callable[[bytes], Answer]
    fault: str = ""
    at: float = field(default_factory=time.time)
    statuses: list[int] = field(default_factory=list)

    def pass_on(self, request: dict[str, Any] | None = None) -> Answer:
        """Let the request, or another in its place, take effect; return AWS's answer."""
        answer = self.carry(self.body if request is None else json.dumps(request).encode())
        self.statuses.append(answer.status)
        return answer

    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def queue(self) -> str:
        """The SQS queue to which it sends."""
        return str(self.json()["QueueUrl"]).rpartition("/")[2]

    def __str__(self) -> str:
        who, statuses = f"{self.sender.function:<6} {self.sender.invocation[-8:]}", " ".join(map(str, self.statuses))
        return f"{self.at:.3f} {who} {self.operation:<16} {statuses or 'dropped'} {self.fault}"


# None: the connection is closed without an answer.
Around = Callable[[Exchange], Answer | None]


def straight(exchange: Exchange) -> Answer | None:
    return exchange.pass_on()


class Proxy(ThreadingHTTPServer):
    """Lets `around` answer every request, and keeps the `exchanges`."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        self.around: Around = straight
        self.exchanges: list[Exchange] = []
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=30)
        self.pool = ThreadPoolExecutor(_MAX_CONCURRENT)
        self.upstream = httpx.Client(base_url=upstream, timeout=HANG_SECONDS, limits=limits, verify=False)  # noqa: S501, plain HTTP

    def handle_error(self, request: Any, client_address: Any) -> None:
        # The sender may be dead, or have stopped waiting: that is what this proxy is for. At the end, the emulator is.
        if not isinstance(sys.exc_info()[1], ConnectionError | httpx.TransportError):
            super().handle_error(request, client_address)


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
        # What is on its way ends first: nobody would close a connection that is opened later.
        server.pool.shutdown()
        server.upstream.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Proxy

    def _answer(self) -> None:
        """Let a request to DynamoDB or SQS meet `around`, and pass on all others as they are."""
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        carry = partial(self._forward, self.command)
        if "x-amz-target" not in self.headers:
            self._return(carry(content))
            return
        exchange = Exchange(
            operation=self.headers["x-amz-target"].rpartition(".")[2],
            body=content,
            sender=Sender(**json.loads(self.headers[_HEADER])),
            carry=carry,
        )
        self.server.exchanges.append(exchange)
        answer = self.server.around(exchange)
        if answer is None:
            self.close_connection = True
        else:
            self._return(answer)

    do_GET = do_PUT = do_POST = _answer  # noqa: N815, names that http.server calls

    def _forward(self, method: str, content: bytes) -> Answer:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _NOT_FORWARDED}
        call = partial(self.server.upstream.request, method, self.path, content=content, headers=headers)
        answer = self.server.pool.submit(call).result()
        kept = {name: value for name, value in answer.headers.items() if name not in _NOT_RETURNED}
        return Answer(status=answer.status_code, body=answer.content, headers=kept)

    def _return(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        """Say nothing: the exchanges have it."""
