import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import partial

import pytest

from dueline.aws.service_clock import ServiceClock
from dueline.errors import Throttled
from dueline.memory import MemoryTable
from dueline.model.rate import Rate
from dueline.operate import control
from dueline.worker.rate_limiter import RateLimiter, common_time
from dueline.worker.watch.event import Kind
from tests.builders import NOW
from tests.work import Events, a_connection


class Wall:
    """The time that all workers of a test share."""

    def __init__(self):
        self.seconds = 1_000_000.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def wall():
    return Wall()


@pytest.fixture
def connection():
    return a_connection()


def a_limiter(connection, wall):
    limiter = RateLimiter(connection, wall=wall, report=Events())
    limiter.read()
    return limiter


def set_rate(connection, text):
    control.set_rate("emails", text and Rate.parse(text), table=connection.table, now=NOW)


def test_a_queue_of_which_nothing_was_said_is_open_and_has_no_limit(connection, wall):
    limiter = a_limiter(connection, wall)
    assert (limiter.is_open, limiter.most(), limiter.slots(3)) == (True, 10, [0.0, 0.0, 0.0])


def test_a_paused_queue_asks_for_nothing_until_it_is_resumed(connection, wall):
    control.pause("emails", table=connection.table, now=NOW)
    limiter = a_limiter(connection, wall)
    assert (limiter.is_open, limiter.most()) == (False, 0)
    control.resume("emails", table=connection.table, now=NOW)
    assert limiter.read()
    assert (limiter.is_open, limiter.most()) == (True, 10)
    assert not limiter.read()


def test_a_rate_of_0_stops(connection, wall):
    set_rate(connection, "0/s")
    assert a_limiter(connection, wall).most() == 0


def test_slots_follow_one_another_as_the_rate_says(connection, wall):
    set_rate(connection, "50/s")
    limiter = a_limiter(connection, wall)
    assert limiter.slots(3) == pytest.approx([0.0, 0.02, 0.04])
    assert limiter.slots(2) == pytest.approx([0.06, 0.08])
    wall.seconds += 0.1
    assert limiter.slots(1) == pytest.approx([0.0])


def test_a_slot_that_nobody_took_in_time_is_over(connection, wall):
    set_rate(connection, "1/s")
    limiter = a_limiter(connection, wall)
    wall.seconds += 100
    assert limiter.slots(3) == pytest.approx([0, 1, 2])


def test_two_workers_never_have_the_same_slot_and_together_keep_the_rate(connection, wall):
    set_rate(connection, "50/s")
    limiters = [a_limiter(connection, wall), a_limiter(connection, wall)]
    begun = []
    for turn in range(1000):
        limiter = limiters[turn % 2]
        if most := limiter.most():
            begun += [wall.seconds + slot for slot in limiter.slots(most)]
        wall.seconds += 0.02
    assert len(set(begun)) == len(begun)
    whole = Counter(int(at - begun[0]) // 10 for at in begun)
    assert whole[0] == 500


class Skewed(ServiceClock):
    """The clock of a machine whose own is so far ahead, and that AWS tells the time at odd moments."""

    def __init__(self, wall, *, ahead):
        self.seconds = lambda: wall() + ahead
        super().__init__(self.seconds)
        self._aws = wall

    def ask(self):
        self._note_sent()
        date = format_datetime(datetime.fromtimestamp(int(self._aws()), UTC), usegmt=True)
        self._note_received({"headers": {"date": date}})


@pytest.mark.parametrize("ahead", [-3600.0, -0.5, 0.5, 0.7, 3600.0])
def test_workers_keep_a_rate_together_whatever_their_own_clocks_say(connection, wall, ahead):
    """One is slow, and takes a slot every 50 ms; the other takes what it gets."""
    set_rate(connection, "100/s")
    clocks = [Skewed(wall, ahead=ahead), Skewed(wall, ahead=0.0)]
    connections = [replace(connection, clock=clock, behind=clock.behind) for clock in clocks]
    slow, quick = (a_limiter(each, partial(common_time, each)) for each in connections)
    begun = []
    for turn in range(3000):
        if turn % 77 == 0:
            for clock in clocks:
                clock.ask()
        if turn % 5 == 0 and slow.most():
            begun += [wall.seconds + slot for slot in slow.slots(1)]
        if most := quick.most():
            begun += [wall.seconds + slot for slot in quick.slots(most)]
        wall.seconds += 0.01
    whole = Counter(int(at - begun[0]) // 10 for at in begun)
    assert whole[1] == pytest.approx(1000, abs=50)
    assert whole[0] <= 1000 + 50


def test_only_jobs_that_were_got_are_charged(connection, wall):
    set_rate(connection, "10/s")
    limiter = a_limiter(connection, wall)
    for _ in range(100):
        assert limiter.most() > 0
    assert limiter.slots(0) == []
    assert limiter.slots(1) == [0.0]


def test_little_is_asked_for_at_a_low_rate_and_nothing_while_the_next_slot_is_far(connection, wall):
    set_rate(connection, "6/m")
    limiter = a_limiter(connection, wall)
    assert limiter.most() == 1
    limiter.slots(1)
    assert limiter.most() == 0
    wall.seconds += 9.6
    assert limiter.most() == 1


def test_another_rate_begins_anew(connection, wall):
    set_rate(connection, "1/h")
    limiter = a_limiter(connection, wall)
    limiter.slots(1)
    control.set_rate("emails", Rate.parse("50/s"), table=connection.table, now=NOW.replace(year=2027))
    assert limiter.read()
    assert limiter.slots(1) == [0.0]


def test_a_fault_of_aws_is_reported_and_the_last_state_holds(connection, wall, monkeypatch):
    monkeypatch.setattr("dueline.worker.rate_limiter.WATCH_SECONDS", 0.01)
    events, changed, stopped = Events(), [], threading.Event()
    limiter = RateLimiter(connection, wall=wall, report=events)
    control.pause("emails", table=connection.table, now=NOW)
    limiter.read()

    def fail(self, keys, *, consistent=True):
        if len(events) == 2:
            stopped.set()
        raise Throttled("slow down")

    monkeypatch.setattr(MemoryTable, "read", fail)
    limiter.watch(stopped, on_change=lambda: changed.append(1))
    assert {event.kind for event in events} == {Kind.TROUBLE}
    assert not limiter.is_open
    assert not changed


def test_a_change_is_told_and_once_more_a_look_later_and_then_no_more(connection, wall, monkeypatch):
    monkeypatch.setattr("dueline.worker.rate_limiter.WATCH_SECONDS", 0.01)
    limiter, calls, looks, stopped = a_limiter(connection, wall), [], [], threading.Event()
    read = limiter.read

    def look():
        looks.append(1)
        if len(looks) == 3:
            control.pause("emails", table=connection.table, now=NOW)
        if len(looks) == 7:
            stopped.set()
        return read()

    monkeypatch.setattr(limiter, "read", look)
    limiter.watch(stopped, on_change=lambda: calls.append(len(looks)))
    assert calls == [3, 4]


def test_a_rate_of_0_that_is_set_while_jobs_are_received_has_no_slots_and_is_no_fault(connection, wall):
    set_rate(connection, "0/s")
    limiter = a_limiter(connection, wall)
    assert (limiter.slots(2), limiter.is_open) == ([0.0, 0.0], False)


def test_whatever_goes_wrong_where_a_change_is_applied_it_is_reported_and_tried_again(connection, wall, monkeypatch):
    monkeypatch.setattr("dueline.worker.rate_limiter.WATCH_SECONDS", 0.01)
    events, applied, stopped = Events(), [], threading.Event()
    limiter = RateLimiter(connection, wall=wall, report=events)
    control.pause("emails", table=connection.table, now=NOW)

    def apply():
        applied.append(limiter.is_open)
        if len(applied) < 4:
            raise KeyError("Attributes")
        stopped.set()

    limiter.watch(stopped, on_change=apply)
    assert applied == [False] * 4
    assert [event.reason for event in events] == ["a changed pause or rate was not applied: KeyError: 'Attributes'"] * 3
