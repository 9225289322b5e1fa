"""Pause and rate: set while workers run, over HTTP too."""

from datetime import timedelta

import pytest

from dueline.core.overview import Control, read_control
from dueline.core.ports import BatchRead
from dueline.core.queue_settings import Rate
from dueline.core.rows import paused_key, rate_key
from dueline.errors import Unavailable
from dueline.operations import control
from dueline.testing import MemoryTable
from tests.api_harness import call_api
from tests.builders import NOW
from tests.wire import Wire, done_in_part, meanwhile, on, straight

RATE = Rate(jobs=50)
LATER = NOW + timedelta(seconds=1)
CHANGES = {
    "pause": lambda table: control.pause("emails", table=table, now=NOW),
    "resume": lambda table: control.resume("emails", table=table, now=NOW),
    "set_rate": lambda table: control.set_rate("emails", RATE, table=table, now=NOW),
    "lift": lambda table: control.set_rate("emails", None, table=table, now=NOW),
}


@pytest.fixture
def wire():
    return Wire()


@pytest.fixture
def table(wire):
    return wire.to("table", MemoryTable())


def held(table):
    return read_control("emails", table=table)


def test_same_rate_again_keeps_its_slots(table):
    control.set_rate("emails", RATE, table=table, now=NOW)
    assert control.set_rate("emails", Rate.parse("50/s"), table=table, now=LATER) == held(table)
    assert held(table).rate_set == "2026-11-21T07:05:00.000Z"


def test_rate_set_during_a_pause_is_kept(table, wire):
    wire.around = on("table.write", meanwhile(lambda: control.set_rate("emails", RATE, table=table, now=NOW)), times=1)
    assert control.pause("emails", table=table, now=NOW).rate == RATE
    assert (held(table).paused, held(table).rate) == (True, RATE)


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_unwritten_control_is_unavailable(table, wire, change):
    before = control.set_rate("emails", Rate(jobs=1), table=table, now=NOW)
    wire.around = on("table.write", done_in_part)
    with pytest.raises(Unavailable, match="left unwritten"):
        change(table)
    wire.around = straight
    assert held(table) == before


@pytest.mark.parametrize("key", [paused_key("emails"), rate_key("emails")])
def test_unread_control_is_not_none(table, wire, key):
    wire.around = on("table.read", lambda call: BatchRead(unread=frozenset([key])))
    with pytest.raises(Unavailable, match="'emails' could not be read"):
        held(table)


@pytest.mark.parametrize("row", [{"rate": "fast", "at": "1"}, {"rate": "", "at": "1"}, {"rate": "5/s"}])
def test_unreadable_rate_is_not_no_limit(table, row):
    pk, sk = rate_key("emails")
    table.write([{"pk": pk, "sk": sk, **row}])
    with pytest.raises(Unavailable, match=r"'!rate'.* cannot be read"):
        held(table)


def test_what_controls_a_queue_is_never_collected(table):
    for change in CHANGES.values():
        change(table)
    assert table.expired(now=NOW + timedelta(days=100_000)) == []


# Over HTTP


CALLER = "arn:aws:iam::123456789012:user/ann"


def call(api, method, path, body=None):
    return call_api(api, method, path, body, caller=CALLER)


def test_controls_are_answered_and_logged_with_their_caller(api, caplog):
    caplog.set_level("INFO")
    for method, path, body, answered in (
        ("POST", "pause", None, {"paused": True, "rate": None}),
        ("PUT", "rate", {"rate": "50/s"}, {"paused": True, "rate": "50/s"}),
        ("PUT", "rate", {"rate": None}, {"paused": True, "rate": None}),
        ("POST", "resume", None, {"paused": False, "rate": None}),
    ):
        assert call(api, method, f"/queues/emails/{path}", body) == (200, {"queue": "emails", **answered})
        now = held(api.DEPLOYMENT.table)
        assert (now.paused, now.rate) == (answered["paused"], RATE if answered["rate"] else None)
    lines = [(line.levelname, line.message, line.queue, line.caller, line.paused, line.rate) for line in caplog.records]
    assert lines == [
        ("INFO", "paused", "emails", CALLER, True, "no limit"),
        ("INFO", "rate set", "emails", CALLER, True, "50/s"),
        ("INFO", "rate set", "emails", CALLER, True, "no limit"),
        ("INFO", "resumed", "emails", CALLER, False, "no limit"),
    ]


ALLOWED = "it must be 0 to 100000 jobs and a unit, such as 50/s, 90/m or 200/h"
A_TEXT = "must be a text such as 50/s, 90/m or 200/h, or null for no limit"


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ('{"rate": ""}', f"rate is '': {ALLOWED}"),
        ('{"rate": "50"}', f"rate is '50': {ALLOWED}"),
        ('{"rate": "50/d"}', f"rate is '50/d': {ALLOWED}"),
        ('{"rate": "999999999999/s"}', f"rate is '999999999999/s': {ALLOWED}"),
        ('{"rate": "100001/s"}', "rate is 100001 jobs: it must be from 0 to 100000"),
        ('{"rate": 50}', f"rate is 50: {A_TEXT}"),
        ('{"rate": false}', f"rate is false: {A_TEXT}"),
        ("{}", "rate is missing"),
        ('{"rate": "5/s", "burst": 3}', "burst is no field: there are rate"),
        ("", "body is not JSON"),
        ("[]", "body is []"),
    ],
)
def test_wrong_rate_names_what_is_allowed(api, body, detail):
    status, answer = call(api, "PUT", "/queues/emails/rate", body)
    assert (status, answer["code"]) == (400, "invalid_job")
    assert detail in answer["detail"]
    assert held(api.DEPLOYMENT.table) == Control()


@pytest.mark.parametrize(("method", "path"), [("POST", "pause"), ("POST", "resume"), ("PUT", "rate")])
def test_unknown_queue_is_not_controlled(api, method, path):
    status, answer = call(api, method, f"/queues/nobody/{path}", '{"rate": null}')
    assert (status, answer["code"]) == (404, "queue_not_found")
    assert api.DEPLOYMENT.table.read([("nobody#control", "!paused"), ("nobody#control", "!rate")]).rows == {}
