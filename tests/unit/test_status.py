from datetime import timedelta

import pytest

from dueline.errors import JobNotFound, Unavailable
from dueline.job import Route, State
from tests.builders import NOW, RETENTION, a_job, an_id
from tests.system import System
from tests.wire import done_in_part, failing, on

AN_HOUR = 3600


def due_in(seconds, **overrides):
    return a_job(due=NOW + timedelta(seconds=seconds), **overrides)


def test_a_job_still_in_the_inbound_queue_is_accepted():
    system = System()
    assert system.look_up(system.schedule(AN_HOUR).id) is State.ACCEPTED


def test_a_job_in_the_table_is_scheduled():
    system = System()
    job = system.schedule(AN_HOUR)
    system.ingest()
    assert system.look_up(job.id) is State.SCHEDULED


def test_a_job_behind_the_cursor_is_dispatched():
    system = System()
    job = system.schedule(AN_HOUR)
    system.ingest()
    system.clock.sleep(AN_HOUR)
    system.tick()
    assert system.look_up(job.id) is State.DISPATCHED


def test_a_direct_job_is_dispatched_from_the_start():
    system = System()
    assert system.look_up(system.schedule(5).id) is State.DISPATCHED


def test_a_promised_cancel_is_told_as_such_even_when_its_time_has_passed():
    system, job = System(), due_in(AN_HOUR)
    system.put(job)
    system.cancel(job.id)
    assert system.look_up(job.id) is State.CANCELLED
    system.clock.sleep(AN_HOUR)
    system.tick()
    assert system.look_up(job.id) is State.CANCELLED


def test_a_cancel_that_came_too_late_is_told_as_requested():
    system, job = System(), due_in(60)
    system.put(job)
    system.tick()
    system.cancel(job.id)
    assert system.look_up(job.id) is State.CANCEL_REQUESTED


def test_a_direct_job_that_was_cancelled_is_told_as_requested():
    system, id = System(), an_id(route=Route.DIRECT)
    system.cancel(id)
    assert system.look_up(id) is State.CANCEL_REQUESTED


def test_a_parked_job_is_told_as_such_whether_or_not_a_cancel_came_too_late():
    system, job = System(), due_in(60)
    system.put(job)
    system.queues["emails"].gone = True
    system.tick()
    assert system.look_up(job.id) is State.PARKED
    system.cancel(job.id)
    assert system.look_up(job.id) is State.PARKED


@pytest.mark.parametrize("route", Route)
def test_nothing_is_known_of_a_job_past_its_retention(route):
    system, id = System(), an_id(due=NOW - RETENTION, route=route)
    with pytest.raises(JobNotFound, match="past its retention"):
        system.look_up(id)


def test_a_row_that_the_ttl_has_not_collected_yet_is_past_its_retention_all_the_same():
    system, job = System(), due_in(-60, expires=NOW)
    system.put(job)
    system.clock.sleep(RETENTION.total_seconds())
    with pytest.raises(JobNotFound):
        system.look_up(job.id)


@pytest.mark.parametrize("react", [done_in_part, failing(Unavailable("no"))])
def test_a_look_up_that_was_answered_in_part_tells_nothing(react):
    system = System()
    system.wire.around = on("table.read", react)
    with pytest.raises(Unavailable):
        system.look_up(an_id())


def test_a_look_up_asks_once():
    system = System()
    calls = []
    system.wire.around = lambda call: (calls.append(call.name), call.do(*call.args))[1]
    system.look_up(an_id())
    assert calls == ["table.read"]
