"""Ticks and the leases that they hold."""

from dataclasses import replace
from datetime import timedelta

import pytest

from dueline.core import instant, rows
from dueline.core.job import State, StoredJob
from dueline.core.message import ID
from dueline.core.tick import WAVE_JOBS
from dueline.errors import Throttled, Unavailable
from tests.builders import EMAILS, NOW, a_queue, due_in
from tests.system import PERIODS, System
from tests.wire import by_name, failing, meanwhile, on, straight

DOWN = failing(Unavailable("no"))


def slow(system, seconds):
    return meanwhile(lambda: system.clock.sleep(seconds))


def jobs_due(*seconds):
    return [due_in(each) for each in seconds]


def ids(jobs):
    return [job.id for job in jobs]


def received(system):
    lease = system.a_lease()
    assert lease.acquire()
    return lease


# What is handed over


@pytest.mark.parametrize("page_rows", [1, 2, 3, 1000])
def test_due_jobs_are_dispatched_earliest_first(page_rows):
    system, jobs = System(page_rows=page_rows), jobs_due(-60, 0, 1, 60, 239, 240)
    system.put(*reversed(jobs), due_in(240.001))
    done = system.tick()
    assert system.arrived() == ids(jobs)
    assert (done.owned_lease, done.finished, done.dispatched) == (True, True, 6)


def test_tick_sends_by_the_fraction_of_the_second(system):
    """But at once what is due within a period, and so behind a backlog: an earlier tick should have sent it."""
    system.put(*jobs_due(-1, 1.5, 30.5, 59.5, 60.5, 200.25))
    system.tick()
    assert system.lateness() == [1, 0.5, 0.5, 0.5, 0.021, 0.021]
    assert system.clock.monotonic() == pytest.approx(0.521)


def test_tick_sweeps_for_two_thirds_of_its_period():
    """What is left then goes at once, so that the next tick finds the partition free."""
    system = System(page_rows=1)
    system.put(*jobs_due(*(121 + n * 1.9 for n in range(60))))
    assert system.tick().finished
    late = system.lateness()
    assert late[:44] == [0.021] * 44
    assert max(late[45:]) > 0.1
    assert 40 <= system.clock.monotonic() < 41


def test_herd_is_sent_at_once():
    """Of a page that is due at one instant, and more, no sweep can send all in time."""
    system = System(page_rows=50)
    system.put(*jobs_due(*[120.5] * 120, 130.25))
    assert system.tick().finished
    assert system.lateness() == [0.5] * 100 + [0.021] * 21
    assert system.clock.monotonic() == pytest.approx(0.521)


def test_tick_leaves_what_a_renewed_lease_let_in():
    """Sweeps take time, in which more comes within the lookahead: the next tick has as much time for it."""
    system, jobs, later = System(), jobs_due(*(180.3 + n * 0.5 for n in range(120))), due_in(241)
    system.put(*jobs, later)
    system.wire.around = on("emails.send", slow(system, 1))
    done = system.tick()
    assert (done.finished, done.dispatched) == (True, 120)
    assert system.clock.monotonic() > 10
    assert system.tick().dispatched == 1


def test_tick_that_outlasts_its_period_reads_on():
    """The next one found its lease held: its jobs are this one's."""
    system, later = System(), due_in(299)
    system.put(*jobs_due(*(range(-600, 0))), later)
    system.wire.around = on("emails.send", slow(system, 1.1))
    done = system.tick()
    assert (done.finished, done.dispatched) == (True, 601)


# How far the cursor goes


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_cursor_ends_at_the_fence(system, is_cancelled):
    """Behind all that is due until then, also where it saw a cancellation alone."""
    if is_cancelled:
        system.cancel(due_in(60).id)
    else:
        system.put(due_in(1))
    system.tick()
    assert system.cursor() == rows.end_of(instant.text(NOW + timedelta(seconds=240)))


@pytest.mark.parametrize("page_rows", [7, 1000])
@pytest.mark.parametrize("down", ["emails_p2.send", "dead_letters.send"])
def test_unfinished_job_delays_no_other(page_rows, down):
    """Whatever cannot be sent or parked waits: its SQS queue failed. All others are sent, each once, also behind it."""
    system = System(a_queue(priorities=2), page_rows=page_rows)
    system.wire.around = on(down, failing(Unavailable("KMS.AccessDeniedException")))
    stuck = [due_in(10, expires=NOW), due_in(11, expires=NOW)] if down.startswith("dead") else []
    stuck = stuck or [due_in(10, priority=2), due_in(290, priority=2)]
    unreadable = {**rows.job_row(due_in(20)), "ttl": "soon"}
    system.table.write([unreadable])
    good = jobs_due(*range(11, 131), 280, 300)
    system.put(*stuck, *good)
    for _ in range(6):
        system.tick()
        system.clock.sleep(60)
    assert sorted(map(str, system.arrived())) == sorted(map(str, ids(good)))
    assert len(system.dead_letters.deliveries) == (down != "dead_letters.send")
    assert system.cursor() < rows.job_key(stuck[0].id)[1]
    assert {system.look_up(job.id) for job in good} == {State.DISPATCHED}
    system.wire.around = straight
    assert system.tick().finished
    parked = {each.message.attributes.get(ID) for each in system.dead_letters.deliveries} - {None}
    assert {*map(str, system.arrived(priority=2)), *parked} == set(map(str, ids(stuck)))


@pytest.mark.parametrize("page_rows", [9, 10])
def test_level_down_for_hours_delays_no_other(page_rows):
    """However long the backlog behind its first job is, each tick reads the new jobs of the others, and ends in time.

    Else the next one finds the lease taken, and what failed is tried again a period later still.
    """
    system = System(a_queue(priorities=2), page_rows=page_rows)
    system.wire.around = by_name({"table.page": slow(system, 3), "emails_p2.send": DOWN})
    stuck, good = [due_in(300, priority=2)], list[StoredJob]()
    system.put(*stuck)
    for minute in range(40):
        system.clock.sleep((NOW - system.clock.now()).total_seconds() + 60 * minute)
        good += [due_in(60 * minute + 235 + second) for second in range(5)]
        stuck += [due_in(60 * minute + 238, priority=2)]
        system.put(*good[-5:], stuck[-1])
        assert not system.tick().finished
        assert system.clock.now() < NOW + timedelta(minutes=minute) + PERIODS.period
        assert {job.id for job in good} == set(system.arrived())
    system.wire.around = straight
    assert system.tick().finished
    assert sorted(map(str, system.arrived())) == sorted(map(str, ids(good)))
    assert set(system.arrived(priority=2)) == set(ids(stuck))


@pytest.mark.parametrize("seconds", [2, 3, 4, 5])
def test_cancel_holds_across_a_backlog(seconds):
    """A tick that is held back leaves its backlog for what is not due yet, maybe between a cancellation and its job."""
    system, jobs, new = System(a_queue(priorities=2), page_rows=1), jobs_due(11, 12, 13), due_in(100)
    system.put(due_in(10, priority=2), *jobs, new)
    assert {system.cancel(job.id) for job in jobs} == {State.CANCELLED}
    system.wire.around = by_name({"table.page": slow(system, seconds), "emails_p2.send": DOWN})
    system.clock.sleep(30)
    assert not system.tick().finished
    assert system.arrived() == [new.id]


def test_tick_stops_when_it_cannot_note():
    """What was sent beyond an unfinished job is noted, or the tick sends nothing more."""
    system = System(a_queue(priorities=2))
    system.put(due_in(10, priority=2), *jobs_due(*(20 + n / 6 for n in range(210))))
    system.wire.around = by_name(dict.fromkeys(("emails_p2.send", "table.write"), DOWN))
    assert not system.tick().finished
    assert len(system.arrived()) == WAVE_JOBS - 1


def test_idle_tick_costs_one_write_and_one_query(system):
    calls = system.calls()
    assert system.tick().finished
    assert calls == ["table.acquire_lease", "table.page"]


def test_idle_tick_releases_a_long_lease(system):
    system.periods = replace(PERIODS, period=timedelta(seconds=30))
    system.tick()
    assert system.tick().finished
    assert system.clock.monotonic() == 0


@pytest.mark.parametrize(("jobs", "checkpoints"), [(300, 1), (301, 2), (650, 3)])
def test_tick_checkpoints_every_300_jobs(system, jobs, checkpoints):
    system.put(*jobs_due(*range(-jobs, 0)))
    calls = system.calls()
    assert system.tick().dispatched == jobs
    assert calls.count("table.checkpoint") == checkpoints


def test_slow_tick_checkpoints_every_10_seconds(system):
    system.put(*jobs_due(*range(-500, 0)))
    marks = []
    note = meanwhile(lambda: marks.append(system.clock.monotonic()))
    system.wire.around = by_name({"emails.send": slow(system, 1.1), "table.checkpoint": note})
    assert system.tick().finished
    assert marks == pytest.approx([11, 22, 33, 44, 55, 55])


# When it stops


def test_tick_stops_before_its_lease_ends(system):
    system.put(*jobs_due(*range(-100, 0)))
    system.wire.around = on("emails.send", slow(system, 7))
    assert system.tick().dispatched == 30
    assert system.clock.monotonic() == 21


# How late it is


@pytest.mark.parametrize(("due", "lateness"), [([], 0), ([-90, -60, -30], 90), ([100], 0)])
def test_lateness_is_of_the_oldest_job(system, due, lateness):
    system.put(*jobs_due(*due))
    system.wire.around = on("emails.send", failing(Throttled("slow down")))
    assert system.tick().lateness(NOW) == lateness


def test_tick_out_of_time_has_a_lateness(system):
    system.put(*jobs_due(*range(-500, 0)))
    system.wire.around = on("emails.send", slow(system, 1))
    done = system.tick(seconds=20)
    assert done.dispatched == 200
    assert done.lateness(NOW) == pytest.approx(300, abs=1)


def test_tick_that_read_nothing_has_no_lateness(system):
    system.wire.around = on("table.page", DOWN)
    assert system.tick().lateness(NOW) is None
    received(system)
    assert system.tick(seconds=5).lateness(NOW) is None


@pytest.mark.parametrize("name", ["table.page", "table.checkpoint", "emails.send", "dead_letters.send"])
def test_what_stopped_a_tick_is_reported(system, name):
    system.put(due_in(1))
    system.queues["emails"].gone = name == "dead_letters.send"
    system.wire.around = on(name, failing(Unavailable("AccessDenied")))
    done = system.tick()
    assert done.finished is (name == "table.checkpoint")
    assert "AccessDenied" in done.fault
    system.wire.around = straight
    system.clock.sleep(30)
    assert system.tick().finished


def test_leaving_tick_reports_lateness(system):
    system.put(*jobs_due(*range(-400, 0)))
    working = received(system)
    assert working.checkpoint(rows.job_key(due_in(-100).id)[1])
    done = system.tick(seconds=29)
    assert not done.owned_lease
    assert done.lateness(NOW) == 100


def test_row_that_cannot_be_read_is_parked_once_that_is_possible(system):
    system.table.write([{**rows.job_row(due_in(n)), "ttl": "never"} for n in (1, 2)])
    calls = []
    down = by_name({"dead_letters.send": DOWN})
    system.wire.around = lambda call: (calls.append(call.name), down(call))[1]
    done = system.tick()
    assert (done.unreadable, done.fault, calls.count("dead_letters.send")) == ([], "not parked: no", 1)
    system.wire.around = straight
    assert (len(system.tick().unreadable), len(system.dead_letters.deliveries)) == (2, 2)


# Leases


def test_time_to_stop_counts_from_the_request(system):
    system.wire.around = on("table.acquire_lease", slow(system, 4))
    assert received(system).stop_at == 30 - 10


def test_renewed_lease_is_left_alone(system):
    holder, late = received(system), system.a_lease()
    system.wire.around = on("table.acquire_lease", meanwhile(lambda: holder.checkpoint("0")), skip=1)
    assert not late.acquire()
    assert system.clock.monotonic() == 30


def test_expired_lease_is_followed_at_once(system):
    received(system)
    system.clock.sleep(12.3)
    follower = received(system)
    assert system.clock.monotonic() == pytest.approx(30)
    assert follower.fence == instant.text(NOW + timedelta(seconds=240 + 30))


def test_fence_that_is_further_is_followed(system):
    system.table.acquire_lease(
        EMAILS, owner="ahead", now="", lease="", fence=instant.text(NOW + timedelta(seconds=1000))
    )
    assert received(system).fence == instant.text(NOW + timedelta(seconds=1000))
