"""A console's own calls, over a deployment in memory."""

import asyncio
from datetime import timedelta

import httpx

from dueline.console.application import make_app
from dueline.console.dead_letter_runs import BackgroundRuns, dead_letter_routes
from dueline.console.queue_views import Backend, queue_routes
from dueline.core.message import ATTEMPTS, ERROR, ID, REASON, Message
from dueline.core.retry import in_lanes
from dueline.errors import QueueNotFound
from dueline.operations.redrive import RedriveQueues
from dueline.testing import MemoryQueue, VirtualClock
from tests.builders import NOW, an_id
from tests.waiting import HANG_SECONDS
from tests.wire import Wire


class MemoryConsole:
    """A deployment with the queue `emails`, and a console of it."""

    def __init__(self, *dead_letters):
        self.clock, self.wire, self.queues = VirtualClock(NOW), Wire(), ["emails"]
        # Metrics by queue and name, as lists of minutes ago and values.
        self.metrics = {}
        self.dead = MemoryQueue(name="dead", clock=self.clock)
        self.queue = MemoryQueue(name="emails", clock=self.clock)
        for dead_letter in dead_letters:
            self.dead.send([dead_letter])
        backend = Backend(
            get=self._api_get,
            dead_letters=self._redrive_queues,
            figures=self.wire.to("metrics", self),
            clock=self.clock,
            parallel_map=in_lanes,
        )
        self.runs = BackgroundRuns()
        self.routes = [*queue_routes(dict, backend), *dead_letter_routes(backend, self.runs)]

    def _api_get(self, path):
        assert path == "/queues"
        return {"queues": [{"queue": name, "partitions": 1} for name in self.queues]}

    def read(self, series, *, start, end, period):
        """Read metrics as CloudWatch has them."""
        every = [
            [(end - timedelta(minutes=ago), v) for ago, v in self.metrics.get((s.queue, s.metric), [])] for s in series
        ]
        return [[(at, value) for at, value in sorted(points) if at >= start] for points in every]

    def _redrive_queues(self, queue):
        if queue not in self.queues:
            raise QueueNotFound(f"there is no queue {queue!r}")
        return RedriveQueues(dead_letters=self.wire.to("dead", self.dead), queues=[self.wire.to("queue", self.queue)])

    def get(self, path):
        return send_in_memory(self.routes, "GET", path)

    def post(self, path, body, *, read_only=False):
        return send_in_memory(self.routes, "POST", path, body, read_only=read_only)

    def run(self, action, body, *, queue="emails"):
        """Start a run over dead letters; return how it ended."""
        status, started = self.post(f"/console/queues/{queue}/dead-letters/{action}", body)
        assert status == 202, started
        self.runs.find(started["run"]).thread.join(HANG_SECONDS)
        return {**self.get(f"/console/runs/{started['run']}")[1], **started}

    def left(self):
        return sorted(each.message.body for each in self.dead.deliveries if each.visible <= self.clock.now())


def send_in_memory(routes, method, path, body=None, *, read_only=False):
    """Send a request to routes without a server; return the status and the content of the answer."""

    async def send():
        transport = httpx.ASGITransport(app=make_app(list(routes), read_only=read_only))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, json=body)

    answer = asyncio.run(send())
    return answer.status_code, answer.json()


def a_dead_letter(body="1", *, error="KeyError", **more):
    attributes = {ID: str(an_id()), REASON: f"why {body}", ATTEMPTS: "3"} | more
    return Message(body=body, attributes=attributes | ({ERROR: error} if error else {}))
