"""Ids that the HTTP client makes: the same at every try, by AWS's clock; and what it does where it cannot."""

import json
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from dueline import Client, Job, NewJob, Patience, Route
from dueline.client.http import HttpApi, HttpResponse
from dueline.core import instant
from dueline.core.job import JobId, State
from dueline.errors import Forbidden, IdReused, NotYet, QueueNotFound, Unavailable
from dueline.testing import VirtualClock
from tests.api_harness import call_api, import_api
from tests.builders import NOW, a_queue
from tests.fake_api_server import job_json, problem

# By how much the client's clock is off.
OFF = timedelta(hours=-5)


def queue_listing(**queue):
    reply = {"queue": "emails", "partitions": 4, "taking": 4, "direct_horizon": 890, **queue}
    return {"queues": [{name: value for name, value in reply.items() if value is not None}]}


class World:
    """A deployment whose clock is right, the transport to it, and a client whose clock is not.

    `queues` is what `GET /queues` answers; posted jobs are in `posted`, as often as they come. The answers to so many
    posts are `lost`. `reply` answers a post in place of that every job is scheduled.
    """

    def __init__(self):
        self.clock = VirtualClock(NOW + OFF)
        self.queues = 200, queue_listing()
        self.requests = 0
        self.posted = []
        self.lost = 0
        self.reply = None
        self.is_dated = True

    @property
    def now(self):
        return self.clock.now() - OFF

    def client(self, **patience):
        api = HttpApi(lambda: self, clock=self.clock)
        return Client(api, clock=self.clock, patience=Patience(**patience))

    def send(self, method, path, body, *, headers, queue=None):
        if method == "GET":
            self.requests += 1
            return self.answer(*self.queues)
        request = json.loads(body)
        jobs = request.get("jobs", [request])
        self.posted += jobs
        if self.lost:
            self.lost -= 1
            raise Unavailable("the answer was lost")
        if self.reply:
            return self.answer(*self.reply(request))
        answers = [job_answer(job) for job in jobs]
        return self.answer(200, {"jobs": answers} if "jobs" in request else answers[0])

    def answer(self, status, content):
        date = {"date": format_datetime(self.now, usegmt=True)} if self.is_dated else {}
        return HttpResponse(request="", status=status, headers=date, body=json.dumps(content).encode())


def job_answer(job):
    return job_json(JobId.parse(job.get("id") or f"emails.0.t.0.{job['idempotency_key']}"), "scheduled")


def refused(status, code):
    return lambda _: (status, problem(status, code))


@pytest.fixture
def world():
    return World()


def test_retried_job_keeps_its_id_by_the_clock_of_aws(world):
    client = world.client()
    world.clock.sleep(0.75)  # a Date has whole seconds
    before, world.lost = world.now, 2
    job = client.schedule("emails", 1, delay=3600)
    assert timedelta(0) <= job.due - (before + timedelta(hours=1)) <= timedelta(seconds=1)
    assert world.posted == [{"payload": 1, "id": job.id}] * 3


@pytest.mark.parametrize(
    ("timing", "after", "route"),
    [
        ({}, 0, Route.DIRECT),
        ({"delay": 0}, 0, Route.DIRECT),
        ({"at": NOW - timedelta(days=1)}, 0, Route.DIRECT),
        ({"at": NOW + timedelta(seconds=890)}, 890, Route.DIRECT),
        ({"at": NOW + timedelta(seconds=890.001)}, 890.001, Route.TABLE),
        ({"at": NOW + timedelta(days=40)}, 40 * 86_400, Route.TABLE),
    ],
    ids=str,
)
def test_id_has_due_time_and_route_of_the_api(world, timing, after, route):
    job = world.client().schedule("emails", 1, **timing)
    assert (job.due, job.route) == (NOW + timedelta(seconds=after), route)


def test_hundred_jobs_share_a_partition(world):
    client = world.client()
    for _ in range(8):
        client.schedule_many("emails", [NewJob(payload=n) for n in range(300)])
    partitions = [JobId.parse(job["id"]).partition.number for job in world.posted]
    hundreds = [set(partitions[start : start + 100]) for start in range(0, len(partitions), 100)]
    assert [len(hundred) for hundred in hundreds] == [1] * 24
    assert set(partitions) == {0, 1, 2, 3}


@pytest.mark.parametrize("call", ["c", None])
def test_callers_own_name_is_sent_unchanged(world, call):
    id = None if call else f"emails.3.t.{instant.epoch_ms(NOW)}.{uuid.uuid4()}"
    world.reply = lambda request: (200, job_answer({"id": f"emails.0.t.0.{uuid.uuid4()}"}))
    world.client().schedule("emails", 1, idempotency_key=call, id=id, delay=5 if call else None)
    assert world.posted == [{"payload": 1, "delay": 5, "idempotency_key": "c"} if call else {"payload": 1, "id": id}]
    assert world.requests == 0


# Where no id can be made


@pytest.mark.parametrize(
    "queues",
    [
        (200, queue_listing(taking=0)),
        (200, queue_listing(direct_horizon=10**20)),
        (200, queue_listing(queue="bills")),
        (200, {}),
        (403, {"message": "Forbidden"}),
        (503, {"message": "Service Unavailable"}),
        "no Date",
    ],
)
def test_job_without_an_id_has_one_key(world, queues):
    if queues == "no Date":
        world.is_dated = False
    else:
        world.queues = queues
    world.lost, client = 2, world.client()
    client.schedule("emails", 1, delay=3600)
    assert len({posted["idempotency_key"] for posted in world.posted}) == 1
    assert [posted.keys() for posted in world.posted] == [{"payload", "delay", "idempotency_key"}] * 3
    client.schedule("emails", 1)
    assert world.requests == 1


def test_refused_new_id_is_replaced_by_a_key(world):
    world.reply = lambda request: (
        refused(400, "invalid_job")(request)
        if "id" in request
        else (200, job_answer({"idempotency_key": request["idempotency_key"]}))
    )
    client = world.client()
    assert isinstance(client.schedule("emails", 1, delay=60), Job)
    assert [posted.keys() for posted in world.posted] == [{"payload", "id"}, {"payload", "delay", "idempotency_key"}]
    client.schedule("emails", 1)
    assert world.requests == 2


def test_refused_jobs_fail_no_other(world):
    """Two ids of a call are refused, and the second request, under keys, fails as a whole."""

    def reply(request):
        if "idempotency_key" in request["jobs"][0]:
            return refused(503, "unavailable")(request)
        two = [{"error": refused(400, "x")(0)[1]}] * 2
        return 200, {"jobs": [*two, *(job_answer(job) for job in request["jobs"][2:])]}

    world.reply = reply
    results = world.client(attempts=1).schedule_many("emails", [NewJob(payload=n) for n in range(4)])
    assert [type(result) for result in results] == [Unavailable, Unavailable, Job, Job]
    keys = [posted["idempotency_key"] for posted in world.posted[4:]]
    assert [failed.idempotency_key for failed in results[:2]] == keys


def test_errors_have_the_ids_of_their_jobs(world):
    """The answer to all was lost; the retry is forbidden, as the credentials have expired: they may be scheduled."""
    world.lost, world.reply = 1, refused(403, "forbidden")
    errors = world.client().schedule_many("emails", [NewJob(payload=n) for n in range(3)])
    assert [(type(error), error.job_id) for error in errors] == [(Forbidden, job["id"]) for job in world.posted[:3]]


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [(400, "invalid_job", NotYet), (409, "id_reused", IdReused), (404, "queue_not_found", QueueNotFound)],
)
def test_id_of_an_earlier_try_is_never_replaced(world, status, code, error):
    world.lost, world.reply = 1, refused(status, code)
    with pytest.raises(error):
        world.client(attempts=2).schedule("emails", 1)
    assert world.posted == [{"payload": 1, "id": world.posted[0]["id"]}] * 2


# What is known of the queues


def test_id_parameters_last_a_minute(world):
    client = world.client()
    for _ in range(3):
        client.schedule("emails", 1)
    assert world.requests == 1
    world.clock.sleep(61)
    world.queues = 403, {}
    client.schedule("emails", 1)
    assert world.requests == 2
    assert all("id" in posted for posted in world.posted)


# With the API itself


def test_api_accepts_ids_of_the_client(monkeypatch):
    """The API's own code, on a table and queues in memory."""
    world = World()
    world.clock, lost = VirtualClock(datetime.now(UTC) + OFF), [1, 2]
    with import_api(monkeypatch, a_queue(partitions=3)) as api:
        monkeypatch.setattr(api.DEPLOYMENT.table, "claim", lambda *_, **__: pytest.fail("a key was claimed"))

        def send(method, path, body, *, headers, queue=None):
            answer = world.answer(*call_api(api, method, path, body=body))
            if method == "POST" and lost:
                raise Unavailable(f"answer {lost.pop()} was lost")
            return answer

        monkeypatch.setattr(world, "send", send)
        client = world.client()
        soon, late = client.schedule("emails", 1), client.schedule("emails", 2, delay=3600)
        assert (soon.route, late.route) == (Route.DIRECT, Route.TABLE)
        assert client.get(soon.id) == replace(soon, state=State.UNRECORDED, created=None)
        assert client.schedule("emails", 2, id=late.id).id == late.id
