"""Ids that callers make: what is refused and why, and that a forged one does no harm."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dueline.errors import InvalidJob
from dueline.model import instant
from dueline.model.job import JobId, Partition, Route
from dueline.model.request import FURTHEST
from dueline.protocol.given_id import checked
from tests.builders import NOW, RETENTION, a_queue, an_id
from tests.called import call, imported

MS = timedelta(milliseconds=1)
QUEUE = a_queue(partitions=2)


def an_id_in(seconds, route=Route.TABLE, **more):
    return an_id(due=NOW + timedelta(seconds=seconds), route=route, **more)


@pytest.mark.parametrize(
    "id",
    [
        an_id_in(3600),
        an_id_in(3600, partition=Partition(queue="emails", number=1)),
        an_id_in(1),
        an_id_in(-1),
        an_id_in(900, Route.DIRECT),
        an_id_in(-1, Route.DIRECT),
        an_id(due=NOW - RETENTION + MS),
        an_id(due=NOW + FURTHEST),
    ],
    ids=str,
)
def test_an_id_of_a_job_that_can_be_sent_is_taken(id):
    assert checked(str(id), queue=QUEUE, now=NOW) == id


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (str(an_id_in(60, partition=Partition(queue="bills", number=0))), "it is of queue 'bills', and the job is for"),
        (str(an_id_in(60, partition=Partition(queue="emails", number=2))), "partition 2 takes no jobs, .* has 0 to 1"),
        (str(an_id_in(900.001, Route.DIRECT)), "by route d SQS can hold it for 900 s: give it route t"),
        (str(an_id(due=NOW - RETENTION)), "was due at 2026-11-14T07:05:00.000Z, and is past its retention of 7 days"),
        (str(an_id(due=NOW + FURTHEST + timedelta(minutes=2))), "the latest is 2036-11-21T07:05:00.000Z, in 10 years"),
        (str(an_id_in(60)).upper(), "it must be of the form {queue}.{partition}"),
        (str(an_id_in(60, uid="0" * 32)), "it must be of the form"),
        ("emails.00.t.0.00000000-0000-4000-8000-000000000000", "it must be of the form"),
        ("", "id is '': it must be of the form"),
    ],
)
def test_any_other_id_is_refused_and_the_reason_is_told(text, reason):
    with pytest.raises(InvalidJob, match=reason):
        checked(text, queue=QUEUE, now=NOW)


# Over HTTP


@pytest.fixture
def api(monkeypatch):
    with imported(monkeypatch, QUEUE) as api:
        yield api


def post(api, body):
    return call(api, "POST", "/queues/emails/jobs", body=json.dumps(body))


def in_an_hour():
    return str(an_id(due=instant.round_up(datetime.now(UTC) + timedelta(hours=1))))


def test_a_job_is_scheduled_under_the_id_that_its_caller_made_and_a_repeat_is_the_same_job(api):
    id = in_an_hour()
    told = [post(api, {"payload": 1, "id": id}) for _ in range(2)]
    assert [(status, job["id"], job["due"]) for status, job in told] == [
        (201, id, instant.text(JobId.parse(id).due))
    ] * 2


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"at": "2030-01-01T00:00:00Z"}, "id and at are both given: give one of them"),
        ({"delay": 0}, "id and delay are both given"),
        ({"key": "k"}, "id and key are both given"),
    ],
)
def test_beside_an_id_its_time_and_a_key_are_refused(api, given, reason):
    status, told = post(api, {"payload": 1, "id": in_an_hour(), **given})
    assert (status, told["code"]) == (400, "invalid_job")
    assert reason in told["detail"]


def test_of_many_one_whose_id_is_wrong_is_an_error_of_its_own(api):
    ids = [in_an_hour(), "7", in_an_hour()]
    _, told = post(api, {"jobs": [{"payload": 1, "id": id} for id in ids]})
    assert [job.get("id") for job in told["jobs"]] == [ids[0], None, ids[2]]
    assert told["jobs"][1]["error"]["status"] == 400


def test_the_queues_tell_what_an_id_needs(api, monkeypatch):
    monkeypatch.setattr(api, "REGISTRY", replace(api.REGISTRY, standings=lambda _: {"emails": 1}))
    _, told = call(api, "GET", "/queues")
    (queue,) = told["queues"]
    assert (queue["partitions"], queue["taking"], queue["direct_horizon"]) == (2, 1, 890)
