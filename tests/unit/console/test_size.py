"""What the page asks for costs the same however much is scheduled, and however many letters are dead.

Through the server's routes and the API's function, over tables that find a row as fast among a million as among some.
"""

from bisect import bisect_right
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from dueline.client.http_answer import HttpAnswer
from dueline.clock import SystemClock
from dueline.console.api import api_routes
from dueline.console.calls import console_routes
from dueline.console.console import Console
from dueline.console.guard import Guard
from dueline.console.reach import Reach
from dueline.console.routes import Routes
from dueline.console.runs import Runs
from dueline.console.web import Request
from dueline.memory import MemoryTable
from dueline.model import rows
from dueline.model.message import Message
from dueline.ports import WRITE_ROWS, Page
from dueline.retry.calls import in_lanes
from tests.builders import a_job, a_queue
from tests.called import imported, over
from tests.gate import Asked
from tests.unit.console.reached import Metrics
from tests.wire import Wire, straight

FEW, MANY, A_MILLION = 2_000, 100_000, 1_000_000
EARLIEST = "1970-01-01T00%3A00%3A00Z"
# What the page asks for as it opens a view, of the API and of the console's own.
VIEWS = {
    "queues": ["/console/overview"],
    "queue": ["/api/queues/emails", "/console/queues/emails/due?hours=6"],
    "jobs": [f"/api/queues/emails/jobs?from={EARLIEST}&limit=100"],
    "dead letters": ["/api/queues/emails"],
}


class Backlog(MemoryTable):
    """A table in which so many jobs wait, one a second: each is made as it is read."""

    def __init__(self, count, *, first):
        super().__init__()
        self._first, self._numbers = first, range(count)

    def page(self, partition, *, after, until, consistent=True, limit=1000):
        start, end = (bisect_right(self._numbers, place, key=lambda n: self.row(n)["sk"]) for place in (after, until))
        found = self._numbers[start : min(end, start + limit)]
        return Page(rows=[self.row(number) for number in found], more=end - start > limit)

    def row(self, number):
        uid = f"00000000-0000-4000-8000-{number:012d}"
        return rows.job_row(a_job(due=self._first + timedelta(seconds=number), uid=uid))


class Place:
    """A console of a deployment whose calls are counted: of the API, of its table with the rows read, of its queues."""

    def __init__(self, api, table, monkeypatch):
        self.api, self.counted, wire = api, Counter(), Wire()
        wire.around = self._count
        tapped, queue = wire.to("table", table), api.RESOURCES.queue
        monkeypatch.setattr(type(api.RESOURCES), "table", tapped)
        monkeypatch.setattr(api.RESOURCES, "queue", lambda name: wire.to("queue", queue(name)))
        ask = lambda path: self.send("GET", path, None, headers={}).content(now=datetime.now(UTC))  # noqa: E731
        dead, clock = queue(api.RESOURCES.names.queue_dlq("emails")), SystemClock()
        reach = Reach(ask=ask, dead_letters=dead, figures=Metrics(), clock=clock, spread=in_lanes)
        routes = Routes([*api_routes(self), *console_routes(dict, reach, Runs())])
        self._console = Console(guard=Guard(port=1, token=""), routes=routes)

    def _count(self, call):
        self.counted[call.name] += 1
        told = straight(call)
        self.counted["rows"] += len(getattr(told, "rows", ()))
        return told

    def send(self, method, path, body, *, headers):
        """Be the way to the API."""
        self.counted["requests"] += 1
        reply = over(self.api, Asked(method=method, path=path, headers=headers, body=body or b""))
        return HttpAnswer(asked=path, status=reply.status, headers=reply.headers, body=reply.body)

    def cost(self, view):
        """Return what it costs to open a view, and how many bytes answer it."""
        self.counted.clear()
        for path in VIEWS[view]:
            request = Request(method="GET", target=path, headers={"host": "127.0.0.1:1"}, body=bytes)
            answer = self._console.answer(request)
            assert answer.status == 200, answer.content
            self.counted["bytes"] += len(answer.content)
        return dict(self.counted)


@pytest.fixture
def place(monkeypatch):
    """Make a place in which so many jobs wait, the first of them in an hour, and so many letters are dead."""
    with imported(monkeypatch, a_queue()) as api:

        def make(jobs, *, dead=0):
            first = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(hours=1)
            table = backlog = Backlog(jobs, first=first)
            if jobs == FEW:
                # The table of all tests: what the other one answers is held against it.
                table = MemoryTable(page_rows=2000)
                for start in range(0, jobs, WRITE_ROWS):
                    table.write([backlog.row(number) for number in range(start, start + WRITE_ROWS)])
            letters = api.RESOURCES.queue(api.RESOURCES.names.queue_dlq("emails"))
            for _ in range(dead - letters.depth().waiting):
                letters.send([Message(body="{}")])
            return Place(api, table, monkeypatch)

        yield make


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_costs_the_same_with_a_million_jobs_scheduled_as_with_2000(place, view):
    few, many, a_million = (place(jobs).cost(view) for jobs in (FEW, MANY, A_MILLION))
    assert few == many == a_million
    assert few["requests"] <= 12
    assert few["rows"] <= 2 * 1000 + 250


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_costs_the_same_with_10_000_dead_letters_as_with_10_and_receives_none(place, view):
    some, many = place(FEW, dead=10).cost(view), place(FEW, dead=10_000).cost(view)
    # The count has three digits more.
    asked_for = sum(path.endswith(("overview", "/queues/emails")) for path in VIEWS[view])
    assert many == some | {"bytes": some["bytes"] + 3 * asked_for}
    assert "queue.receive" not in many
