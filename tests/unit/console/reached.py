"""A console's own calls, over a deployment in memory."""

import json
import threading
from datetime import timedelta
from urllib.parse import parse_qsl

from dueline.console import problems
from dueline.console.calls import console_routes
from dueline.console.console import Console
from dueline.console.guard import Guard
from dueline.console.problems import Refused
from dueline.console.reach import Reach
from dueline.console.routes import Routes
from dueline.console.runs import Runs
from dueline.console.web import Request
from dueline.errors import DuelineError, QueueNotFound
from dueline.memory import MemoryQueue, VirtualClock
from dueline.model import instant
from dueline.model.message import ATTEMPTS, ERROR, ID, REASON, Message
from dueline.operate.redrive import Ends
from dueline.retry.calls import in_lanes
from tests.builders import NOW, an_id
from tests.waiting import wait_until
from tests.wire import Wire

EMPTY = {
    "partitions": 1,
    "scheduled": 0,
    "more_scheduled": False,
    "next_due": None,
    "fence_age": 42.5,
    "waiting": 0,
    "in_flight": 0,
    "delayed": 0,
    "dead": 0,
    "paused": False,
    "rate": None,
}


class Api:
    """What an API answers, from lists. What it tells of a queue may be an error."""

    def __init__(self):
        self.queues = {"emails": EMPTY}
        self.jobs = []
        self.pages = 0

    def ask(self, path):
        path, _, query = path.partition("?")
        if path == "/queues":
            return {"queues": [{"queue": name, "partitions": 1} for name in self.queues]}
        if path.endswith("/jobs"):
            return self.page(dict(parse_qsl(query)))
        if isinstance(told := self.queues[path.removeprefix("/queues/")], DuelineError):
            raise told
        return {"queue": path.removeprefix("/queues/"), **told}

    def page(self, query):
        self.pages += 1
        there = sorted(at for at in map(instant.text, self.jobs) if query["from"] <= at < query["to"])
        first, most = int(query.get("next", 0)), int(query["limit"])
        more = str(first + most) if len(there) > first + most else None
        return {"jobs": [{"due": at} for at in there[first : first + most]], "next": more}


class Metrics:
    """Metrics by queue and name, as lists of minutes ago and values; or an error."""

    def __init__(self):
        self.values = {}
        self.fault = None
        self.reads = 0

    def read(self, asked, *, start, end, period):
        self.reads += 1
        if self.fault:
            raise self.fault
        every = [
            [(end - timedelta(minutes=ago), v) for ago, v in self.values.get((s.queue, s.metric), [])] for s in asked
        ]
        return [[(at, value) for at, value in sorted(points) if at >= start] for points in every]


class Place:
    """A deployment with the queue `emails`, and a console of it."""

    def __init__(self, *letters):
        self.clock, self.wire, self.api, self.metrics = VirtualClock(NOW), Wire(), Api(), Metrics()
        self.dead = MemoryQueue(name="dead", clock=self.clock)
        self.queue = MemoryQueue(name="emails", clock=self.clock)
        for letter in letters:
            self.dead.send([letter])
        self.reach = Reach(
            ask=lambda path: self.api.ask(path),
            dead_letters=self._ends,
            figures=self.wire.to("metrics", self.metrics),
            clock=self.clock,
            spread=in_lanes,
        )
        self.runs = Runs()
        self.routes = Routes(console_routes(dict, self.reach, self.runs))

    def _ends(self, queue):
        if queue not in self.api.queues:
            raise QueueNotFound(f"there is no queue {queue!r}")
        return Ends(dead_letters=self.wire.to("dead", self.dead), queues=[self.wire.to("queue", self.queue)])

    def ask(self, path, body=None, *, read_only=False):
        """Return the status and the content of the answer."""
        console = Console(guard=Guard(port=1, token=""), routes=self.routes, read_only=read_only)
        content = b"" if body is None else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        headers = {"host": "127.0.0.1:1", "content-type": "application/json"}
        try:
            answer = console.answer(Request(method=method, target=path, headers=headers, body=lambda: content))
        except (Refused, DuelineError) as error:
            answer = problems.of(error)
        return answer.status, json.loads(answer.content)

    def run(self, action, body, *, queue="emails"):
        """Carry out a run over dead letters; return how it ended."""
        status, begun = self.ask(f"/console/queues/{queue}/dead-letters/{action}", body)
        assert status == 202, begun
        path = f"/console/runs/{begun['run']}"
        assert wait_until(lambda: self.ask(path)[1]["state"] != "running", every=0.002)
        return self.ask(path)[1]

    def left(self):
        return sorted(each.message.body for each in self.dead.deliveries if each.visible <= self.clock.now())


class Held:
    """Holds calls up until it is let go; `count` is how many it met."""

    def __init__(self, name):
        self.name, self.is_met, self.may_go = name, threading.Event(), threading.Event()
        self.count = 0

    def __call__(self, call):
        if call.name == self.name:
            self.count += 1
            self.is_met.set()
            self.may_go.wait(60)
        return call.do(*call.args)


def a_letter(body="1", *, error="KeyError", **more):
    attributes = {ID: str(an_id()), REASON: f"why {body}", ATTEMPTS: "3"} | more
    return Message(body=body, attributes=attributes | ({ERROR: error} if error else {}))


def due_in(seconds):
    return NOW + timedelta(seconds=seconds)
