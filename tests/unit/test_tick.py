from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.errors import Throttled, Unavailable
from dueline.model import instant, rows
from dueline.model.job import Partition, State
from dueline.model.message import REASON
from dueline.ports import Page
from dueline.protocol.dispatch import OUT_OF_TIME, PAST_RETENTION
from dueline.protocol.entries import Entries
from tests.builders import EMAILS, NOW, a_job, a_queue, an_id
from tests.system import PERIODS, System
from tests.wire import failing, losing_the_answer, meanwhile, on, refusing, refusing_for_good, straight

EVERY_PAGE = pytest.mark.parametrize("page_rows", [1, 2, 3, 1000])


def due_in(seconds, **overrides):
    return a_job(due=NOW + timedelta(seconds=seconds), **overrides)


def jobs_due(*seconds):
    return [due_in(each) for each in seconds]


def ids(jobs):
    return [job.id for job in jobs]


def count(system, name):
    """Count the calls of a port by that name from here on."""
    calls = []
    system.wire.around = on(name, meanwhile(lambda: calls.append(name)))
    return calls


# What is handed over


@EVERY_PAGE
def test_jobs_due_within_the_lookahead_are_handed_over_earliest_first(page_rows):
    system, jobs = System(page_rows=page_rows), jobs_due(-60, 0, 1, 60, 239, 240)
    system.put(*reversed(jobs), due_in(240.001))
    done = system.tick()
    assert system.arrived() == ids(jobs)
    assert (done.held, done.finished, done.dispatched) == (True, True, 6)


@EVERY_PAGE
@pytest.mark.parametrize("cancelled", range(5))
def test_jobs_of_one_millisecond_all_arrive_but_the_cancelled_one_at_every_page_boundary(page_rows, cancelled):
    system, jobs = System(page_rows=page_rows), jobs_due(60, 60, 60, 60, 60)
    system.put(*jobs)
    assert system.cancel(jobs[cancelled].id) is State.CANCELLED
    assert system.tick().finished
    assert system.arrived() == ids(jobs[:cancelled] + jobs[cancelled + 1 :])


@EVERY_PAGE
def test_what_comes_under_the_fence_that_a_checkpoint_raises_is_handed_over_by_the_same_tick(page_rows):
    system, jobs = System(page_rows=page_rows), jobs_due(1, 245)
    system.put(*jobs)
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(12)), times=1)
    assert system.tick().finished
    assert system.arrived() == ids(jobs)


@EVERY_PAGE
def test_a_second_tick_repeats_nothing(page_rows):
    system, jobs = System(page_rows=page_rows), jobs_due(1, 2, 3, 300)
    system.put(*jobs)
    system.tick()
    system.clock.sleep(60)
    system.tick()
    assert system.arrived() == ids(jobs)


def test_a_tick_reads_its_own_partition_alone():
    system = System(a_queue(partitions=11))
    system.put(*(due_in(1, partition=Partition(queue="emails", number=number)) for number in (1, 10)))
    system.tick(Partition(queue="emails", number=1))
    assert [id.partition.number for id in system.arrived()] == [1]


def test_a_cancellation_that_came_before_its_job_holds():
    system, job = System(), due_in(60)
    assert system.cancel(job.id) is State.CANCELLED
    system.put(job)
    assert system.tick().finished
    assert system.arrived() == []


def test_a_cancellation_is_carried_over_to_the_next_page():
    row = rows.job_row(job := a_job())
    entries = Entries()
    assert entries.of([rows.cancellation_row(job.id, at=NOW)], more=True) == []
    (entry,) = entries.of([row])
    assert entry.job is None


def test_a_cancellation_takes_back_its_own_job_alone():
    one, other = due_in(60, uid=an_id().uid), due_in(60)
    entries = Entries().of([rows.cancellation_row(one.id, at=NOW), rows.job_row(other)])
    assert [entry.job for entry in entries] == [other]


@EVERY_PAGE
def test_a_job_that_was_moved_is_not_sent_though_its_cancellation_is_not_seen_yet(page_rows):
    system, (moved, other) = System(page_rows=page_rows), jobs_due(60, 61)
    system.put(moved, other)
    system.reschedule(moved.id, at=NOW + timedelta(hours=1))
    system.hide("#cancelled")
    assert system.tick().finished
    assert system.arrived() == [other.id]


@EVERY_PAGE
def test_a_job_of_which_a_move_came_to_nothing_is_sent(page_rows):
    system, jobs = System(page_rows=page_rows), jobs_due(60, 61)
    system.put(*jobs)
    system.wire.around = on("table.move", failing(Unavailable("no")))
    with pytest.raises(Unavailable):
        system.reschedule(jobs[0].id, at=NOW + timedelta(seconds=30))
    assert system.tick().finished
    assert system.arrived() == ids(jobs)


@EVERY_PAGE
@pytest.mark.parametrize("after", [30, 61])
def test_a_job_that_took_anothers_place_is_sent_though_its_row_is_not_seen_yet(page_rows, after):
    system, old, other = System(page_rows=page_rows), due_in(600), due_in(after)
    system.put(old, other)
    moved = system.reschedule(old.id, at=NOW + timedelta(seconds=60))
    system.hide(f"{moved.uid}#job")
    assert system.tick().finished
    assert set(system.arrived()) == {moved, other.id}
    system.hide()
    assert system.tick().dispatched == 0


@EVERY_PAGE
def test_a_job_that_took_anothers_place_and_was_cancelled_is_not_sent(page_rows):
    system, old = System(page_rows=page_rows), due_in(600)
    system.put(old)
    moved = system.reschedule(old.id, at=NOW + timedelta(seconds=60))
    assert system.cancel(moved) is State.CANCELLED
    system.hide(f"{moved.uid}#job")
    assert system.tick().finished
    assert system.arrived() == []


def test_a_job_that_took_anothers_place_and_was_moved_on_is_not_sent_though_nothing_of_it_is_seen_yet():
    system, old = System(), due_in(600)
    system.put(old)
    moved = system.reschedule(old.id, at=NOW + timedelta(seconds=60))
    system.reschedule(moved, at=NOW + timedelta(seconds=300))
    system.hide(f"{moved.uid}#job", f"{moved.uid}#cancelled")
    assert system.tick().finished
    assert system.arrived() == []


@EVERY_PAGE
def test_a_tick_stops_before_a_job_of_which_it_is_not_known_whether_it_was_moved_and_the_next_goes_on(page_rows):
    system, (first, moved, last) = System(page_rows=page_rows), jobs_due(60, 61, 62)
    system.put(first, moved, last)
    system.wire.around = on("table.move", failing(Unavailable("no")))
    with pytest.raises(Unavailable):
        system.reschedule(moved.id, at=NOW + timedelta(hours=1))
    system.wire.around = on("table.ask_for", failing(Throttled("it conflicts")))
    done = system.tick()
    assert (done.finished, done.fault, system.cursor()) == (False, "it conflicts", rows.job_key(first.id)[1])
    assert moved.id not in system.arrived()
    system.wire.around = straight
    assert system.tick().finished
    assert {*system.arrived()} == {first.id, moved.id, last.id}


def test_a_tick_whose_time_is_over_asks_nothing_more_and_leaves_the_job():
    system, job = System(), due_in(60)
    system.put(job)
    system.wire.around = on("table.move", failing(Unavailable("no")))
    with pytest.raises(Unavailable):
        system.reschedule(job.id, at=NOW + timedelta(hours=1))
    asked = count(system, "table.ask_for")
    counting, late = system.wire.around, on("table.page", meanwhile(lambda: system.clock.sleep(60)))
    system.wire.around = lambda call: late(call) if call.name == "table.page" else counting(call)
    done = system.tick()
    assert (done.finished, done.fault, asked, system.arrived()) == (False, OUT_OF_TIME, [], [])


def test_nothing_is_asked_of_jobs_that_were_never_moved_nor_of_those_whose_move_is_seen():
    system, jobs = System(), jobs_due(60, 61)
    system.put(*jobs)
    moved = system.reschedule(jobs[1].id, at=NOW + timedelta(seconds=100))
    asked = count(system, "table.ask_for")
    assert system.tick().finished
    assert (system.arrived(), asked) == ([jobs[0].id, moved], [])


def test_an_empty_page_with_more_behind_it_hides_nothing():
    system, job = System(), due_in(1)
    system.put(job)
    system.wire.around = on("table.page", lambda call: Page(rows=[], more=True), times=1)
    assert system.tick().finished
    assert system.arrived() == [job.id]


# How far the cursor goes


def test_a_finished_tick_leaves_the_cursor_behind_all_that_is_due_up_to_its_fence():
    system = System()
    system.put(due_in(1))
    system.tick()
    assert system.cursor() == rows.end_of(instant.text(NOW + timedelta(seconds=240)))


@EVERY_PAGE
@pytest.mark.parametrize("stuck", range(4))
def test_the_cursor_stops_before_the_first_unfinished_job(page_rows, stuck):
    system, jobs = System(page_rows=page_rows), jobs_due(1, 2, 2, 3)
    system.put(*jobs)

    stays = refusing(lambda message: message.job() == jobs[stuck])
    system.wire.around = on("emails.send", stays)
    done = system.tick()
    assert not done.finished
    assert system.cursor() < rows.job_key(jobs[stuck].id)[1]
    assert all(rows.job_key(job.id)[1] <= system.cursor() for job in jobs[:stuck])
    system.wire.around = lambda call: call.do(*call.args)
    assert system.tick().finished
    assert set(system.arrived()) == set(ids(jobs))


@EVERY_PAGE
def test_the_cursor_never_lies_between_a_cancellation_and_its_job(page_rows):
    system, first, taken_back = System(page_rows=page_rows), due_in(1), due_in(2)
    system.put(first, taken_back)
    system.cancel(taken_back.id)
    cancellation, job = rows.cancellation_key(taken_back.id)[1], rows.job_key(taken_back.id)[1]
    seen = []
    system.wire.around = lambda call: (
        seen.append(system.cursor()) if call.name == "emails.send" else 0,
        call.do(*call.args),
    )[1]
    system.tick()
    assert not [cursor for cursor in seen if cancellation <= cursor < job]


def test_a_tick_over_an_idle_partition_costs_one_write_and_one_query():
    system = System()
    writes, calls = count(system, "table.take"), []
    around = system.wire.around
    system.wire.around = lambda call: (calls.append(call.name), around(call))[1]
    done = system.tick()
    assert done.finished
    assert calls == ["table.take", "table.page"]
    assert len(writes) == 1


def test_an_idle_tick_gives_back_a_lease_for_which_the_next_would_have_to_wait():
    system = System()
    system.periods = replace(PERIODS, period=timedelta(seconds=30))
    system.tick()
    assert system.tick().finished
    assert system.clock.monotonic() == 0


def test_a_tick_that_saw_only_a_cancellation_moves_on_behind_it():
    system = System()
    system.cancel(an_id(due=NOW + timedelta(seconds=60)))
    assert system.tick().finished
    assert system.cursor() == rows.end_of(instant.text(NOW + timedelta(seconds=240)))


@pytest.mark.parametrize(("jobs", "checkpoints"), [(299, 1), (300, 2), (650, 3)])
def test_a_tick_checkpoints_every_300_jobs_and_at_its_end(jobs, checkpoints):
    system = System()
    system.put(*jobs_due(*range(-jobs, 0)))
    calls = count(system, "table.checkpoint")
    assert system.tick().dispatched == jobs
    assert len(calls) == checkpoints


def test_a_slow_tick_checkpoints_every_10_seconds_and_so_keeps_its_lease():
    system = System()
    system.put(*jobs_due(*range(-500, 0)))
    marks = []
    slowly, note = meanwhile(lambda: system.clock.sleep(1.1)), meanwhile(lambda: marks.append(system.clock.monotonic()))
    around = on("table.checkpoint", note)
    system.wire.around = lambda call: slowly(call) if call.name == "emails.send" else around(call)
    done = system.tick()
    assert done.held
    assert done.finished
    assert marks == pytest.approx([11, 22, 33, 44, 55, 55])


def test_a_long_tick_raises_its_fence_and_goes_on_into_the_next_minute():
    system, late = System(page_rows=100), due_in(250)
    system.put(*jobs_due(*range(-400, 0)), late)
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(1)))
    assert system.tick().finished
    assert late.id in system.arrived()


def test_a_checkpoint_renews_the_lease_even_when_the_cursor_cannot_move():
    system = System(page_rows=50)
    for _ in range(500):
        system.cancel(an_id(due=NOW + timedelta(seconds=60)))
    system.wire.around = on("table.page", meanwhile(lambda: system.clock.sleep(4)))
    done = system.tick()
    assert done.held
    assert done.finished


# When it stops


def test_a_tick_stops_before_its_deadline_and_the_next_goes_on():
    system, jobs = System(), jobs_due(*range(-500, 0))
    system.put(*jobs)
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(1)))
    done = system.tick(seconds=25)
    assert done.held
    assert not done.finished
    assert system.clock.monotonic() <= 25 + 1
    assert done.dispatched == 250
    system.wire.around = lambda call: call.do(*call.args)
    assert system.tick().finished
    assert sorted(system.arrived(), key=str) == sorted(ids(jobs), key=str)


def test_a_tick_that_never_renewed_its_lease_stops_before_it_is_over():
    system = System()
    system.put(*jobs_due(*range(-100, 0)))
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(7)))
    assert system.tick().dispatched == 30
    assert system.clock.monotonic() == 21


@pytest.mark.parametrize("name", ["table.page", "table.checkpoint"])
@pytest.mark.parametrize("react", [failing(Throttled("slow down")), failing(Unavailable("no")), losing_the_answer])
def test_a_fault_stops_the_tick_and_the_next_goes_on(name, react):
    system, jobs = System(page_rows=2), jobs_due(1, 2, 3, 4, 5)
    system.put(*jobs)
    system.wire.around = on(name, react, times=1)
    assert system.tick().fault
    system.clock.sleep(30)
    assert system.tick().finished
    assert set(system.arrived()) == set(ids(jobs))


def test_a_lease_that_cannot_be_asked_for_is_the_callers_to_see():
    system = System()
    system.wire.around = on("table.take", failing(Throttled("slow down")))
    with pytest.raises(Throttled):
        system.tick()


def test_two_live_ticks_on_one_partition_send_each_job_once():
    system, jobs = System(page_rows=2), jobs_due(*range(20))
    system.put(*jobs)
    seconds = []
    system.wire.around = on("emails.send", meanwhile(lambda: seconds.append(system.tick(seconds=5))), times=1)
    assert system.tick().finished
    assert system.arrived() == ids(jobs)
    assert [(second.held, second.dispatched) for second in seconds] == [(False, 0)]


def test_a_tick_that_waited_for_a_dead_one_sends_what_it_left():
    system, jobs = System(), jobs_due(*range(20))
    system.put(*jobs)
    system.wire.around = on("emails.send", failing(KeyboardInterrupt()), skip=1, times=1)
    with pytest.raises(KeyboardInterrupt):
        system.tick()
    assert system.tick().finished
    assert set(system.arrived()) == set(ids(jobs))


def test_a_zombie_moves_no_cursor_and_sees_that_it_lost_its_lease():
    system, jobs = System(), jobs_due(*range(-300, 0))
    system.put(*jobs)

    def sleep_while_another_ticks():
        system.clock.sleep(60)
        assert system.tick().finished

    system.wire.around = on("emails.send", meanwhile(sleep_while_another_ticks), times=1)
    done = system.tick()
    assert not done.held
    assert system.cursor() == rows.end_of(instant.text(NOW + timedelta(seconds=60 + 240)))


# What can never be sent


def test_a_queue_that_is_gone_parks_its_jobs_and_the_cursor_moves_on():
    system, jobs = System(), jobs_due(1, 2)
    system.put(*jobs)
    system.queues["emails"].gone = True
    done = system.tick()
    assert done.finished
    assert [parked.job for parked in done.parked] == jobs
    assert system.parked() == ids(jobs)
    assert [system.look_up(job.id) for job in jobs] == [State.PARKED] * 2


def test_a_job_past_its_retention_is_parked():
    system, job = System(), due_in(-20, expires=NOW - timedelta(seconds=10))
    system.put(job)
    (parked,) = system.tick().parked
    assert (parked.job, parked.reason) == (job, PAST_RETENTION)


def test_content_that_sqs_refuses_is_parked_and_delays_nothing_else():
    system, jobs = System(), jobs_due(1, 2, 3)
    system.put(*jobs)
    system.wire.around = on("emails.send", refusing_for_good, times=1)
    assert system.tick().finished
    assert (system.parked(), system.arrived()) == (ids(jobs[:1]), ids(jobs[1:]))


@EVERY_PAGE
def test_a_row_that_cannot_be_read_is_parked_and_delays_nothing_else(page_rows):
    system, before, broken, behind = System(page_rows=page_rows), *jobs_due(1, 2, 3)
    system.put(before, behind)
    system.table.write([{**rows.job_row(broken), "ttl": "soon"}])
    done = system.tick()
    assert done.finished
    assert len(done.unreadable) == 1
    assert system.arrived() == ids([before, behind])
    assert "cannot be read" in system.dead_letters.deliveries[0].message.attributes[REASON]


def test_the_cursor_stops_before_a_row_that_could_not_be_parked():
    system, before, broken, behind = System(), *jobs_due(1, 2, 3)
    system.put(before, behind)
    system.table.write([{**rows.job_row(broken), "ttl": "soon"}])
    system.wire.around = on("dead_letters.send", failing(Throttled("slow down")))
    assert not system.tick().finished
    assert system.cursor() == rows.job_key(before.id)[1]


def test_a_row_of_another_kind_is_passed_over():
    system, job = System(), due_in(1)
    system.put(job)
    system.table.write([{"pk": str(EMAILS), "sk": "2026-11-21T07:00:00.000Z#x#note", "ttl": 1}])
    assert system.tick().finished
    assert system.arrived() == [job.id]


# How late it is


def test_a_finished_tick_is_not_late():
    assert System().tick().lateness(NOW) == 0


def test_lateness_is_that_of_the_oldest_job_not_handed_over():
    system = System()
    system.put(*jobs_due(-90, -60, -30))
    system.wire.around = on("emails.send", failing(Throttled("slow down")))
    assert system.tick().lateness(NOW) == 90


def test_a_job_that_is_not_due_yet_is_not_late():
    system = System()
    system.put(due_in(100))
    system.wire.around = on("emails.send", failing(Throttled("slow down")))
    assert system.tick().lateness(NOW) == 0


def test_a_tick_that_ran_out_of_time_between_two_waves_tells_its_lateness():
    system = System()
    system.put(*jobs_due(*range(-500, 0)))
    system.wire.around = on("emails.send", meanwhile(lambda: system.clock.sleep(1)))
    done = system.tick(seconds=20)
    assert done.dispatched == 200
    assert done.lateness(NOW) == pytest.approx(300, abs=1)


def test_a_tick_that_could_read_nothing_does_not_guess_its_lateness():
    system = System()
    system.wire.around = on("table.page", failing(Unavailable("no")))
    assert system.tick().lateness(NOW) is None


@pytest.mark.parametrize("name", ["emails.send", "dead_letters.send"])
def test_what_stopped_a_tick_is_told(name):
    system = System()
    system.put(due_in(1))
    system.queues["emails"].gone = name == "dead_letters.send"
    system.wire.around = on(name, failing(Unavailable("AccessDenied")))
    done = system.tick()
    assert not done.finished
    assert "AccessDenied" in done.fault


def test_a_tick_that_leaves_tells_how_late_the_one_at_work_is():
    system = System()
    system.put(*jobs_due(*range(-400, 0)))
    system.wire.around = on("table.checkpoint", meanwhile(lambda: None), times=1)
    working = system.a_lease()
    assert working.take()
    assert working.checkpoint(rows.job_key(due_in(-100).id)[1])
    done = system.tick(seconds=5)
    assert not done.held
    assert done.lateness(NOW) == 100


def test_a_tick_that_left_the_partition_to_another_does_not_guess_its_lateness():
    system = System()
    assert system.a_lease().take()
    assert system.tick(seconds=5).lateness(NOW) is None
