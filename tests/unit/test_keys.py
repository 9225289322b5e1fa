"""What makes calls idempotent: keys, with what a caller gets of a repeat, and ids that callers make."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from dueline.core import instant, rows
from dueline.core.idempotency import checked_id
from dueline.core.job import Partition, Route, State, StoredJob
from dueline.core.request import FURTHEST, Request
from dueline.core.status import Status
from dueline.errors import IdReused, InvalidJob, KeyReused, NotYet, QueueNotFound, Throttled, Unavailable
from tests.api_harness import call_api
from tests.builders import NOW, RETENTION, a_job, a_queue, an_id, emails, id_due_in
from tests.system import System
from tests.wire import failing, meanwhile, on, straight

AN_HOUR = 3600
DIRECT, BY_THE_TABLE = 5, AN_HOUR


def keyed(delay=BY_THE_TABLE, *, key="order 17", payload=1, **more):
    return Request(payload=payload, delay=delay, call=key, **more)


def accepted(system, *requests):
    jobs = system.submit(*requests)
    assert all(isinstance(job, StoredJob) for job in jobs), jobs
    return jobs


def on_their_way(system):
    """Return the ids of all messages that were sent, repeats included, and of the jobs that have rows."""
    sent = [each.message.job().id for queue in (system.inbound, *system.queues.values()) for each in queue.deliveries]
    return sent + [id for queue in system.settings for id in system.in_the_table(queue)]


@pytest.mark.parametrize("other", [*({"payload": each} for each in (2, None, "1", {})), {"kind": "receipt"}])
def test_key_of_another_job_is_refused(system, other):
    (first,) = accepted(system, keyed())
    error = system.refused(keyed(**other))
    assert isinstance(error, KeyReused)
    assert "idempotency_key is 'order 17'" in str(error)
    assert str(first.id) in str(error)
    assert on_their_way(system) == [first.id]


def test_key_costs_two_writes(system):
    calls = system.calls()
    accepted(system, keyed())
    assert calls == ["table.claim", "table.add", "table.read", "table.mark_done"]
    calls.clear()
    accepted(system, keyed())
    assert calls == ["table.claim"]


def test_key_twice_in_a_call_is_a_repeat(system):
    first, second = accepted(system, keyed(tenant="a"), keyed(tenant="b", delay=DIRECT))
    assert first == second
    assert on_their_way(system) == [first.id]
    assert isinstance(system.submit(keyed(key="another"), keyed(key="another", payload=2))[1], KeyReused)


# What fails in between


def test_resent_job_keeps_its_due_time(system):
    system.wire.around = on("emails.send", failing(Unavailable("no")), times=1)
    system.refused(keyed(100))
    system.clock.sleep(40)
    (job,) = accepted(system, keyed(500))
    assert (job.id.due, job.expires) == (NOW + timedelta(seconds=100), NOW + timedelta(seconds=100) + RETENTION)
    assert system.delays() == [60]


@pytest.mark.parametrize("ahead", [1000, 100_000])
def test_too_early_repeat_fails_alone(ahead):
    """The first call's clock may be ahead, and a producer may write any key's row."""
    system, first = System(), a_job(due=NOW + timedelta(seconds=ahead), route=Route.DIRECT)
    system.table.write([rows.idempotency_row(first, "order 17", payload_hash=hashlib.sha256(b"1").hexdigest())])
    error, other = system.submit(keyed(DIRECT), keyed(DIRECT, key="order 18"))
    assert (type(error), error.job_id) == (NotYet, str(first.id))
    assert on_their_way(system) == [other.id]
    system.clock.sleep(ahead - 900)
    (repeat,) = accepted(system, keyed(DIRECT))
    assert on_their_way(system) == [other.id, repeat.id] == [other.id, first.id]


def test_refused_request_frees_its_key():
    system = System(a_queue(priorities=2))
    system.stores.level("emails", 2).gone = True
    assert isinstance(system.refused(keyed(DIRECT, priority=2)), QueueNotFound)
    (job,) = accepted(system, keyed(DIRECT, payload=2))
    assert on_their_way(system) == [job.id]


@pytest.mark.parametrize("terms", [{"tenant": "b", "priority": 2}, {"priority": 2}, {}])
@pytest.mark.parametrize("delay", [DIRECT, BY_THE_TABLE])
def test_repeat_after_a_crash_is_the_first_job(delay, terms):
    system = System(a_queue(priorities=2))
    system.wire.around = on("table.mark_done", failing(Unavailable("lost")))
    (first,) = accepted(system, keyed(delay, tenant="a"))
    system.wire.around = straight
    (repeat,) = accepted(system, keyed(delay, **terms))
    assert (repeat.id, repeat.tenant, repeat.priority) == (first.id, "a", 1)
    assert set(on_their_way(system)) == {first.id}
    assert system.arrived(priority=2) == []


@pytest.mark.parametrize("forged", [{"priority": "x"}, {"priority": 0}, {"tenant": ""}, {"priority": [1]}])
def test_key_row_with_forged_terms_is_refused(system, forged):
    accepted(system, keyed())
    key = rows.idempotency_key("emails", "order 17")
    system.table.write([{**system.table.read([key]).rows[key], **forged}])
    assert isinstance(system.refused(keyed()), KeyReused)


def test_no_claim_starts_out_of_time(system):
    system.wire.around = failing(AssertionError("nothing is to be requested"))
    submit = system.submission("emails", direct_horizon=system.direct_horizon, new_uid=lambda: "x")
    (error,) = submit.run([keyed()], until=system.clock.monotonic())
    assert isinstance(error, Unavailable)


@pytest.mark.parametrize("done", [False, True])
def test_forged_key_reaches_no_other_queue(done):
    system = System(a_queue(), a_queue(name="invoices"))
    (job,) = accepted(system, keyed())
    forged = replace(job.id, partition=Partition(queue="invoices", number=0))
    key = rows.idempotency_key("emails", "order 17")
    system.table.write([{**system.table.read([key]).rows[key], "id": str(forged), "done": done}])
    error = system.refused(keyed())
    assert isinstance(error, KeyReused)
    assert "which is of another queue" in str(error)
    assert forged not in on_their_way(system)


# What a caller gets of repeats


SCHEDULED = Status(state=State.SCHEDULED)


def keyed_repeated(count, *, delay=AN_HOUR):
    return [Request(payload=number, delay=delay, call=f"order {number}") for number in range(count)]


def repeats_of(system, *requests):
    system.submit(*requests)
    repeats = system.submit_each(*requests)
    assert all(each.is_repeat for each in repeats)
    return repeats


@pytest.mark.parametrize("react", [failing(Throttled("slow down")), failing(Unavailable("no"))])
def test_unreadable_repeat_fails_alone(system, react):
    (repeat,) = repeats_of(system, *keyed_repeated(1))
    fresh, last = system.submit_each(*[Request(payload=each, delay=AN_HOUR) for each in range(2)])
    system.wire.around = on("table.read", react)
    status, error, also = system.submitted_statuses([fresh, repeat, last])
    assert [status, also] == [(each.job.id, SCHEDULED) for each in (fresh, last)]
    assert (isinstance(error, (Throttled, Unavailable)), error.job_id) == (True, str(repeat.job.id))


@pytest.mark.parametrize("track", [True, False])
def test_500_repeats_are_looked_up_in_32_requests(track):
    system = System(a_queue(track=track, partitions=400))
    repeats = repeats_of(system, *keyed_repeated(500))
    calls = []
    system.wire.around = on("table.read", lambda call: (calls.append(call), call.do(*call.args))[1])
    assert system.submitted_statuses(repeats) == [(each.job.id, SCHEDULED) for each in repeats]
    assert len(calls) == 32


def test_no_look_up_begins_when_time_is_over(system):
    repeats = repeats_of(system, *keyed_repeated(20))
    system.wire.around = on("table.read", meanwhile(lambda: system.clock.sleep(1)))
    statuses = system.submitted_statuses(repeats, until=system.clock.monotonic() + 1)
    assert statuses[:16] == [(each.job.id, SCHEDULED) for each in repeats[:16]]
    assert ["out of time" in str(error) for error in statuses[16:]] == [True] * 4
    assert [error.job_id for error in statuses[16:]] == [str(each.job.id) for each in repeats[16:]]


@pytest.mark.parametrize(("delay", "state"), [(5, State.DISPATCHED), (AN_HOUR, State.ACCEPTED)])
def test_repeat_without_rows_shows_its_route(delay, state):
    """Its partition may be newer than what a client knows of the queue, or the retention lower than it was."""
    system = System(a_queue(partitions=50))
    system.breakers["emails"].trip()
    first = system.submit(*keyed_repeated(5, delay=delay))
    system.settings["emails"] = a_queue(partitions=1, retention=RETENTION / 1000)
    repeats = system.submit_each(*keyed_repeated(5, delay=delay))
    system.clock.sleep(AN_HOUR + RETENTION.total_seconds() / 1000)
    assert any(each.job.id.partition.number for each in repeats)
    assert system.submitted_statuses(repeats) == [(each.id, Status(state=state)) for each in first]
    assert {each.id.route for each in first} == {Route.DIRECT if delay == 5 else Route.TABLE}


def test_released_key_sends_nothing():
    system, key = System(), rows.idempotency_key("emails", "order 17")
    system.wire.around = on("emails.send", failing(Unavailable("no")), times=1)
    id = system.refused(keyed(DIRECT)).job_id
    system.wire.around = on("table.share", meanwhile(lambda: system.stores.table.release(key, id=id, ttl=1)), times=1)
    assert isinstance(system.refused(keyed(DIRECT)), Unavailable)
    assert on_their_way(system) == []


# Ids that callers make


MS = timedelta(milliseconds=1)
QUEUE = a_queue(partitions=2)


@pytest.mark.parametrize(
    "id",
    [
        id_due_in(3600, partition=emails(1)),
        id_due_in(1),
        id_due_in(-1),
        id_due_in(900, route=Route.DIRECT),
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
