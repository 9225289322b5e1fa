from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.errors import InvalidJob
from dueline.model import rows
from dueline.model.job import Job, Route
from dueline.model.message import SCHEDULE, Message
from dueline.model.rows import PartitionState
from tests.builders import NOW, a_job, an_id


def test_a_job_is_read_as_it_was_written():
    job = a_job()
    assert rows.read_job(rows.job_row(job)) == job


def test_a_tenant_is_kept_in_its_jobs_row_and_nothing_where_there_is_none():
    job = a_job(tenant="acme")
    assert rows.read_job(rows.job_row(job)) == job
    assert "tenant" not in rows.job_row(a_job())


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_row_and_a_message_say_which_schedule_made_a_job_and_nothing_where_none_did(exclusive):
    job = a_job(schedule="daily.digest", nominal=NOW, exclusive=exclusive)
    told = f"daily.digest@2026-11-21T07:05:00.000Z{'!skip' if exclusive else ''}"
    assert rows.job_row(job)["schedule"] == Message.of(job).attributes[SCHEDULE] == told
    assert rows.read_job(rows.job_row(job)) == Message.of(job).job() == Message.of(job).with_reason("gone").job() == job
    assert "schedule" not in rows.job_row(a_job())
    assert SCHEDULE not in Message.of(a_job()).attributes


def test_a_cancellation_sorts_before_its_job_and_behind_any_earlier_one():
    earlier, job = an_id(due=NOW - timedelta(milliseconds=1)), an_id(due=NOW)
    keys = [rows.job_key(earlier)[1], rows.cancellation_key(job)[1], rows.job_key(job)[1], rows.parked_key(job)[1]]
    assert keys == sorted(keys)


def test_ids_that_differ_in_their_routes_alone_share_no_row_but_that_of_an_outcome():
    job = an_id(due=NOW)
    direct = replace(job, route=Route.DIRECT)
    kinds = (rows.job_key, rows.cancellation_key, rows.handled_key, rows.parked_key)
    assert {key(job) for key in kinds}.isdisjoint(key(direct) for key in kinds)
    assert rows.cancellation_key(job)[1] == f"2026-11-21T07:05:00.000Z#{job.uid}#cancelled"
    assert rows.parked_key(direct)[1] < rows.end_of("2026-11-21T07:05:00.000Z")
    assert rows.prefix_and_kind(rows.job_key(job)[1])[0] != rows.prefix_and_kind(rows.cancellation_key(direct)[1])[0]


def test_the_first_cursor_lies_below_every_job_and_above_the_state():
    assert rows.STATE < rows.FIRST < rows.cancellation_key(an_id(due=NOW - timedelta(days=20_000)))[1]


def test_the_end_of_a_fence_lies_between_the_last_job_due_then_and_the_next_millisecond():
    fence = "2026-11-21T07:05:00.000Z"
    last = an_id(due=NOW, uid="ffffffff-ffff-4fff-bfff-ffffffffffff")
    following = an_id(due=NOW + timedelta(milliseconds=1), uid="00000000-0000-4000-8000-000000000000")
    assert rows.parked_key(last)[1] < rows.end_of(fence) < rows.cancellation_key(following)[1]


def test_a_sort_key_tells_its_job_and_its_kind():
    id = an_id(due=NOW)
    prefixes, kinds = zip(
        *(rows.prefix_and_kind(key(id)[1]) for key in (rows.job_key, rows.cancellation_key)), strict=True
    )
    assert len(set(prefixes)) == 1
    assert kinds == (rows.JOB, rows.CANCELLED)


@pytest.mark.parametrize(
    "broken",
    [
        {"payload": ""},
        {"payload": "x" * 262_145},
        {"ttl": "soon"},
        {"schedule": "digest"},
        {"schedule": "digest@soon"},
        {"schedule": "a#b@2026-11-21T07:05:00Z"},
        {"schedule": 7},
        {"ttl": None},
        {"ttl": []},
        {"ttl": 10**30},
        {"pk": "emails"},
        {"pk": "emails#x"},
        {"sk": "soon#uid#job"},
        {"sk": "0001-01-01T00:00:00+23:59#uid#job"},
        {"sk": "#job"},
        {"sk": "2026-11-21T08:05:00Z#00000000-0000-4000-8000-000000000000#job"},
        {"pk": "emails#00"},
    ],
)
def test_a_row_that_cannot_be_read_says_why(broken):
    with pytest.raises(InvalidJob, match=r"row|payload"):
        rows.read_job({**rows.job_row(a_job()), **broken})


@pytest.mark.parametrize("name", ["payload", "ttl"])
def test_a_row_that_lacks_something_says_what(name):
    row = {key: value for key, value in rows.job_row(a_job()).items() if key != name}
    with pytest.raises(InvalidJob, match=f"has no '{name}'"):
        rows.read_job(row)


def test_a_row_of_a_later_schema_is_not_guessed_at_and_one_that_tells_none_is_of_the_first():
    row = rows.job_row(a_job())
    assert "v" not in row
    assert rows.read_job({**row, "v": 1}) == rows.read_job(row)
    with pytest.raises(InvalidJob, match="cannot be read: it is of schema 2, and"):
        rows.read_job({**row, "v": 2, "payload": 7})


def test_a_missing_state_lies_below_every_key():
    state = rows.read_state(None)
    assert state == PartitionState()
    assert state.fence < "1970"
    assert state.cursor < "1970"


def test_a_cancellation_outlives_its_job_whatever_its_queues_retention():
    job = Job(id=an_id(), payload="{}", expires=an_id().due + timedelta(days=30))
    cancellation = rows.cancellation_row(job.id, at=NOW)
    assert int(cancellation["ttl"]) >= int(rows.job_row(job)["ttl"]) + timedelta(days=7).total_seconds()


def test_a_note_of_the_late_path_outlives_its_job():
    job = a_job()
    note = rows.handled_row(job, dispatched=True)
    assert int(note["ttl"]) >= int(rows.job_row(job)["ttl"]) + timedelta(days=7).total_seconds()


def test_a_row_is_live_until_its_ttl():
    row = rows.job_row(a_job(expires=NOW))
    assert rows.is_live(row, now=NOW - timedelta(seconds=1))
    assert not rows.is_live(row, now=NOW)
    assert not rows.is_live(None, now=NOW)
