from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.errors import JobNotFound, Unavailable
from dueline.lookup.outcome import OF_WORKERS, Outcome, note_outcome, outcome_row
from dueline.lookup.status import Status
from dueline.model import rows
from dueline.model.job import Partition, Route, State
from tests.builders import NOW, RETENTION, a_job, a_queue, an_id
from tests.system import System
from tests.wire import done_in_part, failing, on

AN_HOUR = 3600
NEVER = Partition(queue="emails", number=77)


def due_in(seconds, **overrides):
    return a_job(due=NOW + timedelta(seconds=seconds), **overrides)


def test_a_job_still_in_the_inbound_queue_is_accepted():
    system = System()
    system.breakers["emails"].trip()
    assert system.look_up(system.schedule(AN_HOUR).id) is State.ACCEPTED


def test_a_job_in_the_table_is_scheduled():
    system = System()
    job = system.schedule(AN_HOUR)
    system.ingest()
    assert system.look_up(job.id) is State.SCHEDULED


def test_of_a_run_of_a_schedule_its_row_tells_which_and_for_when():
    system = System(a_queue(track=True))
    system.put(job := due_in(AN_HOUR, schedule="digest", nominal=NOW))
    status = system.status_of(job.id)
    assert (status.schedule, status.nominal) == ("digest", NOW)
    system.table.write([{**rows.job_row(job), "schedule": "no such text"}])
    assert system.status_of(job.id).schedule is None


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


def test_a_direct_job_is_never_told_as_cancelled_even_where_an_id_of_the_other_route_is():
    system = tracking()
    direct = system.schedule(5)
    assert system.cancel(replace(direct.id, route=Route.TABLE)) is State.CANCELLED
    assert system.look_up(direct.id) is State.DISPATCHED
    system.cancel(direct.id)
    assert system.look_up(direct.id) is State.CANCEL_REQUESTED
    note(system, direct, an_outcome(State.SUCCEEDED))
    assert system.look_up(direct.id) is State.SUCCEEDED


def test_where_a_job_was_moved_to_is_told_of_no_id_of_the_other_route():
    system, job = System(), due_in(AN_HOUR)
    system.put(job)
    moved = system.reschedule(job.id, delay=2 * AN_HOUR)
    assert system.status_of(job.id) == Status(state=State.CANCELLED, moved_to=moved)
    assert system.status_of(replace(job.id, route=Route.DIRECT)) == Status(state=State.DISPATCHED)


def test_a_job_in_a_partition_that_never_was_is_not_found():
    for route in Route:
        with pytest.raises(JobNotFound, match="'emails' never had a partition 77: it has 0 alone"):
            System().look_up(an_id(partition=NEVER, route=route))


def test_a_job_in_a_partition_that_has_left_queues_yaml_is_told_as_before():
    system, job = System(), due_in(AN_HOUR, partition=NEVER)
    system.tick(NEVER)
    assert system.look_up(job.id) is State.ACCEPTED
    system.put(job)
    assert system.look_up(job.id) is State.SCHEDULED


def test_a_job_that_was_parked_for_want_of_its_partition_is_told_as_parked():
    system, job = System(), due_in(AN_HOUR, partition=NEVER)
    system.parking.park([job], reason="no tick reads it")
    assert system.look_up(job.id) is State.PARKED


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


# Of queues that track


def tracking(**settings):
    return System(a_queue(track=True, **settings))


def an_outcome(state=State.RUNNING, **overrides):
    ended = None if state is State.RUNNING else NOW + timedelta(seconds=2)
    return Outcome(**({"state": state, "attempts": 3, "started": NOW, "ended": ended, "error": "no"} | overrides))


def note(system, job, outcome, *, expires=None):
    return note_outcome(job.id, outcome, expires=expires or job.expires, table=system.table)


@pytest.mark.parametrize("route", Route)
@pytest.mark.parametrize("state", OF_WORKERS)
def test_what_workers_noted_of_a_job_is_told(route, state):
    system, job = tracking(), due_in(60, route=route)
    assert note(system, job, an_outcome(state))
    assert system.status_of(job.id) == Status(state=state, outcome=an_outcome(state))


def test_before_its_first_attempt_a_job_is_told_as_of_any_queue():
    system = tracking()
    system.breakers["emails"].trip()
    job = system.schedule(AN_HOUR)
    assert system.status_of(job.id) == Status(state=State.ACCEPTED)
    system.ingest()
    assert system.status_of(job.id) == Status(state=State.SCHEDULED)
    system.clock.sleep(AN_HOUR)
    system.tick()
    assert system.status_of(job.id) == Status(state=State.DISPATCHED)


def test_what_workers_noted_is_told_whatever_else_is_known():
    system, job = tracking(), due_in(60)
    system.put(job)
    system.tick()
    system.table.write([rows.handled_row(job, dispatched=True), rows.parked_row(job.id, reason="no", at=NOW)])
    assert system.look_up(job.id) is State.DISPATCHED
    note(system, job, an_outcome(State.SUCCEEDED))
    assert system.look_up(job.id) is State.SUCCEEDED


def test_a_cancel_that_came_too_late_hides_nothing_of_what_happened():
    system, job = tracking(), due_in(60)
    system.put(job)
    system.tick()
    note(system, job, an_outcome())
    assert system.cancel(job.id) is State.CANCEL_REQUESTED
    assert system.status_of(job.id) == Status(state=State.RUNNING, outcome=an_outcome())


def test_a_promised_cancel_is_told_whatever_is_noted():
    system, job = tracking(), due_in(AN_HOUR)
    note(system, job, an_outcome())
    assert system.cancel(job.id) is State.CANCELLED
    assert system.status_of(job.id) == Status(state=State.CANCELLED)


def test_of_a_job_that_was_rescheduled_nothing_but_its_successor_is_told():
    system = tracking()
    job = system.schedule(AN_HOUR)
    system.ingest()
    moved = system.reschedule(job.id, delay=2 * AN_HOUR)
    note(system, job, an_outcome())
    assert system.status_of(job.id) == Status(state=State.CANCELLED, moved_to=moved)


@pytest.mark.parametrize(("seconds", "is_told"), [(-1, True), (0, False), (1, False)])
def test_an_outcome_is_told_up_to_its_ttl_though_it_is_not_collected(seconds, is_told):
    system, job = tracking(), due_in(60)
    note(system, job, an_outcome(State.FAILED), expires=NOW + timedelta(seconds=100))
    system.clock.sleep(100 + seconds)
    assert system.look_up(job.id) is (State.FAILED if is_told else State.ACCEPTED)


@pytest.mark.parametrize("broken", [{"state": "asleep"}, {"attempts": "x"}, {"ttl": "never"}, {"started": None}])
def test_a_note_that_cannot_be_read_is_as_none(broken):
    system, job = tracking(), due_in(60)
    system.table.write([{**outcome_row(job.id, an_outcome(), expires=job.expires), **broken}])
    assert system.status_of(job.id) == Status(state=State.ACCEPTED)


def test_of_a_queue_that_does_not_track_no_note_is_told_nor_read():
    system, job = System(), due_in(60)
    note(system, job, an_outcome())
    assert system.status_of(job.id) == Status(state=State.ACCEPTED)


def test_a_look_up_of_a_queue_that_tracks_asks_once():
    system, asked = tracking(), []
    system.wire.around = lambda call: (asked.append((call.name, len(call.args[0]))), call.do(*call.args))[1]
    system.look_up(an_id())
    assert asked == [("table.read", 6)]
