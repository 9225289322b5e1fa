"""An HTTP API on a socket of loopback, which answers as a test tells it to."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from dueline.model import instant
from dueline.model.job import JobId
from tests.builders import NOW, an_id
from tests.waiting import HANG_SECONDS


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it came, over the connection from that port."""

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
    """An answer. With `raw` these bytes go out in its place, and the connection is closed; none is a drop."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None


DROPPED = Reply(raw=b"")
CUT_OFF = Reply(raw=b'HTTP/1.1 201 Created\r\ncontent-length: 500\r\n\r\n{"id":')
NO_HTTP = Reply(raw=b"what?\r\n\r\n")

Answering = Callable[[Asked], Reply]


class Gate:
    """What came, in order, and what to answer: `script` first, a reply a request, then `api`.

    What ids need a client asks in between: that is answered by `of_ids`, as of an older deployment, and not among what
    came, unless that is None.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.script: list[Reply] = []
        self.api: Answering = an_api
        self.of_ids: Reply | None = told({"queues": []})
        self.url = ""
        self._lock = threading.Lock()

    def answer(self, asked: Asked) -> Reply:
        if self.of_ids is not None and asked.path.endswith("/queues"):
            return self.of_ids
        with self._lock:
            self.asked.append(asked)
            if self.script:
                return self.script.pop(0)
        return self.api(asked)


@contextmanager
def open_gate(*, certificate: Path | None = None, hesitates: float = 0.0) -> Iterator[Gate]:
    """Open a gate while the context lasts; with the file of a certificate and its key, one that speaks TLS.

    In the middle of that one's handshake it `hesitates`, in seconds.
    """
    gate = Gate()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Passage", (_Passage,), {"gate": gate}))
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        context.sni_callback = lambda *_: _hesitate(hesitates)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    gate.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield gate
    finally:
        server.shutdown()
        server.socket.close()
        thread.join()


def told(content: Any, status: int = 200, **headers: str) -> Reply:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, body=json.dumps(content).encode(), headers=sent)


def problem(status: int, code: str, detail: str = "no", **more: Any) -> dict[str, Any]:
    return {"type": "about:blank", "title": "No", "status": status, "code": code, "detail": detail, **more}


def refused(status: int, code: str, detail: str = "no", **headers: str) -> Reply:
    return told(problem(status, code, detail), status, **headers)


def a_job_told(id: JobId, state: str = "accepted") -> dict[str, Any]:
    due = id.due.isoformat().replace("+00:00", "Z")
    return {"id": str(id), "queue": id.queue, "due": due, "route": id.route.name.lower(), "state": state}


def an_api(asked: Asked) -> Reply:
    """Answer as the API does: a job is told by the id that it came with, or by its key, due at NOW."""
    if asked.path.endswith("/cancellations"):
        return told({"jobs": [a_job_told(JobId.parse(id), "cancelled") for id in asked.json["ids"]]})
    if asked.method == "PATCH":
        due = instant.parse(asked.json["at"]) if "at" in asked.json else NOW + timedelta(seconds=asked.json["delay"])
        return told(a_job_told(an_id(due=due), "scheduled"))
    if asked.method != "POST":
        state = "scheduled" if asked.method == "GET" else "cancelled"
        return told(a_job_told(JobId.parse(asked.path.rpartition("/")[2]), state))
    jobs: Sequence[Any] = asked.json.get("jobs", [asked.json])
    ids = [JobId.parse(job["id"]) if "id" in job else an_id(uid=_uid_of(job["key"]), due=NOW) for job in jobs]
    answers = [a_job_told(id) for id in ids]
    return told({"jobs": answers}) if "jobs" in asked.json else told(answers[0], 201)


def _uid_of(key: str) -> str:
    """Return a UUID that ends in the digits of a key, for tests to see which job was answered."""
    digits = "".join(each for each in key if each.isdigit())
    return f"00000000-0000-4000-8000-{int(digits or 0) % 10**12:012d}"


def _hesitate(seconds: float) -> None:
    # Not by `time.sleep`, which tests replace.
    threading.Event().wait(seconds)


class _Passage(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = HANG_SECONDS
    # Head and body of an answer are two packets: the second would wait until the first is acknowledged.
    disable_nagle_algorithm = True
    gate: Gate

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        asked = Asked(
            method=self.command,
            path=self.path,
            headers=dict(self.headers.items()),
            body=body,
            port=self.client_address[1],
        )
        reply = self.gate.answer(asked)
        if reply.raw is not None:
            self.wfile.write(reply.raw)
            self.close_connection = True
            return
        self.send_response(reply.status)
        for name, value in {**reply.headers, "content-length": str(len(reply.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    do_GET = do_POST = do_DELETE = do_PATCH = do_PUT = _pass  # noqa: N815, names that http.server calls

    def log_message(self, *_: object) -> None:
        """Say nothing."""
