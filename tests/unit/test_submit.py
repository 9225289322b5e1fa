import json
import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dueline.core.job import MAX_OFFLOADED_BYTES, JobId, Route, State, StoredJob
from dueline.core.request import FURTHEST, Request, json_text
from dueline.errors import InvalidJob, NotYet, PayloadTooLarge, QueueNotFound, Throttled, Unavailable
from tests.builders import NOW, RETENTION, a_queue, an_id
from tests.system import System
from tests.wire import done_in_part, failing, meanwhile, on, refusing_for_good, straight

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=10,
)
AN_HOUR = 3600


def at(when):
    return Request(payload={}, at=when)


def after(delay):
    return Request(payload={}, delay=delay)


def delays(queue):
    return [delivery.message.delay for delivery in queue.deliveries]


# When a request is due


@pytest.mark.parametrize("past", [NOW, NOW - timedelta(days=9000), datetime(1970, 1, 1, tzinfo=UTC)])
def test_past_at_is_now(past):
    assert at(past).due(now=NOW) == NOW


def test_due_job_waits_for_no_second():
    now = NOW + timedelta(microseconds=1)
    assert Request(payload={}).due(now=now) <= now
    assert at(now).due(now=NOW + timedelta(microseconds=900)) <= NOW + timedelta(milliseconds=1)


def test_future_at_is_due_then_whatever_its_zone():
    moscow = timezone(timedelta(hours=3))
    assert at(datetime(2026, 12, 1, 12, tzinfo=moscow)).due(now=NOW) == datetime(2026, 12, 1, 9, tzinfo=UTC)


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
        datetime.fromisoformat("0001-01-01T00:00:00Z"),
        datetime.max.replace(tzinfo=UTC),
    ],
)
def test_at_too_far_away_is_refused(when):
    with pytest.raises(InvalidJob, match=r"^at is .*: it must be from 1970-01-01T00:00:00.000Z to 2036-11-21"):
        at(when).due(now=NOW)


# A payload as text


@given(JSON)
def test_payload_is_json_that_sqs_takes(payload):
    text = json_text(payload)
    assert json.loads(text) == payload
    assert all(" " <= character <= "~" for character in text)


@pytest.mark.parametrize(
    ("payload", "text"), [("é\x00\x7f\ud800", r'"\u00e9\u0000\u007f\ud800"'), ({"a": [1, None]}, '{"a":[1,null]}')]
)
def test_payload_is_compact_and_escaped(payload, text):
    assert json_text(payload) == text


def an_endless_list():
    endless = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    "payload", [math.nan, math.inf, {1, 2}, b"x", {(1, 2): 3}, an_endless_list(), pytest.param(10**5000, id="huge")]
)
def test_payload_that_is_no_json_is_refused(payload):
    with pytest.raises(InvalidJob, match="payload is not JSON"):
        json_text(payload)


# Submitting


def test_job_within_the_horizon_is_direct(system):
    job = system.schedule(600)
    assert (job.id.route, system.arrived(), system.inbound.deliveries) == (Route.DIRECT, [job.id], [])


def test_unwritten_job_goes_inbound(system):
    system.wire.around = on("table.add", failing(Throttled("slow down")))
    (result,) = system.submit_each(Request(payload={}, delay=AN_HOUR))
    (delivery,) = system.inbound.deliveries
    assert (delivery.message.job().id, result.state) == (result.job.id, State.ACCEPTED)
    assert (delivery.message.delay, delivery.message.group) == (0, "emails")


def test_job_expires_after_the_retention():
    job = System(a_queue(retention=RETENTION)).schedule(AN_HOUR)
    assert job.expires == job.id.due + RETENTION


def test_given_delay_reaches_sqs_unchanged(system):
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(5)))
    system.submit(*[after(60)] * 20)
    assert delays(system.queues["emails"]) == [60] * 20


def test_delay_is_measured_for_each_batch(system):
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(5)))
    system.submit(*[at(NOW + timedelta(seconds=60))] * 20)
    assert delays(system.queues["emails"]) == [60] * 10 + [55] * 10


def test_precise_queues_delay_rounds_down():
    system = System(a_queue(precise=True))
    system.submit(at(NOW + timedelta(seconds=30.9)), after(30.9), after(30.1), after(0.1))
    assert delays(system.queues["emails"]) == [30, 30, 29, 0]


def test_jobs_of_one_call_share_a_partition():
    system = System(a_queue(partitions=4))
    jobs = system.submit(*[after(AN_HOUR)] * 500)
    shared = [{job.id.partition.number for job in jobs[start : start + 100]} for start in range(0, 500, 100)]
    assert all(len(some) == 1 for some in shared)
    assert {number for some in shared for number in some} == {0, 1, 2, 3}


def test_each_request_has_its_own_error(system):
    earlier = InvalidJob("refused before")
    answers = system.submit(
        after(5),
        at(datetime.fromisoformat("2027-01-01")),
        Request(payload="x" * MAX_OFFLOADED_BYTES),
        earlier,
        after(AN_HOUR),
    )
    assert [type(each) for each in answers] == [StoredJob, InvalidJob, PayloadTooLarge, InvalidJob, StoredJob]
    assert (answers[3], system.arrived()) == (earlier, [answers[0].id])


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


def test_message_refused_for_now_is_unavailable(system):
    system.breakers["emails"].trip()
    system.wire.around = on("inbound.send", done_in_part)
    assert [type(each) for each in system.submit(*[after(AN_HOUR)] * 2)] == [Unavailable, StoredJob]


def test_message_refused_for_good_is_invalid(system):
    system.wire.around = on("emails.send", refusing_for_good)
    (refused,) = system.submit(after(1))
    assert isinstance(refused, InvalidJob)


@pytest.mark.parametrize("seconds", [100, 3600])
def test_retried_job_stays_the_same_job(system, seconds):
    (first,) = system.submit(Request(payload=1, delay=seconds))
    system.clock.sleep(40)
    (second,) = system.submit(Request(payload=1, delay=seconds, id=str(first.id)))
    assert second == first
    sent = system.queues["emails"].deliveries
    assert {each.message.job() for each in sent} == ({first} if seconds == 100 else set())
    assert [each.message.delay for each in sent] == ([100, 60] if seconds == 100 else [])
    assert system.in_the_table() == ([] if seconds == 100 else [first.id])


def test_job_refused_after_its_row_is_sent_when_repeated():
    """Its row is behind the cursor: no tick sends it. Its caller was refused, and schedules it under the same id."""
    system, id = System(), an_id(due=NOW + timedelta(seconds=100))
    system.tick()
    is_away = failing(Unavailable("SQS is away"))
    system.wire.around = lambda call: is_away(call) if call.name.endswith(".send") else straight(call)
    (refused,) = system.submit(Request(payload={}, id=str(id)))
    assert (type(refused), refused.job_id) == (Unavailable, str(id))
    assert system.in_the_table() == [id]
    system.wire.around = straight
    (accepted,) = system.submit(Request(payload={}, id=str(id)))
    system.ingest()
    assert (accepted.id, system.arrived()) == (id, [id])
