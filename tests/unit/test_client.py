"""The client over real sockets, against an API that answers as it is told to."""

import dataclasses
import hashlib
import json
import logging
import math
import threading
import traceback
import uuid
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial
from urllib.parse import parse_qs

import boto3
import pytest

from dueline import Client, Control, Job, NewJob, Patience, Rate, Route, State, errors
from dueline.aws.gateway import connect
from dueline.client.http_api import HttpApi
from dueline.client.listed import PayloadPlace
from dueline.errors import DuelineError, InvalidJob, JobNotFound, KeyReused, QueueNotFound, Throttled, Unavailable
from dueline.lookup.overview import Overview
from dueline.memory import VirtualClock
from dueline.model import instant
from dueline.model.job import JobId, Partition
from dueline.model.queue_settings import QueueSettings
from dueline.ports import Depth
from dueline.retry.calls import LANES
from tests.builders import NOW, an_id
from tests.gate import (
    CUT_OFF,
    DROPPED,
    NO_HTTP,
    Reply,
    a_job_told,
    an_api,
    open_gate,
    problem,
    refused,
    told,
)
from tests.waiting import HANG_SECONDS

SECRET = "the-secret-of-a-payload"  # noqa: S105
BUSY = refused(503, "unavailable")
SLOW_DOWN = refused(429, "throttled")
HUGE = 10**5000
WANTED = NOW + timedelta(days=9)


class NoText:
    """What cannot be written out."""

    def __repr__(self):
        raise RuntimeError


class NoZone(tzinfo):
    """A zone that knows no offset."""

    def utcoffset(self, _):
        return None


TRANSIENT = {
    "busy": BUSY,
    "throttled": SLOW_DOWN,
    "the gateway's 429": told({"message": "Too Many Requests"}, 429),
    "the gateway's 500": told({"message": "Internal Server Error"}, 500),
    "the gateway's 504": told({"message": "Endpoint request timed out"}, 504),
    "dropped": DROPPED,
    "cut off": CUT_OFF,
    "no HTTP": NO_HTTP,
    "no JSON": Reply(status=201, body=b"<html>"),
    "no object": told([], 201),
    "no job": told({"id": 5}, 201),
}
ERRORS = {
    (400, "invalid_job"): errors.InvalidJob,
    (400, "invalid_schedule"): errors.InvalidSchedule,
    (403, None): errors.Forbidden,
    (404, "queue_not_found"): errors.QueueNotFound,
    (404, "job_not_found"): errors.JobNotFound,
    (404, "schedule_not_found"): errors.ScheduleNotFound,
    (404, "route_not_found"): errors.DeploymentNotFound,
    (404, None): errors.DeploymentNotFound,
    (409, "already_finished"): errors.AlreadyFinished,
    (409, "too_many_schedules"): errors.TooManySchedules,
    (409, "too_many_changes"): errors.TooManyChanges,
    (409, "run_of_schedule"): errors.RunOfSchedule,
    (412, "schedule_changed"): errors.ScheduleChanged,
    (413, "payload_too_large"): errors.PayloadTooLarge,
    (413, None): errors.PayloadTooLarge,
    (409, "id_reused"): errors.IdReused,
    (422, "key_reused"): errors.KeyReused,
    (429, "throttled"): errors.Throttled,
    (429, None): errors.Throttled,
    (500, None): errors.Unavailable,
    (503, "unavailable"): errors.Unavailable,
    (503, "not_yet"): errors.NotYet,
    (503, None): errors.Unavailable,
    (400, "of a later version"): errors.InvalidJob,
    (418, None): errors.DuelineError,
    (302, None): errors.DuelineError,
}


class Sleepless(VirtualClock):
    """A clock that remembers how long it was made to wait."""

    def __init__(self):
        super().__init__(NOW)
        self.waits = []

    def sleep(self, seconds):
        self.waits.append(seconds)
        super().sleep(seconds)


@pytest.fixture
def gate():
    with open_gate() as opened:
        yield opened


@pytest.fixture
def clock():
    return Sleepless()


@pytest.fixture
def client(gate, clock):
    return a_client(gate, clock)


def a_client(gate, clock, *, jitter=lambda: 0.5, **patience):
    gate.of_ids = None
    http = connect("dueline", url=gate.url, session=None, lanes=LANES)
    api = HttpApi(http, clock=clock, new_key=lambda: str(uuid.uuid4()))
    return Client(api, clock=clock, jitter=jitter, patience=Patience(**patience))


def keys(gate):
    return [asked.json["key"] for asked in gate.asked]


def in_batches(gate):
    return [[job["key"] for job in asked.json.get("jobs", [asked.json])] for asked in gate.asked]


def numbered(count, **given):
    return (NewJob(payload=n, key=str(n), **given) for n in range(count))


def numbers(results):
    return [int(result.id[-12:]) for result in results]


# Schedule


def test_a_job_is_posted_to_its_queue_and_told_as_a_value(client, gate):
    job = client.schedule("emails", {"to": "ann", "é": [1, None]}, delay=3600, key="k-7")
    assert job == Job(
        id=str(an_id(uid=job.id[-36:], due=NOW)), queue="emails", due=NOW, route=Route.TABLE, state="accepted"
    )
    (asked,) = gate.asked
    assert (asked.method, asked.path) == ("POST", "/queues/emails/jobs")
    assert asked.json == {"payload": {"to": "ann", "é": [1, None]}, "delay": 3600, "key": "k-7"}


@pytest.mark.parametrize(
    ("given", "posted"),
    [
        ({}, {}),
        ({"delay": 0}, {"delay": 0}),
        ({"delay": 1.5}, {"delay": 1.5}),
        ({"delay": timedelta(minutes=2)}, {"delay": 120.0}),
        ({"at": datetime(2027, 1, 4, 9, tzinfo=timezone(timedelta(hours=1)))}, {"at": "2027-01-04T08:00:00.000Z"}),
        ({"at": datetime(2027, 1, 4, microsecond=1, tzinfo=UTC)}, {"at": "2027-01-04T00:00:00.001Z"}),
        ({"tenant": "acme"}, {"tenant": "acme"}),
        ({"priority": 1}, {}),
        ({"priority": 2}, {"priority": 2}),
    ],
)
def test_what_was_given_is_posted_as_it_was(client, gate, given, posted):
    client.schedule("emails", None, key="k", **given)
    assert gate.asked[0].json == {"payload": None, "key": "k", **posted}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"at": datetime(2027, 1, 4)}, "at is 2027-01-04T00:00:00, which has no time zone"),  # noqa: DTZ001
        ({"at": "2027-01-04T09:00:00Z"}, "at is '2027-01-04T09:00:00Z': it must be a datetime"),
        ({"at": datetime(1969, 1, 1, tzinfo=UTC)}, "at is 1969"),
        ({"at": datetime.max.replace(tzinfo=UTC)}, "at is 9999-12-31T23:59:59.999999.00:00: it must be from 1970"),
        ({"at": NOW, "delay": 5}, "give one of them"),
        ({"delay": -1}, "delay is -1"),
        ({"delay": math.nan}, "delay is nan"),
        ({"delay": 10**400}, "delay is 1000"),
        ({"delay": "5"}, "delay is '5'"),
        ({"delay": True}, "delay is True"),
        ({"delay": timedelta(days=-1)}, "delay is -86400"),
        ({"key": ""}, "key is ''"),
        ({"key": "x" * 256}, "key is 'xxx"),
        ({"key": "é"}, "key is 'é'"),
        ({"key": "a\n"}, "key is 'a"),
        ({"key": 5}, "key is 5"),
        ({"key": HUGE}, "key is an int: it must have 1 to 255"),
        ({"delay": HUGE}, "delay is an int: it must be from 0 to"),
        ({"delay": -HUGE}, "delay is an int: it must be from 0 to"),
        ({"at": HUGE}, "at is an int: it must be a datetime"),
        ({"at": NOW.replace(tzinfo=NoZone())}, "which has no time zone"),
        ({"tenant": 42}, "tenant is 42: it must have 1 to 128 letters"),
        ({"tenant": NoText()}, "tenant is a NoText: it must have 1 to 128 letters"),
        ({"tenant": "a b"}, "tenant is 'a b': it must have 1 to 128 letters"),
        ({"priority": "1"}, "priority is '1': it must be a whole number from 1 to 5"),
        ({"priority": 1.5}, "priority is 1.5: it must be a whole number from 1 to 5"),
        ({"priority": True}, "priority is True: it must be a whole number from 1 to 5"),
        ({"priority": None}, "priority is None: it must be a whole number from 1 to 5"),
        ({"priority": HUGE}, "priority is an int: it must be a whole number from 1 to 5"),
        ({"payload": HUGE}, "payload is not JSON"),
        ({"payload": {1, 2}}, "payload is not JSON"),
        ({"payload": math.inf}, "payload is not JSON"),
    ],
)
def test_what_is_no_good_is_refused_before_any_request(client, gate, given, named):
    given = {"payload": 1} | given
    with pytest.raises(InvalidJob, match=named):
        client.schedule("emails", **given)
    (error,) = client.schedule_many("emails", [NewJob(**given)])
    assert isinstance(error, InvalidJob)
    assert gate.asked == []


@pytest.mark.parametrize(
    "wrong", [NewJob(payload=1, tenant=uuid.uuid4()), {"payload": 1}, None], ids=["tenant", "dict", "none"]
)
def test_of_many_one_of_a_wrong_type_is_an_error_of_its_own_and_the_others_are_scheduled(client, gate, wrong):
    first, error, last = client.schedule_many("emails", [NewJob(payload=1), wrong, NewJob(payload=2)])
    assert (type(first), type(error), type(last)) == (Job, InvalidJob, Job)


@pytest.mark.parametrize(
    "wrong", [None, 5, HUGE, b"emails", uuid.UUID(int=0)], ids=["none", "int", "huge", "bytes", "uuid"]
)
def test_of_many_cancels_one_of_what_is_no_text_is_an_error_of_its_own_and_the_others_are_cancelled(client, wrong):
    first, error, last = client.cancel_many([str(an_id()), wrong, str(an_id())])
    assert (first, type(error), last) == (State.CANCELLED, JobNotFound, State.CANCELLED)
    for ask in (client.get, client.cancel, partial(client.reschedule, delay=5)):
        with pytest.raises(JobNotFound, match="not of the form of an id"):
            ask(wrong)


@pytest.mark.parametrize("queue", ["", "E", "a/b", "../x", "a?b", "emails\n", "x" * 61, None, 5])
def test_what_is_no_name_of_a_queue_never_becomes_a_path(client, gate, queue):
    with pytest.raises(QueueNotFound, match="no queue is named"):
        client.schedule(queue, 1)
    with pytest.raises(QueueNotFound):
        client.schedule_many(queue, [NewJob(payload=1)])
    assert gate.asked == []


def test_values_cannot_be_changed(client):
    for value, name in ((client.schedule("emails", 1), "state"), (NewJob(payload=1), "key"), (Patience(), "attempts")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, None)


# Look up and cancel


def test_a_job_is_looked_up_and_cancelled_in_the_queue_that_its_id_names(client, gate):
    id = str(an_id())
    assert client.get(id).state is State.SCHEDULED
    assert client.cancel(id) is State.CANCELLED
    path = f"/queues/emails/jobs/{id}"
    assert [(asked.method, asked.path) for asked in gate.asked] == [("GET", path), ("DELETE", path)]


ATTEMPTS = {"attempts": 2, "started": "2026-11-21T07:05:00.000Z"}
ENDED = {**ATTEMPTS, "ended": "2026-11-21T07:05:01.500Z", "error": "TimeoutError"}


def test_a_job_is_looked_up_with_its_attempts_where_its_queue_tracks(client, gate):
    id = an_id()
    gate.script = [told(a_job_told(id, "failed") | ENDED), told(a_job_told(id, "running") | ATTEMPTS)]
    failed, running = client.get(str(id)), client.get(str(id))
    assert (failed.state, failed.attempts, failed.started, failed.error) == (State.FAILED, 2, NOW, "TimeoutError")
    assert failed.ended == NOW + timedelta(seconds=1.5)
    assert running == dataclasses.replace(failed, state=State.RUNNING, ended=None, error=None)


def test_among_many_a_repeat_that_failed_is_a_job_and_no_error(client, gate):
    gate.script = [told({"jobs": [a_job_told(an_id(), "failed") | ENDED, a_job_told(an_id(), "accepted")]})]
    results = client.schedule_many("emails", [NewJob(payload=1, key="a"), NewJob(payload=2)])
    assert [(job.state, job.error, job.attempts) for job in results] == [
        (State.FAILED, "TimeoutError", 2),
        (State.ACCEPTED, None, None),
    ]


@pytest.mark.parametrize(
    "wrong", [{"attempts": "2"}, {"attempts": True}, {"started": "then"}, {"ended": 5}, {"error": {}}]
)
def test_attempts_that_cannot_be_read_are_no_answer(gate, clock, wrong):
    gate.script = [told(a_job_told(id := an_id(), "failed") | ENDED | wrong)]
    with pytest.raises(Unavailable, match="the answer holds no job"):
        a_client(gate, clock, attempts=1).get(str(id))


def test_a_cancel_that_is_no_promise_is_told_as_such(client, gate):
    gate.script = [told(a_job_told(id := an_id(), "cancel_requested"), 202)]
    assert client.cancel(str(id)) is State.CANCEL_REQUESTED


@pytest.mark.parametrize("id", ["", "emails", "emails.0.t.1.nothing", f"{an_id()}/../x", f"{an_id()}\n"])
def test_what_is_no_id_never_becomes_a_path(client, gate, id):
    for ask in (client.get, client.cancel):
        with pytest.raises(JobNotFound, match="not of the form of an id"):
            ask(id)
    assert gate.asked == []


def test_a_job_that_was_moved_names_the_one_that_took_its_place(client, gate):
    gate.script = [told(a_job_told(an_id(), "cancelled") | {"moved_to": "another"})]
    assert client.get(str(an_id())).moved_to == "another"


def cancelled_but(problems):
    """Answer cancellations as the API does, but for these ids with their problems, once each."""
    left = dict(problems)

    def answer(asked):
        jobs = told_of(an_api(asked))
        return told({"jobs": [{"error": left.pop(job["id"])} if job["id"] in left else job for job in jobs]})

    return answer


def test_many_are_cancelled_in_order_each_for_itself(client, gate):
    ids = [str(an_id()) for _ in range(1040)]
    gate.api = cancelled_but({ids[3]: problem(404, "job_not_found")})
    results = client.cancel_many(iter([*ids, "no id"]))
    assert [type(result) for result in results] == [*[State] * 3, JobNotFound, *[State] * 1036, JobNotFound]
    assert sorted(id for asked in gate.asked for id in asked.json["ids"]) == sorted(ids)
    # They get smaller where answers are slow, as on a busy machine.
    assert len(gate.asked) < len(ids) / 10


def test_of_many_cancels_only_those_are_tried_again_that_may_pass(client, gate):
    ids = [str(an_id()) for _ in range(4)]
    gate.api = cancelled_but({ids[0]: problem(503, "unavailable"), ids[2]: problem(429, "throttled")})
    assert client.cancel_many(ids) == [State.CANCELLED] * 4
    assert [asked.json["ids"] for asked in gate.asked] == [ids, [ids[0], ids[2]]]


def an_id_in(queue):
    return str(an_id(partition=Partition(queue=queue, number=0)))


def test_cancels_of_several_queues_are_asked_for_in_each_and_told_in_order(client, gate):
    ids = [an_id_in(queue) for queue in ("a", "a", "b", "b", "b", "a", "c")]
    of_a = [a_job_told(JobId.parse(id)) for id in ids[:2]]
    gate.script = [told({"jobs": [*of_a, {"error": problem(404, "job_not_found")}]})]
    first, second, *others, sixth, last = client.cancel_many(ids)
    assert (first, second, others, type(sixth), last) == (
        State.ACCEPTED,
        State.ACCEPTED,
        [State.CANCELLED] * 3,
        JobNotFound,
        State.CANCELLED,
    )
    assert [(asked.method, asked.path) for asked in gate.asked] == [
        ("POST", "/queues/a/cancellations"),
        ("POST", "/queues/b/cancellations"),
        ("DELETE", f"/queues/c/jobs/{ids[-1]}"),
    ]
    assert [asked.json["ids"] for asked in gate.asked[:2]] == [[*ids[:2], ids[5]], ids[2:5]]


def test_what_is_many_is_asked_several_at_once(client, gate):
    met = threading.Barrier(LANES, timeout=HANG_SECONDS)

    def all_at_once(asked):
        met.wait()
        return an_api(asked)

    gate.api = all_at_once
    assert client.cancel_many(str(an_id()) for _ in range(LANES * 100)) == [State.CANCELLED] * LANES * 100


# Reschedule


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ({"at": NOW + timedelta(days=1)}, "2026-11-22T07:05:00.000Z"),
        ({"at": NOW + timedelta(microseconds=1)}, "2026-11-21T07:05:00.001Z"),
        ({"at": NOW - timedelta(days=1)}, "2026-11-20T07:05:00.000Z"),
    ],
)
def test_a_job_is_moved_to_an_instant(client, gate, given, at):
    moved = client.reschedule(id := str(an_id()), **given)
    assert (instant.text(moved.due), moved.state) == (at, State.SCHEDULED)
    assert [(each.method, each.path, each.json) for each in gate.asked] == [
        ("PATCH", f"/queues/emails/jobs/{id}", {"at": at})
    ]


@pytest.mark.parametrize("off", [timedelta(days=-20 * 365), timedelta(days=20 * 365)])
def test_an_instant_is_sent_as_it_is_however_wrong_the_callers_clock(client, gate, clock, off):
    clock.sleep(off.total_seconds())
    client.schedule("emails", 1, at=WANTED)
    client.schedule_many("emails", [NewJob(payload=1, at=WANTED)] * 2)
    client.reschedule(str(an_id()), at=WANTED)
    posted, many, moved = [asked.json for asked in gate.asked]
    assert {each["at"] for each in (posted, *many["jobs"], moved)} == {instant.text(WANTED)}


def test_an_instant_that_is_too_far_ahead_is_for_the_api_to_refuse(client, gate):
    gate.script = [refused(400, "invalid_job", "at is too far ahead")] * 2
    for ask in (partial(client.schedule, "emails", 1), partial(client.reschedule, str(an_id()))):
        with pytest.raises(InvalidJob, match="at is too far ahead"):
            ask(at=NOW + timedelta(days=11 * 366))
    assert len(gate.asked) == 2


@pytest.mark.parametrize("off", [timedelta(minutes=-2), timedelta(minutes=2)])
def test_when_a_job_is_moved_to_does_not_hang_on_the_callers_clock(client, gate, clock, off):
    clock.sleep(off.total_seconds())
    client.reschedule(str(an_id()), delay=60)
    client.reschedule(str(an_id()), delay=timedelta(minutes=1))
    client.reschedule(str(an_id()), at=NOW + timedelta(minutes=1))
    assert [asked.json for asked in gate.asked] == [{"delay": 60}, {"delay": 60}, {"at": "2026-11-21T07:06:00.000Z"}]


def test_a_move_that_is_tried_again_asks_for_the_same_under_the_same_key(client, gate, clock):
    gate.script = [BUSY, DROPPED]
    client.reschedule(str(an_id()), delay=90)
    assert clock.waits
    client.reschedule(str(an_id()), delay=90)
    assert [asked.json for asked in gate.asked] == [{"delay": 90}] * 4
    headers = [{name.lower(): value for name, value in asked.headers.items()} for asked in gate.asked]
    first, second, third, another = [each["idempotency-key"] for each in headers]
    assert first == second == third != another


@pytest.mark.parametrize("given", [{}, {"at": NOW, "delay": 5}, {"delay": -1}, {"delay": True}, {"at": "now"}])
def test_a_move_to_no_time_is_refused_before_any_request(client, gate, given):
    with pytest.raises(InvalidJob, match=r"at|delay"):
        client.reschedule(str(an_id()), **given)
    assert gate.asked == []


def test_a_job_runs_now_by_a_move_without_a_delay_by_the_deployments_clock(client, gate):
    gate.script = [BUSY]
    client.run_now(id := str(an_id()))
    assert [(each.method, each.path, each.json) for each in gate.asked] == [
        ("PATCH", f"/queues/emails/jobs/{id}", {"delay": 0})
    ] * 2


def test_a_move_that_comes_too_late_names_the_job_that_took_its_place(client, gate):
    gate.script = [told(problem(409, "already_finished", "moved", id="another"), 409)]
    with pytest.raises(errors.AlreadyFinished, match="moved") as raised:
        client.reschedule(str(an_id()), at=NOW)
    assert raised.value.job_id == "another"


# List


def test_a_large_payload_is_told_by_its_place(client, gate):
    place = {"bucket": "b", "key": "0016/emails/u", "bytes": 6_000_000}
    gate.script = [told({"jobs": [a_job_told(an_id(), "scheduled") | {"payload_at": place}], "next": None})]
    (job,) = client.jobs("emails")
    assert (job.payload, job.payload_at) == (None, PayloadPlace(**place))


def a_page(ids, after=None, **more):
    return told({"jobs": [a_job_told(id, "scheduled") | {"payload": {"n": 1}} | more for id in ids], "next": after})


def test_jobs_are_listed_page_by_page_as_they_are_used(client, gate):
    ids = [an_id() for _ in range(3)]
    gate.script = [a_page(ids[:2], "p-2"), BUSY, a_page(ids[2:])]
    jobs = client.jobs("emails", start=NOW, end=NOW + timedelta(days=1))
    assert gate.asked == []
    assert [next(jobs).id, next(jobs).id] == [str(id) for id in ids[:2]]
    assert len(gate.asked) == 1
    assert [(job.id, job.state, job.payload) for job in jobs] == [(str(ids[2]), State.SCHEDULED, {"n": 1})]
    path, _, query = gate.asked[0].path.partition("?")
    assert (path, parse_qs(query)) == (
        "/queues/emails/jobs",
        {"from": ["2026-11-21T07:05:00.000Z"], "to": ["2026-11-22T07:05:00.000Z"], "limit": ["100"]},
    )
    assert [parse_qs(asked.path.partition("?")[2])["next"] for asked in gate.asked[1:]] == [["p-2"], ["p-2"]]


def test_an_empty_page_is_not_the_end(client, gate):
    gate.script = [a_page([], "p-2"), a_page([an_id()])]
    assert len(list(client.jobs("emails"))) == 1


def test_a_payload_that_is_no_json_is_told_as_text(client, gate):
    page = {"jobs": [a_job_told(an_id(), "scheduled") | {"payload_text": "<xml>"}], "next": None}
    gate.script = [told(page)]
    (job,) = client.jobs("emails")
    assert (job.payload, job.payload_text) == (None, "<xml>")
    assert "xml" not in repr(job)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"start": "now"}, "start is 'now': it must be a datetime"),
        ({"end": 5}, "end is 5: it must be a datetime"),
        ({"start": datetime(2027, 1, 4)}, "start is 2027-01-04T00:00:00: it must have a time zone"),  # noqa: DTZ001
        (
            {"end": datetime.max.replace(tzinfo=UTC)},
            "end is 9999-12-31T23:59:59.999999.00:00: it must have a time zone",
        ),
        (
            {"start": datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))},
            "start is 0001-01-01T00:00:00.01:00: it",
        ),
    ],
)
def test_a_listing_of_no_times_is_refused_at_once(client, gate, given, named):
    with pytest.raises(InvalidJob, match=named):
        client.jobs("emails", **given)
    with pytest.raises(QueueNotFound):
        client.jobs("no/queue")
    assert gate.asked == []


# Queues

SETTINGS = {"partitions": 4, "retention": 604800, "precise": True, "priorities": 2}
DOING = {
    "scheduled": 7,
    "more_scheduled": False,
    "next_due": "2026-11-21T07:05:00.000Z",
    "fence_age": 3.5,
    "waiting": 1,
    "in_flight": 2,
    "delayed": 3,
    "dead": 4,
    "paused": True,
    "rate": "50/s",
}


RATE = "/queues/emails/rate"


@pytest.mark.parametrize(("settings", "track"), [({}, False), ({"track": False}, False), ({"track": True}, True)])
def test_whether_a_queue_tracks_is_told_and_an_older_api_says_nothing_of_it(client, gate, settings, track):
    gate.script = [told({"queues": [{"queue": "emails", **SETTINGS, **settings}]})]
    (queue,) = client.queues()
    assert queue.track is track


def test_queues_are_told_with_their_settings(client, gate):
    gate.script = [told({"queues": [{"queue": "emails", **SETTINGS, "of a later version": 5}]})]
    assert client.queues() == [
        QueueSettings(name="emails", partitions=4, retention=timedelta(days=7), precise=True, priorities=2)
    ]
    assert gate.asked[0].path == "/queues"


@pytest.mark.parametrize(("next_due", "fence_age"), [("2026-11-21T07:05:00.000Z", 3.5), (None, None)])
def test_a_queue_tells_how_it_is_doing(client, gate, next_due, fence_age):
    gate.script = [told({"queue": "emails", **SETTINGS, **DOING, "next_due": next_due, "fence_age": fence_age})]
    assert client.queue("emails") == Overview(
        scheduled=7,
        more_scheduled=False,
        next_due=NOW if next_due else None,
        fence_age=fence_age,
        levels=(Depth(waiting=1, in_flight=2, delayed=3),),
        dead=4,
        control=Control(paused=True, rate=Rate(jobs=50)),
    )
    assert gate.asked[0].path == "/queues/emails"


def test_a_queue_of_several_levels_tells_how_each_is_doing(client, gate):
    levels = [{"priority": n, "waiting": n, "in_flight": 2, "delayed": 3} for n in (1, 2)]
    gate.script = [told({"queue": "emails", **SETTINGS, **DOING, "levels": levels})]
    doing = client.queue("emails")
    assert doing.levels == tuple(Depth(waiting=n, in_flight=2, delayed=3) for n in (1, 2))
    assert doing.depth == Depth(waiting=3, in_flight=4, delayed=6)


CONTROLS = {
    "pause": (lambda client: client.pause("emails"), "POST", "/queues/emails/pause", b""),
    "resume": (lambda client: client.resume("emails"), "POST", "/queues/emails/resume", b""),
    "a rate": (lambda client: client.set_rate("emails", Rate(jobs=90, seconds=60)), "PUT", RATE, b'{"rate": "90/m"}'),
    "a text": (lambda client: client.set_rate("emails", "90/m"), "PUT", RATE, b'{"rate": "90/m"}'),
    "no limit": (lambda client: client.set_rate("emails", None), "PUT", RATE, b'{"rate": null}'),
}


@pytest.mark.parametrize(("ask", "method", "path", "body"), CONTROLS.values(), ids=list(CONTROLS))
def test_a_queue_is_controlled_and_what_holds_then_is_told(client, gate, ask, method, path, body):
    gate.script = [BUSY, told({"queue": "emails", "paused": True, "rate": "90/m"})]
    assert ask(client) == Control(paused=True, rate=Rate(jobs=90, seconds=60))
    assert [(asked.method, asked.path, asked.body) for asked in gate.asked] == [(method, path, body)] * 2
    gate.script = [told({"queue": "emails", "paused": False, "rate": None})]
    assert ask(client) == Control()


@pytest.mark.parametrize(("rate", "named"), [("fast", "'fast'"), ("", "''"), ("100001/s", "100001 jobs"), (5, "5: ")])
def test_what_is_no_rate_is_refused_before_any_request(client, gate, rate, named):
    with pytest.raises(InvalidJob, match=f"rate is {named}"):
        client.set_rate("emails", rate)
    assert gate.asked == []


def test_what_is_no_name_of_a_queue_is_not_controlled(client, gate):
    for ask in (client.pause, client.resume, lambda queue: client.set_rate(queue, None)):
        with pytest.raises(QueueNotFound):
            ask("emails/jobs")
    assert gate.asked == []


@pytest.mark.parametrize("answer", [{}, {"paused": True}, {"paused": True, "rate": 5}, {"paused": True, "rate": "5"}])
def test_an_answer_that_does_not_tell_what_holds_is_no_answer(gate, clock, answer):
    gate.api = lambda _: told(answer)
    with pytest.raises(Unavailable, match="holds no pause and rate"):
        a_client(gate, clock, attempts=1).pause("emails")


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"jobs": 5, "next": None, "queues": [5]},
        {"queues": None},
        {"queues": [{"queue": "emails", **SETTINGS, "retention": 10**20}]},
    ],
    ids=str,
)
def test_an_answer_that_tells_nothing_is_tried_again(gate, clock, answer):
    gate.api = lambda _: told(answer)
    client = a_client(gate, clock, attempts=2)
    for ask in (client.queues, lambda: client.queue("emails"), lambda: list(client.jobs("emails"))):
        gate.asked.clear()
        with pytest.raises(Unavailable, match="holds no"):
            ask()
        assert len(gate.asked) == 2


# Schedule many


def test_many_are_scheduled_in_their_order_and_travel_together(client, gate):
    assert numbers(client.schedule_many("emails", numbered(1234))) == list(range(1234))
    assert len(gate.asked) < 14


def test_none_at_all_ask_for_nothing(client, gate):
    assert client.schedule_many("emails", []) == []
    assert gate.asked == []


def test_a_request_has_5_mb_at_most_as_the_functions_event_escapes_it(client, gate):
    quotes = '"' * 100_000
    jobs = [NewJob(payload=quotes, key=str(n)) for n in range(40)]
    assert numbers(client.schedule_many("emails", jobs)) == list(range(40))
    assert sorted(len(batch) for batch in in_batches(gate)) == [4, 12, 12, 12]


def an_api_with_uploads(gate):
    """Answer as the API and S3 do: what is put there is kept under the id of its upload."""

    def answer(asked):
        if asked.path.endswith("/uploads"):
            headers = {"content-length": str(asked.json["bytes"]), "x-amz-checksum-sha256": "sum"}
            begun = {"upload": "u-1", "url": f"{gate.url}/s3/u-1?signature", "method": "PUT", "headers": headers}
            return told(begun | {"expires": "2026-11-21T07:20:00.000Z"}, 201)
        return Reply(status=200) if asked.method == "PUT" else an_api(asked)

    return answer


def test_a_payload_that_no_request_takes_is_uploaded_first(client, gate):
    gate.api = an_api_with_uploads(gate)
    text = json.dumps("x" * 6_000_000).encode()
    client.schedule("emails", "x" * 6_000_000, delay=5, key="5", tenant="acme")
    begun, sent, scheduled = gate.asked
    assert begun.path == "/queues/emails/uploads"
    assert begun.json == {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    assert (sent.method, sent.path, sent.body) == ("PUT", "/s3/u-1?signature", text)
    headers = {name.lower(): value for name, value in sent.headers.items()}
    assert headers["x-amz-checksum-sha256"] == "sum"
    assert "authorization" not in headers
    assert scheduled.json == {"upload": "u-1", "delay": 5, "key": "5", "tenant": "acme"}


def test_among_many_a_large_one_is_uploaded_and_the_others_travel_together(client, gate):
    gate.api = an_api_with_uploads(gate)
    jobs = [NewJob(payload="x" * (6_000_000 if n == 2 else 1), key=str(n)) for n in range(5)]
    assert numbers(client.schedule_many("emails", jobs)) == list(range(5))
    assert sorted(asked.method + asked.path.partition("?")[0] for asked in gate.asked) == [
        "POST/queues/emails/jobs",
        "POST/queues/emails/jobs",
        "POST/queues/emails/jobs",
        "POST/queues/emails/uploads",
        "PUT/s3/u-1",
    ]


TO_THE_API, TO_S3 = (BUSY, DROPPED, told({})), (DROPPED, Reply(status=403), Reply(status=500))


@pytest.mark.parametrize(
    ("step", "failure"),
    [
        *[("/uploads", each) for each in TO_THE_API],
        *[("/s3/", each) for each in TO_S3],
        *[("/jobs", each) for each in TO_THE_API],
    ],
)
def test_an_upload_that_fails_is_begun_again_under_the_same_key(client, gate, step, failure):
    good, failed = an_api_with_uploads(gate), []

    def once_not(asked):
        if step in asked.path and not failed:
            failed.append(asked)
            return failure
        return good(asked)

    gate.api = once_not
    client.schedule("emails", "x" * 6_000_000, key="5")
    assert failed
    assert gate.asked[-1].json == {"upload": "u-1", "key": "5"}


def test_a_payload_over_10_mib_is_refused_before_any_request(client, gate):
    with pytest.raises(errors.PayloadTooLarge, match="payload has 10485763 bytes: at most 10485760"):
        client.schedule("emails", "x" * (10 * 1024 * 1024 + 1))
    assert gate.asked == []


def test_of_many_each_has_a_result_or_an_error_in_its_place(client, gate):
    jobs = [
        NewJob(payload=1, key="1"),
        NewJob(payload=1, delay=-1, key="2"),
        NewJob(payload=1, key="3"),
        NewJob(payload=1, key="4"),
    ]
    answer = an_api_of({"3": problem(422, "key_reused", "other payload", id="some id")})
    gate.api = answer
    first, second, third, fourth = client.schedule_many("emails", jobs)
    assert numbers([first, fourth]) == [1, 4]
    assert isinstance(second, InvalidJob)
    assert (type(third), str(third), third.job_id, third.key) == (KeyReused, "other payload", "some id", "3")
    assert in_batches(gate) == [["1", "3", "4"]]


def an_api_of(problems):
    """Answer as the API does, but for these keys with their problems, once each."""
    left = dict(problems)

    def answer(asked):
        reply = an_api(asked)
        jobs = zip(asked.json["jobs"], told_of(reply), strict=True)
        return told({"jobs": [{"error": left.pop(job["key"])} if job["key"] in left else each for job, each in jobs]})

    return answer


def told_of(reply):
    return json.loads(reply.body)["jobs"]


def test_of_many_only_those_are_tried_again_that_may_pass(client, gate):
    gate.api = an_api_of(
        {"1": problem(503, "unavailable"), "2": problem(400, "invalid_job"), "3": problem(429, "throttled")}
    )
    results = client.schedule_many("emails", numbered(5))
    assert isinstance(results[2], InvalidJob)
    assert numbers(results[:2] + results[3:]) == [0, 1, 3, 4]
    assert in_batches(gate) == [["0", "1", "2", "3", "4"], ["1", "3"]]


@pytest.mark.parametrize("failure", [BUSY, DROPPED, CUT_OFF, told({"jobs": []}), told({"jobs": 5}), told({})])
def test_of_many_all_are_tried_again_when_their_request_fails(client, gate, failure):
    gate.script = [failure]
    assert numbers(client.schedule_many("emails", numbered(3))) == [0, 1, 2]
    assert in_batches(gate) == [["0", "1", "2"]] * 2


def test_of_many_each_has_its_own_error_when_their_request_is_refused(client, gate):
    gate.api = lambda _: refused(404, "queue_not_found", "no such queue")
    results = client.schedule_many("emails", numbered(3))
    assert [(type(each), str(each), each.key) for each in results] == [
        (QueueNotFound, "no such queue", key) for key in "012"
    ]
    assert len(gate.asked) == 1


def test_of_many_those_are_given_up_that_fail_to_the_end(gate, clock):
    gate.api = lambda _: BUSY
    results = a_client(gate, clock, attempts=3).schedule_many("emails", numbered(2))
    assert [type(each) for each in results] == [Unavailable, Unavailable]
    assert [each.key for each in results] == ["0", "1"]
    assert len(gate.asked) == 3


def test_many_are_taken_from_their_iterable_as_they_are_sent(client, gate):
    all_taken = threading.Event()
    overtaken = []

    def jobs():
        yield from numbered(500 * (2 * LANES + 2))
        all_taken.set()

    def first_in_no_hurry(asked):
        if asked.json["jobs"][0]["key"] == "0":
            overtaken.append(all_taken.wait(0.5))
        return an_api(asked)

    gate.api = first_in_no_hurry
    client.schedule_many("emails", jobs())
    assert overtaken == [False]


# Try again


@pytest.mark.parametrize("failure", TRANSIENT.values(), ids=TRANSIENT)
def test_what_may_pass_is_tried_again_with_the_very_same_body(client, gate, clock, failure):
    gate.script = [failure, failure]
    client.schedule("emails", {"to": "ann"}, delay=5)
    assert len(gate.asked) == 3
    assert len({asked.body for asked in gate.asked}) == 1
    assert len(clock.waits) == 2


@pytest.mark.parametrize("method", ["get", "cancel"])
def test_a_look_up_and_a_cancel_are_tried_again(client, gate, method):
    gate.script = [BUSY, DROPPED, SLOW_DOWN]
    getattr(client, method)(str(an_id()))
    assert len(gate.asked) == 4


def test_a_server_that_is_not_there_is_tried_again_and_then_unavailable(clock):
    with open_gate() as gate:
        pass
    with pytest.raises(Unavailable, match="POST /queues/emails/jobs"):
        a_client(gate, clock, attempts=3).schedule("emails", 1)
    assert len(clock.waits) == 2


@pytest.mark.parametrize(
    ("status", "code"), [each for each, error in ERRORS.items() if not issubclass(error, errors.RETRYABLE)]
)
def test_what_cannot_pass_is_asked_once(client, gate, status, code):
    gate.api = lambda _: refused(status, code)
    with pytest.raises(DuelineError):
        client.schedule("emails", 1)
    assert len(gate.asked) == 1


def test_a_key_is_the_same_over_the_tries_of_one_call_and_new_for_each_call(client, gate):
    gate.script = [BUSY, DROPPED]
    client.schedule("emails", 1)
    client.schedule("emails", 1)
    client.schedule_many("emails", [NewJob(payload=1), NewJob(payload=1)])
    *single, many = gate.asked
    sent = [asked.json["key"] for asked in single] + [job["key"] for job in many.json["jobs"]]
    assert sent[0] == sent[1] == sent[2]
    assert len(set(sent)) == 4


def test_a_callers_own_key_is_the_key(client, gate):
    gate.script = [BUSY]
    client.schedule("emails", 1, key="order 5")
    assert keys(gate) == ["order 5", "order 5"]


def test_waits_double_at_random_up_to_a_limit(gate, clock):
    gate.api = lambda _: BUSY
    draws = iter([1.0, 0.5, 0.0, 1.0, 1.0])
    client = a_client(gate, clock, jitter=lambda: next(draws), attempts=6, first_wait=1, longest_wait=9, seconds=100)
    with pytest.raises(Unavailable):
        client.get(str(an_id()))
    assert clock.waits == [1, 1, 0, 8, 9]


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        ("3", 3.05),
        ("0", 0.05),
        ("Sat, 21 Nov 2026 07:05:04 GMT", 4.05),
        ("Sat, 21 Nov 2020 07:05:04 GMT", 0.05),
        ("soon", 0.05),
        ("-5", 0.05),
        ("", 0.05),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_what_the_api_asks_to_wait_is_waited_and_the_jitter_on_top(client, gate, clock, status, retry_after, wait):
    gate.script = [told({}, status, retry_after=retry_after)]
    client.schedule("emails", 1)
    assert clock.waits == [pytest.approx(wait)]


def test_of_many_too_what_the_api_asks_to_wait_is_waited(client, gate, clock):
    gate.script = [refused(429, "throttled", retry_after="3")]
    client.schedule_many("emails", numbered(2))
    assert sum(clock.waits) == pytest.approx(3.05)


def test_a_wait_past_the_deadline_is_not_begun(gate, clock):
    gate.script = [refused(503, "unavailable", retry_after="31")]
    with pytest.raises(Unavailable) as raised:
        a_client(gate, clock, seconds=30).schedule("emails", 1, key="k")
    assert (clock.waits, len(gate.asked)) == ([], 1)
    assert (raised.value.retry_after, raised.value.key) == (31, "k")


def test_no_try_is_begun_after_the_deadline(gate, clock):
    gate.api = lambda _: refused(429, "throttled", retry_after="4")
    with pytest.raises(Throttled):
        a_client(gate, clock, jitter=lambda: 0, seconds=10, attempts=100).schedule("emails", 1)
    assert clock.waits == [4, 4]


def test_the_attempts_are_counted(gate, clock):
    gate.api = lambda _: BUSY
    with pytest.raises(Unavailable):
        a_client(gate, clock, attempts=1).schedule("emails", 1)
    assert len(gate.asked) == 1


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"seconds": -1}, {"first_wait": math.nan}, {"longest_wait": -0.1}])
def test_a_patience_that_makes_no_sense_is_refused(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"{name} is"):
        Patience(**wrong)


# Errors


@pytest.mark.parametrize(("status", "code"), ERRORS)
def test_every_answer_that_is_no_success_has_its_error(gate, clock, status, code):
    content = {"message": "why"} if code is None else problem(status, code, "why", id="an id")
    gate.api = lambda _: told(content, status)
    with pytest.raises(DuelineError) as raised:
        a_client(gate, clock, attempts=1).schedule("emails", 1, key="k")
    error = raised.value
    assert type(error) is ERRORS[status, code]
    assert str(error) == ("POST /queues/emails/jobs: why" if code is None else "why")
    assert (error.job_id, error.key) == (None if code is None else "an id", "k")


def test_every_error_of_the_tree_is_among_those():
    tree = {each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, DuelineError)}
    # Raised where a direct client connects, never over HTTP.
    assert set(ERRORS.values()) == tree - {errors.DeploymentTooOld, errors.ClientTooOld}


def an_echo(asked):
    return Reply(status=201, body=asked.body)


def an_echo_that_fails(status):
    return lambda asked: Reply(status=status, body=asked.body)


@pytest.mark.parametrize(
    "answer",
    [
        an_echo,
        *[an_echo_that_fails(status) for status in (302, 400, 403, 404, 413, 418, 422, 429, 500, 503)],
        lambda _: DROPPED,
        lambda _: CUT_OFF,
        lambda _: told([SECRET]),
        lambda _: told({"id": SECRET, "queue": SECRET, "due": SECRET, "route": SECRET, "state": SECRET}),
        lambda _: told({"jobs": [{"id": "", "queue": "", "due": SECRET, "route": "", "state": SECRET}]}),
    ],
)
def test_no_payload_is_in_the_text_of_an_error_or_in_a_log(gate, clock, caplog, answer):
    caplog.set_level(logging.DEBUG)
    gate.api = answer
    client = a_client(gate, clock, attempts=2)
    with pytest.raises(DuelineError) as raised:
        client.schedule("emails", {"to": SECRET})
    (error,) = client.schedule_many("emails", [NewJob(payload=SECRET)])
    assert isinstance(error, DuelineError)
    for each in (raised.value, error):
        assert SECRET not in "".join(traceback.format_exception(each)) + repr(each)
    assert gate.asked
    assert SECRET not in caplog.text


def test_no_payload_is_shown_by_a_value():
    assert SECRET not in repr(NewJob(payload=SECRET))


@pytest.mark.parametrize("payload", [{SECRET}, {SECRET: {1}}, {(SECRET,): 1}, [SECRET, math.nan]])
def test_a_payload_that_is_refused_is_not_quoted(client, payload):
    with pytest.raises(InvalidJob) as raised:
        client.schedule("emails", payload)
    assert SECRET not in "".join(traceback.format_exception(raised.value))


# Signatures


def a_session(**given):
    return boto3.Session(**({"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "s"} | given))


def test_a_request_is_signed_for_the_api_with_the_sessions_credentials(gate):
    session = a_session(aws_session_token="t", region_name="eu-west-1")  # noqa: S106
    Client.connect(url=gate.url, session=session).schedule("emails", 1)
    headers = {name.lower(): value for name, value in gate.asked[0].headers.items()}
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-west-1/execute-api/aws4_request" in headers["authorization"]
    assert headers["x-amz-security-token"] == "t"


def test_a_local_runs_door_is_asked_unsigned(gate):
    Client.connect(url=f"{gate.url}/stage/").schedule("emails", 1)
    assert "authorization" not in {name.lower() for name in gate.asked[0].headers}
    assert gate.asked[0].path == "/stage/queues/emails/jobs"
