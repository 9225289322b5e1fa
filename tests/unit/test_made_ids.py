"""Ids that the HTTP client makes: the same at every try, by AWS's clock; and what it does where it cannot."""

import json
import uuid
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from dueline import Client, Job, NewJob, Patience, Route
from dueline.client import http_api
from dueline.client.asked_terms import id_terms
from dueline.client.dated import Dated
from dueline.client.http_answer import HttpAnswer
from dueline.errors import Forbidden, IdReused, InvalidJob, QueueNotFound, Throttled, Unavailable
from dueline.memory import VirtualClock
from dueline.model import instant
from dueline.model.job import JobId
from tests.builders import NOW, a_queue
from tests.called import call, imported

# By how much the client's clock is off.
OFF = timedelta(hours=-5)


def listed(**queue):
    told = {"queue": "emails", "partitions": 4, "taking": 4, "direct_horizon": 890, **queue}
    return {"queues": [{name: value for name, value in told.items() if value is not None}]}


class Settable(VirtualClock):
    """A clock that can be set."""

    def set(self, by):
        self._start += by


class World:
    """A deployment whose clock is right, the transport to it, and a client whose clock is not.

    `queues` is what `GET /queues` answers; posted jobs are in `posted`, as often as they come. The answers to so many
    posts are `lost`. `told` answers a post in place of that every job is scheduled.
    """

    def __init__(self):
        self.clock = Settable(NOW + OFF)
        self.queues = 200, listed()
        self.asked = 0
        self.posted = []
        self.lost = 0
        self.told = None
        self.is_dated = True

    @property
    def now(self):
        return self.clock.now() - OFF

    def client(self, **patience):
        api = http_api.with_ids(self, clock=self.clock, new_uuid=lambda: str(uuid.uuid4()))
        return Client(api, clock=self.clock, patience=Patience(**patience))

    def send(self, method, path, body, *, headers):
        if method == "GET":
            self.asked += 1
            return self.answer(*self.queues)
        asked = json.loads(body)
        jobs = asked.get("jobs", [asked])
        self.posted += jobs
        if self.lost:
            self.lost -= 1
            raise Unavailable("the answer was lost")
        if self.told:
            return self.answer(*self.told(asked))
        answers = [job_told(job) for job in jobs]
        return self.answer(200, {"jobs": answers} if "jobs" in asked else answers[0])

    def put(self, url, headers, body):
        raise NotImplementedError

    def answer(self, status, content):
        date = {"date": format_datetime(self.now, usegmt=True)} if self.is_dated else {}
        return HttpAnswer(asked="", status=status, headers=date, body=json.dumps(content).encode())


def job_told(job):
    id = JobId.parse(job["id"]) if "id" in job else JobId.parse(f"emails.0.t.0.{job['key']}")
    told = {"id": str(id), "queue": id.queue, "due": instant.text(id.due), "state": "scheduled"}
    return {**told, "route": id.route.name.lower()}


def refused(status, code):
    return lambda _: (status, {"code": code, "status": status, "detail": "no"})


@pytest.fixture
def world():
    return World()


def test_a_job_that_is_tried_again_goes_under_the_id_of_its_first_try(world):
    world.lost = 2
    job = world.client().schedule("emails", 1, delay=3600)
    assert [posted["id"] for posted in world.posted] == [job.id] * 3
    assert all(posted.keys() == {"payload", "id"} for posted in world.posted)


def test_of_many_jobs_each_that_is_tried_again_goes_under_its_own_id(world):
    world.lost = 1
    jobs = world.client().schedule_many("emails", [NewJob(payload=n, tenant="acme") for n in range(3)])
    ids = [posted["id"] for posted in world.posted]
    assert ids == [job.id for job in jobs] * 2
    assert len(set(ids)) == 3


def test_a_delay_counts_by_awss_clock_and_from_the_first_try_and_is_never_shorter(world):
    client = world.client()
    world.clock.sleep(0.75)  # a Date tells the whole second
    before, world.lost = world.now, 1
    job = client.schedule("emails", 1, delay=3600)
    assert timedelta(0) <= job.due - (before + timedelta(hours=1)) <= timedelta(seconds=1)


@pytest.mark.parametrize(
    ("asked", "after", "route"),
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
def test_an_id_has_the_due_time_and_the_route_that_the_api_would_give_it(world, asked, after, route):
    job = world.client().schedule("emails", 1, **asked)
    assert (job.due, job.route) == (NOW + timedelta(seconds=after), route)


def test_jobs_of_one_call_share_a_partition_and_those_of_a_large_one_are_spread(world):
    client = world.client()
    for _ in range(20):
        client.schedule_many("emails", [NewJob(payload=n) for n in range(300)])
    partitions = [JobId.parse(job["id"]).partition.number for job in world.posted]
    hundreds = [set(partitions[start : start + 100]) for start in range(0, len(partitions), 100)]
    assert [len(hundred) for hundred in hundreds] == [1] * 60
    assert set(partitions) == {0, 1, 2, 3}


@pytest.mark.parametrize("key", ["k", None])
def test_a_callers_own_key_goes_as_before_and_its_own_id_as_it_is(world, key):
    id = None if key else f"emails.3.t.{instant.epoch_ms(NOW)}.{uuid.uuid4()}"
    world.told = lambda asked: (200, job_told({"id": f"emails.0.t.0.{uuid.uuid4()}"}))
    world.client().schedule("emails", 1, key=key, id=id, delay=5 if key else None)
    assert world.posted == [{"payload": 1, "delay": 5, "key": "k"} if key else {"payload": 1, "id": id}]
    assert world.asked == 0


# Where no id can be made


@pytest.mark.parametrize(
    "queues",
    [
        (200, listed(taking=None)),
        (200, listed(taking=0)),
        (200, listed(direct_horizon=None)),
        (200, listed(direct_horizon=10**20)),
        (200, listed(queue="bills")),
        (200, {"queues": [5]}),
        (200, {}),
        (403, {"message": "Forbidden"}),
        (503, {"message": "Service Unavailable"}),
    ],
)
def test_where_it_is_not_known_what_an_id_needs_a_job_has_one_key_at_every_try(world, queues):
    world.queues, world.lost = queues, 2
    client = world.client()
    client.schedule("emails", 1, delay=3600)
    assert len({posted["key"] for posted in world.posted}) == 1
    assert [posted.keys() for posted in world.posted] == [{"payload", "delay", "key"}] * 3
    client.schedule("emails", 1)
    assert world.asked == 1


def test_what_ids_need_is_told_to_whoever_makes_its_own(world):
    told = id_terms(world.client(), "emails")
    assert (told.partitions, told.direct_horizon) == (4, timedelta(seconds=890))
    assert told.moment.earliest <= world.now <= told.moment.latest
    world.queues = 403, {"message": "Forbidden"}
    assert id_terms(world.client(), "emails") is None
    world.queues = 200, listed(taking=None)
    assert id_terms(world.client(), "emails") is None
    world.queues = 503, {"message": "Service Unavailable"}
    with pytest.raises(Unavailable):
        id_terms(world.client(attempts=3), "emails")
    assert world.asked == 6


def test_a_job_keeps_its_key_once_it_was_sent_under_it_though_ids_can_be_made_by_then(world):
    world.queues, world.lost = (503, {}), 6
    with pytest.raises(Unavailable) as raised:
        world.client().schedule("emails", 1)
    assert {posted["key"] for posted in world.posted} == {raised.value.key}
    assert raised.value.job_id is None


def test_where_the_time_is_not_told_jobs_go_under_keys(world):
    world.is_dated = False
    world.client().schedule("emails", 1)
    assert "key" in world.posted[0]


def test_an_id_that_is_refused_is_given_up_for_a_key_and_what_ids_need_is_asked_anew(world):
    world.told = lambda asked: (
        refused(400, "invalid_job")(asked) if "id" in asked else (200, job_told({"key": asked["key"]}))
    )
    client = world.client()
    assert isinstance(client.schedule("emails", 1, delay=60), Job)
    assert [posted.keys() for posted in world.posted] == [{"payload", "id"}, {"payload", "delay", "key"}]
    client.schedule("emails", 1)
    assert world.asked == 2


def test_of_many_only_the_refused_ones_go_under_keys(world):
    def told(asked):
        jobs = [
            {"error": refused(400, "x")(0)[1]} if "id" in job and job["payload"] == 1 else job for job in asked["jobs"]
        ]
        return 200, {"jobs": [job if "error" in job else job_told(job) for job in jobs]}

    def answer(asked):
        return told(asked) if "jobs" in asked else (200, job_told(asked))

    world.told = answer
    jobs = world.client().schedule_many("emails", [NewJob(payload=n) for n in range(3)])
    assert all(isinstance(job, Job) for job in jobs)
    assert ["key" in posted for posted in world.posted] == [False, False, False, True]


@pytest.mark.parametrize(
    ("status", "code", "error"),
    [(400, "invalid_job", InvalidJob), (409, "id_reused", IdReused), (404, "queue_not_found", QueueNotFound)],
)
def test_an_id_that_may_have_been_taken_at_an_earlier_try_is_never_given_up(world, status, code, error):
    world.lost, world.told = 1, refused(status, code)
    with pytest.raises(error):
        world.client().schedule("emails", 1)
    assert world.posted == [{"payload": 1, "id": world.posted[0]["id"]}] * 2


def test_a_job_keeps_its_id_whatever_became_of_the_request_that_it_was_first_sent_in(world):
    api = http_api.with_ids(world, clock=world.clock, new_uuid=lambda: str(uuid.uuid4()))
    draft = api.draft(NewJob(payload=1, delay=60))
    world.told = refused(403, "forbidden")
    with pytest.raises(Forbidden):
        api.schedule("emails", [draft])
    world.told = None
    # Whoever sends it again may know of an error that names no job.
    api.schedule("emails", [draft.after(Unavailable("broken off"))])
    first, second = world.posted
    assert first == second


# What is known of the queues


def test_what_ids_need_is_asked_for_again_after_a_minute_and_kept_where_that_fails(world):
    client = world.client()
    for _ in range(3):
        client.schedule("emails", 1)
    assert world.asked == 1
    world.clock.sleep(61)
    world.queues = 403, {}
    client.schedule("emails", 1)
    assert world.asked == 2
    assert all("id" in posted for posted in world.posted)


# After an error


def test_a_job_that_may_be_scheduled_is_scheduled_again_under_the_id_of_its_error(world):
    world.lost = 6
    client = world.client()
    with pytest.raises(Unavailable) as raised:
        client.schedule("emails", 1, delay=3600)
    assert raised.value.key is None
    assert client.schedule("emails", 1, id=raised.value.job_id).id == raised.value.job_id
    assert {posted["id"] for posted in world.posted} == {raised.value.job_id}


def test_of_many_each_error_has_the_id_of_its_own_job(world):
    world.told = refused(429, "throttled")
    errors = world.client(attempts=2).schedule_many("emails", [NewJob(payload=n) for n in range(3)])
    assert all(isinstance(error, Throttled) for error in errors)
    assert [error.job_id for error in errors] * 2 == [posted["id"] for posted in world.posted]


@pytest.mark.parametrize("beside", [{"at": NOW}, {"delay": 5}, {"key": "k"}])
def test_beside_an_id_a_time_or_a_key_is_refused_before_any_request(world, beside):
    id = f"emails.0.t.0.{uuid.uuid4()}"
    with pytest.raises(InvalidJob, match=f"id and {next(iter(beside))} are both given"):
        world.client().schedule("emails", 1, id=id, **beside)
    with pytest.raises(InvalidJob, match="id is 'x': it must be of the form"):
        world.client().schedule("emails", 1, id="x")
    assert (world.asked, world.posted) == (0, [])


# AWS's clock


def test_the_time_is_not_known_any_more_once_this_machines_clock_was_set(world):
    dated = Dated(world, clock=world.clock)
    assert dated.moment() is None
    dated.send("GET", "/queues", None, headers={})
    assert dated.moment().earliest <= world.now <= dated.moment().latest
    world.clock.set(timedelta(seconds=-2))
    assert dated.moment() is None
    dated.send("GET", "/queues", None, headers={})
    assert dated.moment().latest - dated.moment().earliest <= timedelta(seconds=1)


# With the API itself


class InMemory(World):
    """The API's own code, on a table and queues in memory."""

    def __init__(self, api):
        super().__init__()
        self.api = api

    @property
    def now(self):
        return datetime.now(UTC)

    def send(self, method, path, body, *, headers):
        status, content = call(self.api, method, path, body=body)
        if method == "POST" and self.lost:
            self.lost -= 1
            raise Unavailable("the answer was lost")
        return self.answer(status, content)


def test_the_api_takes_the_ids_that_the_client_makes_and_there_is_one_job_and_no_key(monkeypatch):
    with imported(monkeypatch, a_queue(partitions=3)) as api:
        monkeypatch.setattr(api.RESOURCES.table, "claim", lambda *_, **__: pytest.fail("a key was claimed"))
        world = InMemory(api)
        world.lost = 2
        client = world.client()
        soon, late = client.schedule("emails", 1), client.schedule("emails", 2, delay=3600)
        assert (soon.route, late.route) == (Route.DIRECT, Route.TABLE)
        assert client.get(soon.id) == soon
        assert client.schedule("emails", 2, id=late.id).id == late.id
