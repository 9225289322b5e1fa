from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.core import instant, rows
from dueline.core.job import MAX_RETENTION, JobId, Route, State
from dueline.core.move import MOST_HOPS
from dueline.core.rows import MOVE_PENDING, MOVE_TARGET
from dueline.core.trace import TraceContext
from dueline.errors import (
    AlreadyFinished,
    InvalidJob,
    JobNotFound,
    QueueNotFound,
    RunOfSchedule,
    Throttled,
    Unavailable,
)
from tests.builders import EMAILS, NOW, RETENTION, a_job, a_queue
from tests.system import System
from tests.wire import done_in_part, failing, losing_the_answer, on, refusing_for_good, straight

AN_HOUR = 3600
WANTED = NOW + timedelta(hours=2)
LEFT = "has left for its queue"
# At or below the fence of a tick that runs now.
SOON = NOW + timedelta(seconds=200)


def at(seconds):
    return NOW + timedelta(seconds=seconds)


@pytest.fixture
def job(system):
    """A job that waits in the table."""
    system.put(job := a_job())
    return job


# A job that is moved


@pytest.mark.parametrize("target", [at(240.001), WANTED])
def test_late_move_costs_three_calls(system, job, target):
    system.tick()
    calls = []
    system.wire.around = lambda call: (calls.append(call), straight(call))[1]
    moved = system.reschedule(job.id, at=target)
    assert [call.name for call in calls] == ["table.read", "table.write", "table.move"]
    assert [rows.prefix_and_kind(row["sk"])[1] for row in calls[1].args[0]] == [MOVE_PENDING, MOVE_TARGET]
    assert calls[2].kwargs["fence_below"] == instant.text(min(target, job.id.due))
    assert system.reschedule(job.id, at=target) == moved
    system.pass_time(hours=3)
    assert (system.inbound.deliveries, system.arrived()) == ([], [moved])
    # A read that does not show the move yet looks as if the job had left.
    early = system.table.read([rows.state_key(EMAILS)])
    system.wire.around = on("table.read", lambda _: early, times=1)
    assert system.reschedule(job.id, at=target) == moved


def test_move_to_its_own_time_changes_nothing(system, job):
    calls = system.calls()
    assert (system.reschedule(job.id, at=job.id.due), calls) == (job.id, ["table.read"])


@pytest.mark.parametrize("to", [{"delay": AN_HOUR / 2}, {"at": WANTED}])
def test_repeated_call_gets_its_first_move(system, job, to):
    first = system.reschedule(job.id, call="k", **to)
    system.clock.sleep(7)
    assert system.reschedule(job.id, call="k", **to) == first
    last = system.reschedule(job.id, delay=AN_HOUR, call="another")
    assert last.due == at(AN_HOUR + 7)
    assert system.reschedule(job.id, call="k", **to) == last
    assert system.arrived_within(hours=3) == [last]


# The request


@pytest.mark.parametrize(
    ("to", "answer"),
    [
        ({}, "at and delay are both missing"),
        ({"at": NOW, "delay": 1}, "at and delay are both given"),
        ({"delay": -1}, "delay is -1: it must be from 0 to"),
        ({"at": NOW.replace(tzinfo=None)}, "which has no time zone"),
        ({"at": NOW + timedelta(days=5000)}, "it must be from"),
        ({"delay": 1, "call": ""}, "idempotency_key is ''"),
    ],
)
def test_bad_request_is_refused_with_what_is_allowed(system, job, to, answer):
    calls = system.calls()
    with pytest.raises(InvalidJob, match=answer):
        system.reschedule(job.id, **to)
    assert calls == []


# A job that can be moved no more


@pytest.mark.parametrize("target", [SOON, WANTED], ids=["soon", "later"])
def test_run_of_a_schedule_is_not_moved(system, target):
    system.put(job := a_job(schedule="digest", scheduled_for=at(AN_HOUR)))
    system.tick()
    calls = system.calls()
    with pytest.raises(RunOfSchedule, match=r"is a run of schedule emails/digest: .* cancel it"):
        system.reschedule(job.id, at=target)
    assert set(calls) == {"table.read"}
    assert system.cancel(job.id) is State.CANCELLED


@pytest.mark.parametrize("target", [SOON, WANTED], ids=["soon", "later"])
def test_moved_job_keeps_its_kind_key_and_trace(system, target):
    trace = TraceContext(parent="00-0d6a387e6d3b4b8e9f513d7c1f0a2b4c-3d7c1f0a2b4c0d6a-01", state="vendor=7")
    system.put(job := a_job(due=at(AN_HOUR), kind="welcome", key="ann", trace=trace))
    moved = system.reschedule(job.id, at=target)
    system.pass_time(hours=3)
    (sent,) = (delivery.message.job() for delivery in system.queues["emails"].deliveries)
    assert sent == replace(job, id=moved, expires=target + RETENTION)


def pass_by_the_fence(system, job):
    system.table.acquire_lease(EMAILS, owner="me", now="", lease="", fence=instant.text(job.id.due))


@pytest.mark.parametrize(
    ("end", "reason", "comes"),
    [
        (lambda system, job: system.parking.park([job], reason="gone"), LEFT, True),
        (lambda system, job: system.table.write([rows.handled_row(job, dispatched=True)]), LEFT, False),
        (pass_by_the_fence, LEFT, True),
        (lambda system, job: system.cancel(system.reschedule(job.id, at=WANTED)), "was cancelled", False),
    ],
    ids=["parked", "noted as sent", "passed by the fence", "moved and cancelled"],
)
def test_job_that_ended_is_not_moved(system, job, end, reason, comes):
    end(system, job)
    for target in (WANTED, job.id.due):
        with pytest.raises(AlreadyFinished, match=reason):
            system.reschedule(job.id, at=target)
    assert system.arrived_within(hours=3) == ([job.id] if comes else [])


def test_job_moved_too_often_is_unavailable(system, job):
    ids = [job.id]
    for hop in range(MOST_HOPS + 1):
        ids.append(system.reschedule(ids[-1], at=at(AN_HOUR + 1 + hop)))
    with pytest.raises(Unavailable, match=f"{job.id} was moved over 32 times"):
        system.reschedule(job.id, at=WANTED)
    assert system.reschedule(ids[1], at=WANTED).due == WANTED


def test_direct_job_has_left_for_its_queue(system):
    direct = system.schedule(60).id
    for _ in ("sent", "cancelled"):
        calls = system.calls()
        with pytest.raises(AlreadyFinished, match=LEFT):
            system.reschedule(direct, at=WANTED)
        assert calls == ["table.read"]
        system.cancel(replace(direct, route=Route.TABLE))
        system.cancel(direct)


@pytest.mark.parametrize("is_there", [True, False])
def test_expired_job_is_not_found(system, is_there):
    job = a_job(due=NOW - RETENTION)
    if is_there:
        system.put(job)
    with pytest.raises(JobNotFound, match="past its retention"):
        system.reschedule(job.id, at=WANTED)


# Calls that fail


@pytest.mark.parametrize("react", [failing(Throttled("slow down")), failing(Unavailable("no")), losing_the_answer])
@pytest.mark.parametrize(
    ("name", "target"),
    [(name, target) for name in ("table.write", "table.move") for target in (SOON, WANTED)] + [("inbound.send", SOON)],
)
def test_fault_names_the_new_job(system, job, name, target, react):
    system.tick()
    system.wire.around = on(name, react)
    with pytest.raises((Throttled, Unavailable)) as error:
        system.reschedule(job.id, at=target)
    system.wire.around = straight
    system.pass_time(hours=3)
    new = JobId.parse(error.value.job_id)
    assert new.due == target
    is_moved = system.inbound.deliveries or (name, react) == ("table.move", losing_the_answer)
    assert system.arrived() == [new if is_moved else job.id]


def test_repeat_to_the_past_gets_the_first_id(system, job):
    moved = system.reschedule(job.id, at=NOW)
    system.clock.sleep(7)
    assert system.reschedule(job.id, at=NOW) == moved
    assert system.reschedule(job.id, at=NOW + timedelta(seconds=7)) != moved


@pytest.mark.parametrize(
    ("name", "target", "react", "error", "reason"),
    [
        ("inbound.send", SOON, done_in_part, Unavailable, None),
        ("inbound.send", SOON, refusing_for_good, InvalidJob, None),
        ("inbound.send", SOON, failing(QueueNotFound("gone")), Unavailable, None),
        ("table.write", WANTED, done_in_part, Unavailable, "that job .* is to be moved could not be written"),
    ],
)
def test_intent_that_is_nowhere_moves_nothing(system, job, name, target, react, error, reason):
    system.tick()
    system.wire.around = on(name, react)
    with pytest.raises(error, match=reason):
        system.reschedule(job.id, at=target)
    assert system.arrived_within(hours=3) == [job.id]


@pytest.mark.parametrize("name", ["table.move", "table.read"])
def test_late_refusal_never_denies_the_new_job(name):
    system = System(a_queue(retention=MAX_RETENTION))
    system.put(job := a_job(due=at(60), expires=at(60) + MAX_RETENTION))

    def stand_still(call):
        system.wire.around = straight
        system.tick()
        system.clock.sleep((MAX_RETENTION + timedelta(seconds=60)).total_seconds())
        return straight(call)

    system.wire.around = on(name, stand_still, times=1)
    with pytest.raises(Unavailable, match="is not known any more"):
        system.reschedule(job.id, at=WANTED)


@pytest.mark.parametrize("react", [failing(Throttled("slow down")), losing_the_answer, done_in_part])
def test_unread_rows_move_nothing(system, job, react):
    system.wire.around = on("table.read", react, times=1)
    with pytest.raises((Throttled, Unavailable)) as error:
        system.reschedule(job.id, at=WANTED)
    assert error.value.job_id is None
    assert system.inbound.deliveries == []
