from datetime import timedelta

import pytest

from dueline.errors import Throttled, Unavailable
from dueline.job import Route, State
from tests.builders import NOW, a_job, an_id
from tests.system import System
from tests.wire import done_in_part, failing, losing_the_answer, meanwhile, on


def due_in(seconds, **overrides):
    return an_id(due=NOW + timedelta(seconds=seconds), **overrides)


def test_a_job_that_waits_in_the_table_is_cancelled_for_good():
    system, job = System(), a_job()
    system.put(job)
    assert system.cancel(job.id) is State.CANCELLED
    system.clock.sleep(3600)
    system.tick()
    assert system.arrived() == []


def test_a_cancel_that_overtakes_ingest_holds():
    system = System()
    job = system.schedule(3600)
    assert system.cancel(job.id) is State.CANCELLED
    system.ingest()
    system.clock.sleep(3600)
    system.tick()
    assert system.arrived() == []


def test_a_job_due_at_the_fence_is_beyond_a_promise_and_one_due_just_after_is_not():
    system = System()
    system.tick()
    assert system.cancel(due_in(240)) is State.CANCEL_REQUESTED
    assert system.cancel(due_in(240.001)) is State.CANCELLED


def test_a_direct_job_is_never_promised():
    assert System().cancel(due_in(60, route=Route.DIRECT)) is State.CANCEL_REQUESTED


def test_a_promise_is_repeated_even_after_the_fence_has_passed():
    system, id = System(), due_in(300)
    assert system.cancel(id) is State.CANCELLED
    system.clock.sleep(300)
    system.tick()
    assert [system.cancel(id) for _ in range(2)] == [State.CANCELLED] * 2


def test_a_request_is_never_turned_into_a_promise():
    system, id = System(), due_in(60)
    system.tick()
    assert [system.cancel(id) for _ in range(3)] == [State.CANCEL_REQUESTED] * 3


def test_the_fence_is_read_after_the_cancellation_is_written():
    system, id = System(), due_in(60)
    system.wire.around = on("table.add", meanwhile(system.tick), times=1)
    assert system.cancel(id) is State.CANCEL_REQUESTED


@pytest.mark.parametrize("name", ["table.add", "table.read", "table.mark_exact"])
@pytest.mark.parametrize("react", [failing(Throttled("slow down")), losing_the_answer])
def test_a_cancel_that_fails_promises_nothing_and_its_repeat_does(name, react):
    system, id = System(), due_in(3600)
    system.wire.around = on(name, react, times=1)
    with pytest.raises((Throttled, Unavailable)):
        system.cancel(id)
    assert system.cancel(id) is State.CANCELLED


def test_a_fence_that_was_left_unread_promises_nothing():
    system, id = System(), due_in(3600)
    system.wire.around = on("table.read", done_in_part)
    with pytest.raises(Unavailable, match="fence of emails#0"):
        system.cancel(id)


def test_a_cancel_asks_three_calls_and_its_repeat_one():
    system, id = System(), due_in(3600)
    calls = []
    system.wire.around = lambda call: (calls.append(call.name), call.do(*call.args))[1]
    system.cancel(id)
    system.cancel(id)
    assert calls == ["table.add", "table.read", "table.mark_exact", "table.add"]
