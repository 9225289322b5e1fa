"""Pause, resume and rate over HTTP: what is answered, and what is logged."""

import json

import pytest

from dueline.lookup.control import Control, read_control
from dueline.model.rate import Rate
from tests.builders import a_queue
from tests.called import call, imported

CALLER = "arn:aws:iam::123456789012:user/ann"


@pytest.fixture
def api(monkeypatch):
    with imported(monkeypatch, a_queue()) as api:
        yield api


def ask(api, method, path, body=None):
    return call(api, method, path, body=body, caller=CALLER)


def put(api, rate):
    return ask(api, "PUT", "/queues/emails/rate", json.dumps({"rate": rate}))


def held(api):
    return read_control("emails", table=api.RESOURCES.table)


def test_a_queue_is_paused_and_resumed_and_what_holds_is_answered(api):
    assert ask(api, "POST", "/queues/emails/pause") == (200, {"queue": "emails", "paused": True, "rate": None})
    assert held(api) == Control(paused=True)
    assert ask(api, "POST", "/queues/emails/resume") == (200, {"queue": "emails", "paused": False, "rate": None})
    assert held(api) == Control()


def test_a_rate_is_set_and_lifted_and_a_pause_stays(api):
    ask(api, "POST", "/queues/emails/pause")
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
def test_what_is_no_rate_is_told_by_its_field_its_value_and_what_is_allowed(api, body, detail):
    status, told = ask(api, "PUT", "/queues/emails/rate", body)
    assert (status, told["code"]) == (400, "invalid_job")
    assert detail in told["detail"]
    assert held(api) == Control()


@pytest.mark.parametrize(("method", "path"), [("POST", "pause"), ("POST", "resume"), ("PUT", "rate")])
def test_a_queue_that_is_not_there_is_not_controlled(api, method, path):
    status, told = ask(api, method, f"/queues/nobody/{path}", '{"rate": null}')
    assert (status, told["code"]) == (404, "queue_not_found")
    assert api.RESOURCES.table.read([("nobody#control", "!paused"), ("nobody#control", "!rate")]).rows == {}


def test_who_changed_what_is_logged(api, caplog):
    caplog.set_level("INFO")
    for act in (lambda: ask(api, "POST", "/queues/emails/pause"), lambda: put(api, "50/s"), lambda: put(api, None)):
        act()
    ask(api, "POST", "/queues/emails/resume")
    told = [(line.levelname, line.message, line.queue, line.caller, line.paused, line.rate) for line in caplog.records]
    assert told == [
        ("INFO", "paused", "emails", CALLER, True, "no limit"),
        ("INFO", "rate set", "emails", CALLER, True, "50/s"),
        ("INFO", "rate set", "emails", CALLER, True, "no limit"),
        ("INFO", "resumed", "emails", CALLER, False, "no limit"),
    ]


@pytest.mark.parametrize("path", ["/queues", "/queues/emails", "/queues/emails/jobs", "/queues/emails/schedules"])
def test_what_is_asked_for_is_logged_at_the_level_debug_alone(api, caplog, path):
    name = api.logger.name
    for level, told in (("INFO", []), ("DEBUG", [("asked", "GET", path)])):
        caplog.set_level(level, logger=name)
        assert ask(api, "GET", path)[0] == 200
        assert [(line.message, line.method, line.path) for line in caplog.records] == told


def test_what_is_refused_is_logged_as_a_refusal_alone(api, caplog):
    caplog.set_level("INFO")
    put(api, "fast")
    assert [(line.levelname, line.message) for line in caplog.records] == [("WARNING", "refused")]
