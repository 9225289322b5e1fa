"""Pause, resume and rate over HTTP: what is answered, and what is logged."""

import json

import pytest

from dueline.core.overview import Control, read_control
from dueline.core.queue_settings import Rate
from tests.api_harness import call_api, import_api
from tests.builders import a_queue

CALLER = "arn:aws:iam::123456789012:user/ann"


@pytest.fixture
def api(monkeypatch):
    with import_api(monkeypatch, a_queue()) as api:
        yield api


def call(api, method, path, body=None):
    return call_api(api, method, path, body=body, caller=CALLER)


def put(api, rate):
    return call(api, "PUT", "/queues/emails/rate", json.dumps({"rate": rate}))


def held(api):
    return read_control("emails", table=api.DEPLOYMENT.table)


def test_pause_and_resume_answer_the_controls(api):
    assert call(api, "POST", "/queues/emails/pause") == (200, {"queue": "emails", "paused": True, "rate": None})
    assert held(api) == Control(paused=True)
    assert call(api, "POST", "/queues/emails/resume") == (200, {"queue": "emails", "paused": False, "rate": None})
    assert held(api) == Control()


def test_rate_is_set_and_lifted_beside_a_pause(api):
    call(api, "POST", "/queues/emails/pause")
    assert put(api, "50/s") == (200, {"queue": "emails", "paused": True, "rate": "50/s"})
    assert held(api).rate == Rate(jobs=50)
    assert put(api, None) == (200, {"queue": "emails", "paused": True, "rate": None})
    assert held(api).rate is None


ALLOWED = "it must be a number of jobs and a unit, such as 50/s, 90/m or 200/h"
A_TEXT = "must be a text such as 50/s, 90/m or 200/h, or null for no limit"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ('{"rate": "fast"}', f"rate is 'fast': {ALLOWED}"),
        ('{"rate": ""}', f"rate is '': {ALLOWED}"),
        ('{"rate": "50"}', f"rate is '50': {ALLOWED}"),
        ('{"rate": "50/d"}', f"rate is '50/d': {ALLOWED}"),
        ('{"rate": "100001/s"}', "rate is 100001 jobs: it must be from 0 to 100000"),
        ('{"rate": 50}', f"rate is 50: {A_TEXT}"),
        ('{"rate": false}', f"rate is false: {A_TEXT}"),
        ("{}", "rate is missing"),
        ('{"rate": "5/s", "burst": 3}', "burst is no field: there are rate"),
        ("", "body is not JSON"),
        ("[]", "body is []"),
    ],
)
def test_wrong_rate_is_refused_with_what_is_allowed(api, body, detail):
    status, answer = call(api, "PUT", "/queues/emails/rate", body)
    assert (status, answer["code"]) == (400, "invalid_job")
    assert detail in answer["detail"]
    assert held(api) == Control()


@pytest.mark.parametrize(("method", "path"), [("POST", "pause"), ("POST", "resume"), ("PUT", "rate")])
def test_unknown_queue_is_not_controlled(api, method, path):
    status, answer = call(api, method, f"/queues/nobody/{path}", '{"rate": null}')
    assert (status, answer["code"]) == (404, "queue_not_found")
    assert api.DEPLOYMENT.table.read([("nobody#control", "!paused"), ("nobody#control", "!rate")]).rows == {}


def test_caller_of_a_control_is_logged(api, caplog):
    caplog.set_level("INFO")
    for act in (lambda: call(api, "POST", "/queues/emails/pause"), lambda: put(api, "50/s"), lambda: put(api, None)):
        act()
    call(api, "POST", "/queues/emails/resume")
    answer = [
        (line.levelname, line.message, line.queue, line.caller, line.paused, line.rate) for line in caplog.records
    ]
    assert answer == [
        ("INFO", "paused", "emails", CALLER, True, "no limit"),
        ("INFO", "rate set", "emails", CALLER, True, "50/s"),
        ("INFO", "rate set", "emails", CALLER, True, "no limit"),
        ("INFO", "resumed", "emails", CALLER, False, "no limit"),
    ]


@pytest.mark.parametrize("path", ["/queues", "/queues/emails", "/queues/emails/jobs", "/queues/emails/schedules"])
def test_requests_are_logged_at_debug_alone(api, caplog, path):
    name = api.logger.name
    for level, answer in (("INFO", []), ("DEBUG", [("request", "GET", path)])):
        caplog.set_level(level, logger=name)
        assert call(api, "GET", path)[0] == 200
        assert [(line.message, line.method, line.path) for line in caplog.records] == answer


def test_refusal_is_one_warning(api, caplog):
    caplog.set_level("INFO")
    put(api, "fast")
    assert [(line.levelname, line.message) for line in caplog.records] == [("WARNING", "refused")]
