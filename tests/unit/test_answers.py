"""What is shown of jobs and queues, as JSON."""

import json
from functools import reduce

import pytest

from dueline.core import instant
from dueline.core.listing import JobPage
from dueline.core.overview import Control, Overview
from dueline.core.ports import Depth
from dueline.core.queue_settings import Rate
from dueline.core.request import json_text
from dueline.core.trace import TraceContext
from dueline.errors import InvalidJob
from functions.http.answers import control_answer, overview_answer, page_of_jobs
from tests.builders import NOW, a_job, a_queue

PLACE = "2026-12-01T00:00:00.000Z#00000000-0000-4000-8000-000000000000#job"


def page_of(payload):
    answer = page_of_jobs(JobPage(jobs=(a_job(payload=payload),), after=None))
    # As strictly as callers may read it.
    (job,) = json.loads(json.dumps(answer, allow_nan=False))["jobs"]
    return job


@pytest.mark.parametrize("payload", ["null", "0", '""', '{"a": [1, "ü", "\\u0001"]}', "[" * 200 + "]" * 200])
def test_a_payload_is_reported_as_the_json_that_it_is(payload):
    job = page_of(payload)
    assert job["payload"] == json.loads(payload)
    assert (job["state"], "payload_text" in job) == ("scheduled", False)


@pytest.mark.parametrize("text", ["no JSON", "{", "NaN", "1e999", "9" * 5000, "[" * 100_000, "[" * 201 + "]" * 201])
def test_a_payload_that_is_no_json_is_reported_as_text(text):
    job = page_of(text)
    assert job["payload_text"] == text
    assert "payload" not in job


def test_listed_job_has_tenant_schedule_and_trace():
    parent = "00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01"
    made = a_job(tenant="ann", priority=2, schedule="digest", scheduled_for=NOW, trace=TraceContext(parent=parent))
    made, plain = page_of_jobs(JobPage(jobs=(made, a_job()), after=None))["jobs"]
    names = ("tenant", "priority", "schedule", "scheduled_for", "traceparent")
    assert [made[name] for name in names] == ["ann", 2, "digest", instant.text(NOW), parent]
    assert [name for name in names if name in plain] == ["priority"]


def nested(levels):
    return json.loads('{"a":[' * (levels // 2) + '"]}\\"[{"' + "]}" * (levels // 2))


def test_payload_nests_at_most_200_levels():
    beside = [[{}]] * 1000
    assert json.loads(json_text([nested(198), *beside])) == [nested(198), *beside]
    with pytest.raises(InvalidJob, match="payload nests 201 levels deep: at most 200 are allowed"):
        json_text([nested(200), *beside])
    with pytest.raises(InvalidJob, match="payload nests too deep: at most 200 levels are allowed"):
        json_text(reduce(lambda inner, _: [inner], range(5000), 1))


def overview_of(*levels, **more):
    answer = Overview(scheduled=0, more_scheduled=False, next_due=None, fence_age=None, levels=levels, dead=0, **more)
    return overview_answer(a_queue(priorities=len(levels)), answer, taking=1, direct_horizon=890)


def test_overview_has_each_level_and_their_sum():
    answer = overview_of(Depth(waiting=1, in_flight=2, delayed=3), Depth(waiting=10, in_flight=20, delayed=30))
    assert (answer["waiting"], answer["in_flight"], answer["delayed"]) == (11, 22, 33)
    assert answer["levels"] == [
        {"priority": 1, "waiting": 1, "in_flight": 2, "delayed": 3},
        {"priority": 2, "waiting": 10, "in_flight": 20, "delayed": 30},
    ]


@pytest.mark.parametrize(
    ("control", "answer"),
    [
        (Control(), {"paused": False, "rate": None}),
        (Control(paused=True, rate=Rate(jobs=200, seconds=3600)), {"paused": True, "rate": "200/h"}),
        (Control(rate=Rate(jobs=0)), {"paused": False, "rate": "0/s"}),
    ],
)
def test_control_is_in_the_overview_and_alone(control, answer):
    assert overview_of(Depth(waiting=1, in_flight=2, delayed=3), control=control).items() >= answer.items()
    assert control_answer("emails", control) == {"queue": "emails", **answer}
