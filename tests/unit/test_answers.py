"""What is told of jobs and queues, as JSON."""

import json
from functools import reduce

import pytest

from dueline.errors import InvalidJob
from dueline.lookup.control import Control
from dueline.lookup.listing import Listed, read_place
from dueline.lookup.outcome import Outcome
from dueline.lookup.overview import Overview
from dueline.model import instant
from dueline.model.job import State
from dueline.model.rate import Rate
from dueline.model.request import json_text
from dueline.model.trace import TraceContext
from dueline.ports import Depth
from functions.http.job_answers import job_answer
from functions.http.listed_jobs import page_of_jobs
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


@pytest.mark.parametrize("payload", ["null", "0", '""', '{"a": [1, "ü", "\\u0001"]}', "[" * 200 + "]" * 200])
def test_a_payload_is_told_as_the_json_that_it_is(payload):
    job = page_of(payload)
    assert job["payload"] == json.loads(payload)
    assert (job["state"], "payload_text" in job) == ("scheduled", False)


@pytest.mark.parametrize("text", ["no JSON", "{", "NaN", "1e999", "9" * 5000, "[" * 100_000, "[" * 201 + "]" * 201])
def test_a_payload_that_is_no_json_is_told_as_text(text):
    job = page_of(text)
    assert job["payload_text"] == text
    assert "payload" not in job


def test_a_listed_job_tells_whose_it_is_what_made_it_and_its_trace():
    parent = "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01"
    made = a_job(tenant="ann", priority=2, schedule="digest", nominal=NOW, trace=TraceContext(parent=parent))
    made, plain = page_of_jobs(Listed(jobs=(made, a_job()), after=None))["jobs"]
    names = ("tenant", "priority", "schedule", "nominal", "traceparent")
    assert [made[name] for name in names] == ["ann", 2, "digest", instant.text(NOW), parent]
    assert [name for name in names if name in plain] == ["priority"]


def nested(levels):
    return json.loads('{"a":[' * (levels // 2) + '"]}\\"[{"' + "]}" * (levels // 2))


def test_a_payload_may_nest_so_deep_that_whoever_reads_it_can_and_no_deeper():
    beside = [[{}]] * 1000
    assert json.loads(json_text([nested(198), *beside])) == [nested(198), *beside]
    with pytest.raises(InvalidJob, match="payload nests 201 levels deep: at most 200 are allowed"):
        json_text([nested(200), *beside])
    with pytest.raises(InvalidJob, match="payload nests too deep: at most 200 levels are allowed"):
        json_text(reduce(lambda inner, _: [inner], range(5000), 1))


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
