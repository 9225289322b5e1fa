"""Ids that callers make: what is refused and why."""

from datetime import UTC, datetime, timedelta

import pytest

from dueline.core import instant, rows
from dueline.core.idempotency import checked_id
from dueline.core.job import Partition, Route
from dueline.core.request import FURTHEST, Request
from dueline.errors import IdReused, InvalidJob
from tests.api_harness import call_api
from tests.builders import NOW, RETENTION, a_queue, an_id, emails, id_due_in

MS = timedelta(milliseconds=1)
QUEUE = a_queue(partitions=2)


@pytest.mark.parametrize(
    "id",
    [
        id_due_in(3600),
        id_due_in(3600, partition=emails(1)),
        id_due_in(1),
        id_due_in(-1),
        id_due_in(900, route=Route.DIRECT),
        id_due_in(-1, route=Route.DIRECT),
        an_id(due=NOW - RETENTION + MS),
        an_id(due=NOW + FURTHEST),
    ],
    ids=str,
)
def test_valid_id_is_accepted(id):
    assert checked_id(str(id), queue=QUEUE, now=NOW) == id


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (str(an_id(partition=Partition(queue="bills", number=0))), "it is of queue 'bills', and the job is for"),
        (str(id_due_in(60, partition=emails(2))), "partition 2 takes no jobs, .* has 0 to 1"),
        (str(id_due_in(900.001, route=Route.DIRECT)), "by route d SQS can hold it for 900 s: give it route t"),
        (str(an_id(due=NOW - RETENTION)), "was due at 2026-11-14T07:05:00.000Z, and is past its retention of 7 days"),
        (str(an_id(due=NOW + FURTHEST + timedelta(minutes=2))), "the latest is 2036-11-21T07:05:00.000Z, in 10 years"),
        (str(id_due_in(60)).upper(), "it must be of the form {queue}.{partition}"),
        (str(id_due_in(60, uid="0" * 32)), "it must be of the form"),
        ("emails.00.t.0.00000000-0000-4000-8000-000000000000", "it must be of the form"),
        ("", "id is '': it must be of the form"),
    ],
)
def test_bad_id_is_refused_with_the_reason(text, reason):
    with pytest.raises(InvalidJob, match=reason):
        checked_id(text, queue=QUEUE, now=NOW)


# Over HTTP


@pytest.mark.parametrize(
    ("beside", "reason"),
    [
        ({"at": "2030-01-01T00:00:00Z"}, "id and at are both given: give one of them"),
        ({"delay": 0}, "id and delay are both given"),
        ({"key": "k"}, "id and key are both given"),
    ],
)
def test_id_excludes_a_time_and_a_key(api, beside, reason):
    id = str(an_id(due=instant.round_up(datetime.now(UTC) + timedelta(hours=1))))
    status, answer = call_api(api, "POST", "/queues/emails/jobs", {"payload": 1, "id": id, **beside})
    assert (status, answer["code"]) == (400, "invalid_job")
    assert reason in answer["detail"]


# A forged id does no harm


def test_id_of_another_job_is_refused_and_its_row_stays(system):
    job = system.schedule(3600)
    row = system.table.read([rows.job_key(job.id)]).rows
    (refused,) = system.submit(Request(payload="another", id=str(job.id)))
    assert isinstance(refused, IdReused)
    assert "belongs to a job with another payload, kind, tenant or priority" in str(refused)
    assert system.table.read([rows.job_key(job.id)]).rows == row


def test_id_twice_in_a_call_is_of_one_job(system):
    id = str(an_id(due=NOW + timedelta(hours=1)))
    first, same, other = system.submit(*(Request(payload=payload, id=id) for payload in (1, 1, 2)))
    assert first == same
    assert "an earlier job of this call has it, and is not the same" in str(other)
