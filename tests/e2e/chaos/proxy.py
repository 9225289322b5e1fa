"""A proxy between the functions and AWS: a test may delay, change or drop each request, and a record of it is kept.

Each request names the process and the invocation that make it (`site/sitecustomize.py`).
"""

import json
import os
import re
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

from dueline.core.rows import STATE
from tests.waiting import HANG_SECONDS, wait_until

PROC = Path("/proc")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Python reads this folder's sitecustomize.py as a function's process starts, or the one of which that is a fork.
_SITE = Path(__file__).parent / "site"
_HEADER = "x-sender"
_JOB_ROW, _NOTE = (re.compile(f'({UUID.pattern})#{row}"') for row in ("job", "handled"))
_PUTS = {"PutItem", "BatchWriteItem", "TransactWriteItems"}
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
    """Who makes a request: a function's process, in one invocation.

    `number` is the request's own in its process, and `unheard` are the numbers of earlier ones whose answer the process
    has not read.
    """

    function: str
    pid: int
    invocation: str
    number: int = 0
    unheard: frozenset[int] = frozenset()

    @classmethod
    def read(cls, header: str) -> "Sender":
        fields = json.loads(header)
        return cls(**{**fields, "unheard": frozenset(fields["unheard"])})

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
        return cls(status=status, body=json.dumps(content).encode(), headers=headers or {})

    def json(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.body or b"{}")
        return content


@dataclass(kw_only=True, slots=True)
class Exchange:
    """One request on its way. `fault` names what was done to it."""

    operation: str
    body: bytes
    sender: Sender
    carry: Callable[[bytes], Answer]
    fault: str = ""
    at: float = field(default_factory=time.time)
    answers: list[Answer] = field(default_factory=list)

    def pass_on(self, request: dict[str, Any] | None = None) -> Answer:
        """Let the request, or another in its place, take effect; return AWS's answer."""
        self.answers.append(self.carry(self.body if request is None else json.dumps(request).encode()))
        return self.answers[-1]

    def json(self) -> dict[str, Any]:
        request: dict[str, Any] = json.loads(self.body)
        return request

    def record(self) -> "Record":
        text = self.body.decode()
        is_put, is_send = self.operation in _PUTS, self.operation.startswith("SendMessage")
        return Record(
            at=self.at,
            seconds=time.time() - self.at,
            sender=self.sender,
            operation=self.operation,
            fault=self.fault,
            statuses=tuple(answer.status for answer in self.answers),
            uids=frozenset(UUID.findall(text)),
            rows=frozenset(_JOB_ROW.findall(text) if is_put else ()),
            notes=frozenset(_NOTE.findall(text) if is_put else ()),
            queue=str(self.json()["QueueUrl"]).rpartition("/")[2] if is_send else "",
            sent=tuple(uid for answer in self.answers for uid in self._sent(answer)),
            state=self._state(),
        )

    def _sent(self, answer: Answer) -> list[str]:
        if self.operation != "SendMessageBatch" or answer.status != 200:
            return []
        accepted = {each["Id"] for each in answer.json()["Successful"]}
        attributes = [entry["MessageAttributes"] for entry in self.json()["Entries"] if entry["Id"] in accepted]
        return [uid_of(each.get("dueline-id", {}).get("StringValue", "")) for each in attributes]

    def _state(self) -> "StateChange | None":
        request = self.json() if self.operation == "UpdateItem" else {"Key": {}}
        if request["Key"].get("sk") != {"S": STATE}:
            return None
        values = {name: value.get("S", "") for name, value in request["ExpressionAttributeValues"].items()}
        named = {name: values.get(f":{name}", "") for name in ("now", "lease", "cursor")}
        return StateChange(partition=request["Key"]["pk"]["S"], **named)


# None: the connection is closed without an answer.
Around = Callable[[Exchange], Answer | None]


def straight(exchange: Exchange) -> Answer | None:
    return exchange.pass_on()


@dataclass(frozen=True, kw_only=True, slots=True)
class StateChange:
    """What a tick changes in its partition's state: it acquires the lease, or moves the cursor. Instants are texts.

    `lease` is when it is to end, empty when it is given back; `now` and `cursor` are empty where none is named.
    """

    partition: str
    now: str
    lease: str
    cursor: str

    @property
    def acquires(self) -> bool:
        return not self.cursor


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """What is kept of an exchange.

    `uids` are the jobs that it mentions, `rows` those whose rows it puts, `notes` those that it notes as sent, and
    `sent` those that it brought to `queue`.
    """

    at: float
    seconds: float
    sender: Sender
    operation: str
    fault: str
    statuses: tuple[int, ...]
    uids: frozenset[str]
    rows: frozenset[str]
    notes: frozenset[str]
    queue: str
    sent: tuple[str, ...]
    state: StateChange | None

    @property
    def invocation(self) -> str:
        return self.sender.invocation

    @property
    def delivered(self) -> tuple[str, ...]:
        """The jobs that it brought to a team's queue, whose names alone have a `_`."""
        return self.sent if "_" in self.queue else ()

    @property
    def had_effect(self) -> bool:
        return 200 in self.statuses

    def submits(self, uid: str) -> bool:
        """Return whether it brought a job to a table or a queue."""
        return uid in self.sent or (self.had_effect and uid in self.rows)

    def __str__(self) -> str:
        who, statuses = f"{self.sender.function:<6} {self.invocation[-8:]}", " ".join(map(str, self.statuses))
        return f"{self.at:.3f} {who} {self.operation:<16} {statuses or 'dropped'} {self.seconds:.3f} s {self.fault}"


class Proxy(ThreadingHTTPServer):
    """Lets `around` answer every request, and keeps `records` of all."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.endpoint = f"http://127.0.0.1:{self.server_port}"
        self.around: Around = straight
        self.records: list[Record] = []
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

    def do_GET(self) -> None:
        """Pass on a request to EventBridge Scheduler or S3 as it is."""
        self._return(self._forward("GET"))

    def do_PUT(self) -> None:
        """Pass on what is put into S3 as it is."""
        self._return(self._forward("PUT", self._content()))

    def do_POST(self) -> None:
        if "x-amz-target" not in self.headers:  # SNS, to which the watch publishes
            self._return(self._forward("POST", self._content()))
            return
        exchange = Exchange(
            operation=self.headers["x-amz-target"].rpartition(".")[2],
            body=self._content(),
            sender=Sender.read(self.headers[_HEADER]),
            carry=partial(self._forward, "POST"),
        )
        try:
            answer = self.server.around(exchange)
        finally:
            self.server.records.append(exchange.record())
        if answer is None:
            self.close_connection = True
        else:
            self._return(answer)

    def _content(self) -> bytes:
        return self.rfile.read(int(self.headers["content-length"]))

    def _forward(self, method: str, content: bytes = b"") -> Answer:
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
        """Say nothing: the records have it."""
