import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core.job import JobId, State, StoredJob
from dueline.core.request import FURTHEST, IfExists, Request, json_text
from dueline.errors import InvalidJob, NotYet, QueueNotFound, Throttled, Unavailable
from tests.builders import NOW, a_queue
from tests.system import System
from tests.wire import done_in_part, failing, meanwhile, on, refusing_for_good

AN_HOUR = 3600


def at(when):
    return Request(payload={}, at=when)


def after(delay):
    return Request(payload={}, delay=delay)


# When a request is due


@pytest.mark.parametrize(
    ("when", "due"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), NOW),
        (datetime(2026, 12, 1, 12, tzinfo=timezone(timedelta(hours=3))), datetime(2026, 12, 1, 9, tzinfo=UTC)),
    ],
)
def test_at_is_when_a_job_is_due_unless_that_is_past(when, due):
    assert at(when).due(now=NOW) == due


def test_due_job_waits_for_no_second():
    now = NOW + timedelta(microseconds=1)
    assert Request(payload={}).due(now=now) <= now
    assert at(now).due(now=NOW + timedelta(microseconds=900)) <= NOW + timedelta(milliseconds=1)


@given(st.timedeltas(timedelta(0), FURTHEST))
def test_due_time_is_never_too_early(left):
    assert NOW + left <= at(NOW + left).due(now=NOW) < NOW + left + timedelta(milliseconds=1)
    now = NOW + timedelta(microseconds=900)
    if left:
        assert now + left <= after(left.total_seconds()).due(now=now) + timedelta(microseconds=1)


@pytest.mark.parametrize(
    "delay", [math.nan, math.inf, -math.inf, -0.001, -1, FURTHEST.total_seconds() + 1, pytest.param(10**400, id="huge")]
)
def test_delay_that_is_no_time_ahead_is_refused(delay):
    with pytest.raises(InvalidJob, match=r"^delay is .*: it must be from 0 to 315619200 seconds"):
        after(delay).due(now=NOW)


@pytest.mark.parametrize(
    "when",
    [
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        NOW + FURTHEST + timedelta(milliseconds=1),
        datetime.fromisoformat("0001-01-01T00:00:00+23:59"),
        datetime.fromisoformat("9999-12-31T23:59:59-12:00"),
        datetime.max.replace(tzinfo=UTC),
    ],
)
def test_at_too_far_away_is_refused(when):
    with pytest.raises(InvalidJob, match=r"^at is .*: it must be from 1970-01-01T00:00:00.000Z to 2036-11-21"):
        at(when).due(now=NOW)


# A payload as text


@pytest.mark.parametrize(
    ("payload", "text"), [("é\x00\x7f\ud800", r'"\u00e9\u0000\u007f\ud800"'), ({"a": [1, None]}, '{"a":[1,null]}')]
)
def test_payload_is_compact_and_escaped(payload, text):
    assert json_text(payload) == text


ENDLESS = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    "payload", [math.nan, math.inf, {1, 2}, b"x", {(1, 2): 3}, ENDLESS, pytest.param(10**5000, id="huge")]
)
def test_payload_that_is_no_json_is_refused(payload):
    with pytest.raises(InvalidJob, match="payload is not JSON"):
        json_text(payload)


# Submitting


def test_unwritten_job_goes_inbound(system):
    system.wire.around = on("table.add", failing(Throttled("slow down")))
    (result,) = system.submit_each(Request(payload={}, delay=AN_HOUR))
    (delivery,) = system.inbound.deliveries
    assert (delivery.message.job().id, result.state) == (result.job.id, State.ACCEPTED)
    assert (delivery.message.delay, delivery.message.group) == (0, "emails")
    assert system.breakers["emails"].is_open


@pytest.mark.parametrize(("request_", "second"), [(after(60), 60), (at(NOW + timedelta(seconds=60)), 55)])
def test_delay_that_is_not_given_is_measured_for_each_batch(system, request_, second):
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(5)))
    system.submit(*[request_] * 20)
    assert system.delays() == [60] * 10 + [second] * 10


def test_precise_queues_delay_rounds_down():
    system = System(a_queue(precise=True))
    system.submit(at(NOW + timedelta(seconds=30.9)), after(30.9), after(30.1), after(0.1))
    assert system.delays() == [30, 30, 29, 0]


def test_jobs_of_one_call_share_a_partition():
    system = System(a_queue(partitions=4))
    jobs = system.submit(*[after(AN_HOUR)] * 500)
    shared = [{job.id.partition.number for job in jobs[start : start + 100]} for start in range(0, 500, 100)]
    assert all(len(some) == 1 for some in shared)
    assert {number for some in shared for number in some} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Throttled("slow down"), Throttled),
        (Unavailable("lost"), Unavailable),
        (QueueNotFound("the inbound queue, of all"), Unavailable),
    ],
)
def test_failed_batch_names_its_own_jobs_alone(system, fault, kind):
    system.breakers["emails"].trip()
    system.wire.around = on("inbound.send", failing(fault), times=1)
    answers = system.submit(*[after(AN_HOUR)] * 11, after(5))
    assert [type(answer) for answer in answers[:10]] == [kind] * 10
    assert len({JobId.parse(answer.job_id) for answer in answers[:10]}) == 10
    assert all(isinstance(answer, StoredJob) for answer in answers[10:])


def test_unsent_job_is_not_yet(system):
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(20)))
    answers = system.submit(*[after(1)] * 11)
    assert [type(answer) for answer in answers] == [StoredJob] * 10 + [NotYet]
    assert len(system.arrived()) == 10


@pytest.mark.parametrize(("react", "error"), [(done_in_part, Unavailable), (refusing_for_good, InvalidJob)])
@pytest.mark.parametrize(("name", "delay"), [("emails.send", 1), ("inbound.send", AN_HOUR)])
def test_refused_message_fails_alone(system, name, delay, react, error):
    system.breakers["emails"].trip()
    system.wire.around = on(name, react)
    refused, accepted = system.submit(*[after(delay)] * 2)
    assert (type(refused), type(accepted)) == (error, StoredJob)
    assert JobId.parse(refused.job_id) != accepted.id


# Fields of a request


NO_TENANTS, NO_CALLS = ["", "x" * 129, "a b", "naïve", "a\n"], ["", "x" * 256, "naïve", "a\nb", "\x7f"]
REPLACING = {"key": "k", "if_exists": IfExists.REPLACE}
OF_EMAILS = "it must be from 1 to 3, the priorities of queue 'emails'"


@pytest.mark.parametrize(
    ("wrong", "reasons"),
    [
        *(({"priority": n}, [f"priority is {str(n)[:100]}: {OF_EMAILS}"]) for n in (0, -1, 4, 10**200)),
        *(({"tenant": t}, [f"tenant is {t!r}", "1 to 128 letters, digits and punctuation"]) for t in NO_TENANTS),
        *(({"call": c}, [f"idempotency_key is {c!r}"[:90], "1 to 255 printable ASCII characters"]) for c in NO_CALLS),
        *(({"key": k}, [f"key is {k!r}"[:90], "1 to 255 printable ASCII characters"]) for k in NO_CALLS),
        *(({**REPLACING, **time}, ["give the call an idempotency key, or give at"]) for time in ({}, {"delay": 60})),
        ({"if_exists": IfExists.FAIL}, ["if_exists is 'fail', and there is no key"]),
        ({"kind": "Welcome"}, ["kind is 'Welcome': it must have 1 to 64 of"]),
    ],
)
def test_bad_field_is_refused_at_once(wrong, reasons):
    system = System(a_queue(priorities=3))
    system.wire.around = failing(AssertionError("nothing is to be requested"))
    error = system.refused(Request(payload={}, **wrong), InvalidJob)
    assert all(reason in str(error) for reason in reasons)


def test_one_priority_is_the_only_one():
    only_one = "priority is 2: it must be 1, the only priority of queue 'emails'"
    System(a_queue(priorities=1)).refused(Request(payload={}, priority=2), InvalidJob, only_one)


def test_job_of_a_missing_level_is_not_found():
    system = System(a_queue(priorities=3))
    system.stores.level("emails", 3).gone = True
    missing = "priority 3 of queue 'emails' has no SQS queue: it is not deployed yet"
    system.refused(Request(payload={}, priority=3), QueueNotFound, missing)


@pytest.mark.parametrize("delay", [0, AN_HOUR])
def test_job_is_grouped_by_tenant(system, delay):
    system.submit(Request(payload={}, delay=delay, tenant="acme"))
    system.clock.sleep(delay)
    system.tick()
    assert [each.message.group for each in system.queues["emails"].deliveries] == ["acme"]
