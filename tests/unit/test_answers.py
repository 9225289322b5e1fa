"""What is told of jobs and queues, as JSON."""

import json

import pytest

from dueline.lookup.control import Control
from dueline.lookup.listing import Listed, read_place
from dueline.lookup.outcome import Outcome
from dueline.lookup.overview import Overview
from dueline.model.job import State
from dueline.model.rate import Rate
from dueline.ports import Depth
from functions.http.job_answers import job_answer, page_of_jobs
from functions.http.queue_answers import control_answer, overview_answer
from tests.builders import NOW, a_job, a_queue, an_id

PLACE = "2026-12-01T00:00:00.000Z#00000000-0000-4000-8000-000000000000#job"


def page_of(payload):
    told = page_of_jobs(Listed(jobs=(a_job(payload=payload),), after=None))
    # As strictly as callers may read it.
    (job,) = json.loads(json.dumps(told, allow_nan=False))["jobs"]
    return job


def test_the_last_page_names_no_next_one():
    assert page_of_jobs(Listed(jobs=(), after=None)) == {"jobs": [], "next": None}


def test_the_next_page_begins_where_this_one_ends():
    assert read_place(page_of_jobs(Listed(jobs=(), after=PLACE))["next"]) == PLACE


@pytest.mark.parametrize("payload", ["null", "0", '""', '{"a": [1, "ü", "\\u0001"]}', "[" * 500 + "]" * 500])
def test_a_payload_is_told_as_the_json_that_it_is(payload):
    job = page_of(payload)
    assert job["payload"] == json.loads(payload)
    assert (job["state"], "payload_text" in job) == ("scheduled", False)


@pytest.mark.parametrize("text", ["no JSON", "{", "NaN", "1e999", "9" * 5000, "[" * 100_000])
def test_a_payload_that_is_no_json_is_told_as_text(text):
    job = page_of(text)
    assert job["payload_text"] == text
    assert "payload" not in job


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (None, {}),
        (
            {"state": State.RUNNING, "attempts": 1, "started": NOW},
            {"attempts": 1, "started": "2026-11-21T07:05:00.000Z"},
        ),
        (
            {"state": State.FAILED, "attempts": 10, "started": NOW, "ended": NOW, "error": "TimeoutError"},
            {
                "attempts": 10,
                "started": "2026-11-21T07:05:00.000Z",
                "ended": "2026-11-21T07:05:00.000Z",
                "error": "TimeoutError",
            },
        ),
    ],
)
def test_of_a_jobs_attempts_what_is_known_is_told_and_nothing_else(outcome, told):
    id, noted = an_id(), Outcome(**outcome) if outcome else None
    job = job_answer(id, State.FAILED, outcome=noted)
    assert job == {**job_answer(id, State.FAILED), **told}
    assert set(job) - set(told) == {"id", "queue", "due", "route", "state"}


def overview_of(*levels, **more):
    told = Overview(scheduled=0, more_scheduled=False, next_due=None, fence_age=None, levels=levels, dead=0, **more)
    return overview_answer(a_queue(priorities=len(levels)), told, taking=1, direct_horizon=890)


def test_of_a_queue_with_several_levels_each_is_told_and_their_sum():
    told = overview_of(Depth(waiting=1, in_flight=2, delayed=3), Depth(waiting=10, in_flight=20, delayed=30))
    assert (told["waiting"], told["in_flight"], told["delayed"]) == (11, 22, 33)
    assert told["levels"] == [
        {"priority": 1, "waiting": 1, "in_flight": 2, "delayed": 3},
        {"priority": 2, "waiting": 10, "in_flight": 20, "delayed": 30},
    ]


def test_of_a_queue_with_one_level_none_is_told():
    told = overview_of(Depth(waiting=1, in_flight=2, delayed=3))
    assert (told["waiting"], told["in_flight"], told["delayed"]) == (1, 2, 3)
    assert "levels" not in told


@pytest.mark.parametrize(
    ("control", "told"),
    [
        (Control(), {"paused": False, "rate": None}),
        (Control(paused=True, rate=Rate(jobs=200, seconds=3600)), {"paused": True, "rate": "200/h"}),
        (Control(rate=Rate(jobs=0)), {"paused": False, "rate": "0/s"}),
    ],
)
def test_whether_a_queue_is_paused_and_its_rate_are_told_with_it_and_alone(control, told):
    assert overview_of(Depth(waiting=1, in_flight=2, delayed=3), control=control).items() >= told.items()
    assert control_answer("emails", control) == {"queue": "emails", **told}
