"""A fake of the HTTP API on a loopback socket, whose replies a test chooses."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from dueline.core import instant
from dueline.core.job import JobId
from tests.builders import NOW, an_id
from tests.waiting import HANG_SECONDS


@dataclass(frozen=True, kw_only=True)
class ApiRequest:
    """A received request, with the names of its headers in lower case; `port` is the client's."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    port: int = 0

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the server sends. `raw` bytes replace it, and then the connection is closed."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None


DROPPED = Reply(raw=b"")
CUT_OFF = Reply(raw=b'HTTP/1.1 201 Created\r\ncontent-length: 500\r\n\r\n{"id":')
NO_HTTP = Reply(raw=b"what?\r\n\r\n")

Respond = Callable[[ApiRequest], Reply]


class FakeApiServer:
    """The received `requests`, in order, and the replies to them: those of `script` first, then those of `respond`.

    A request for `/queues`, which clients make to choose job ids, gets `queues_reply` (by default that of an older
    deployment, so that clients use keys) and is not recorded, unless that is None.
    """

    def __init__(self) -> None:
        self.requests: list[ApiRequest] = []
        self.script: list[Reply] = []
        self.respond: Respond = default_reply
        self.queues_reply: Reply | None = json_reply({"queues": []})
        self.url = ""
        self._lock = threading.Lock()

    def answer(self, request: ApiRequest) -> Reply:
        if self.queues_reply is not None and request.path.endswith("/queues"):
            return self.queues_reply
        with self._lock:
            self.requests.append(request)
            if self.script:
                return self.script.pop(0)
        return self.respond(request)


@contextmanager
def fake_api_server() -> Iterator[FakeApiServer]:
    """Run a server while the context lasts."""
    api_server = FakeApiServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"api_server": api_server}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    api_server.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield api_server
    finally:
        server.shutdown()
        server.socket.close()
        thread.join()


def json_reply(content: Any, status: int = 200, **headers: str) -> Reply:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, body=json.dumps(content).encode(), headers=sent)


def problem(status: int, code: str, detail: str = "no", **more: Any) -> dict[str, Any]:
    return {"type": "about:blank", "title": "No", "status": status, "code": code, "detail": detail, **more}


def problem_reply(status: int, code: str, detail: str = "no", **headers: str) -> Reply:
    return json_reply(problem(status, code, detail), status, **headers)


def job_json(id: JobId, state: str = "accepted") -> dict[str, Any]:
    due = id.due.isoformat().replace("+00:00", "Z")
    return {"id": str(id), "queue": id.queue, "due": due, "route": id.route.name.lower(), "state": state}


def default_reply(request: ApiRequest) -> Reply:
    """Reply as the API does, with jobs that have the id of the request, or one made of its key, due at NOW."""
    if request.path.endswith("/cancellations"):
        keys = request.json.get("keys")
        jobs = map(_id_of, keys) if keys else map(JobId.parse, request.json["ids"])
        return json_reply({"jobs": [job_json(id, "cancelled") for id in jobs]})
    if request.method == "PATCH":
        due = (
            instant.parse(request.json["at"])
            if "at" in request.json
            else NOW + timedelta(seconds=request.json["delay"])
        )
        return json_reply(job_json(an_id(due=due), "scheduled"))
    if request.method != "POST":
        state = "scheduled" if request.method == "GET" else "cancelled"
        path, _, key = request.path.partition("?key=")
        return json_reply(job_json(_id_of(key) if key else JobId.parse(path.rpartition("/")[2]), state))
    jobs: Sequence[Any] = request.json.get("jobs", [request.json])
    names = [job.get("key") or job.get("idempotency_key", "") for job in jobs]
    ids = [JobId.parse(job["id"]) if "id" in job else _id_of(name) for job, name in zip(jobs, names, strict=True)]
    answers = [job_json(id) for id in ids]
    return json_reply({"jobs": answers}) if "jobs" in request.json else json_reply(answers[0], 201)


def _id_of(key: str) -> JobId:
    return an_id(uid=_uid_of(key), due=NOW)


def _uid_of(key: str) -> str:
    """Return a UUID that ends in the digits of a key, so that tests see which job a reply is about."""
    digits = "".join(each for each in key if each.isdigit())
    return f"00000000-0000-4000-8000-{int(digits or 0) % 10**12:012d}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = HANG_SECONDS
    # Head and body of an answer are two packets: the second would wait until the first is acknowledged.
    disable_nagle_algorithm = True
    api_server: FakeApiServer

    def _reply(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = ApiRequest(
            method=self.command,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
            port=self.client_address[1],
        )
        reply = self.api_server.answer(request)
        if reply.raw is not None:
            self.wfile.write(reply.raw)
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in {**reply.headers, "content-length": str(len(reply.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _reply  # noqa: N815, names that http.server calls

    def log_message(self, *_: object) -> None:
        """Log nothing."""
