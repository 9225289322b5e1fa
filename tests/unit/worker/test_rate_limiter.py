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


def a_gate(connection, wall):
    gate = RateLimiter(connection, wall=wall, report=Events())
    gate.read()
    return gate


def set_rate(connection, text):
    control.set_rate("emails", text and Rate.parse(text), table=connection.table, now=NOW)


def test_a_queue_of_which_nothing_was_said_is_open_and_has_no_limit(connection, wall):
    gate = a_gate(connection, wall)
    assert (gate.is_open, gate.most(), gate.slots(3)) == (True, 10, [0.0, 0.0, 0.0])


def test_a_paused_queue_asks_for_nothing_until_it_is_resumed(connection, wall):
    control.pause("emails", table=connection.table, now=NOW)
    gate = a_gate(connection, wall)
    assert (gate.is_open, gate.most()) == (False, 0)
    control.resume("emails", table=connection.table, now=NOW)
    assert gate.read()
    assert (gate.is_open, gate.most()) == (True, 10)
    assert not gate.read()


def test_a_rate_of_0_stops(connection, wall):
    set_rate(connection, "0/s")
    assert a_gate(connection, wall).most() == 0


def test_slots_follow_one_another_as_the_rate_says(connection, wall):
    set_rate(connection, "50/s")
    gate = a_gate(connection, wall)
    assert gate.slots(3) == pytest.approx([0.0, 0.02, 0.04])
    assert gate.slots(2) == pytest.approx([0.06, 0.08])
    wall.seconds += 0.1
    assert gate.slots(1) == pytest.approx([0.0])


def test_a_slot_that_nobody_took_in_time_is_over(connection, wall):
    set_rate(connection, "1/s")
    gate = a_gate(connection, wall)
    wall.seconds += 100
    assert gate.slots(3) == pytest.approx([0, 1, 2])


def test_two_workers_never_have_the_same_slot_and_together_keep_the_rate(connection, wall):
    set_rate(connection, "50/s")
    gates = [a_gate(connection, wall), a_gate(connection, wall)]
    begun = []
    for turn in range(1000):
        gate = gates[turn % 2]
        if most := gate.most():
            begun += [wall.seconds + slot for slot in gate.slots(most)]
        wall.seconds += 0.02
    assert len(set(begun)) == len(begun)
    whole = Counter(int(at - begun[0]) // 10 for at in begun)
    assert whole[0] == 500


class Told(ServiceClock):
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
    clocks = [Told(wall, ahead=ahead), Told(wall, ahead=0.0)]
    places = [replace(connection, clock=clock, behind=clock.behind) for clock in clocks]
    slow, quick = (a_gate(each, partial(common_time, each)) for each in places)
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
    gate = a_gate(connection, wall)
    for _ in range(100):
        assert gate.most() > 0
    assert gate.slots(0) == []
    assert gate.slots(1) == [0.0]


def test_little_is_asked_for_at_a_low_rate_and_nothing_while_the_next_slot_is_far(connection, wall):
    set_rate(connection, "6/m")
    gate = a_gate(connection, wall)
    assert gate.most() == 1
    gate.slots(1)
    assert gate.most() == 0
    wall.seconds += 9.6
    assert gate.most() == 1


def test_another_rate_begins_anew(connection, wall):
    set_rate(connection, "1/h")
    gate = a_gate(connection, wall)
    gate.slots(1)
    control.set_rate("emails", Rate.parse("50/s"), table=connection.table, now=NOW.replace(year=2027))
    assert gate.read()
    assert gate.slots(1) == [0.0]


def test_a_fault_of_aws_is_told_and_what_was_known_holds(connection, wall, monkeypatch):
    monkeypatch.setattr("dueline.worker.rate_limiter.WATCH_SECONDS", 0.01)
    events, changed, stopped = Events(), [], threading.Event()
    gate = RateLimiter(connection, wall=wall, report=events)
    control.pause("emails", table=connection.table, now=NOW)
    gate.read()

    def fail(self, keys, *, consistent=True):
        if len(events) == 2:
            stopped.set()
        raise Throttled("slow down")

    monkeypatch.setattr(MemoryTable, "read", fail)
    gate.watch(stopped, on_change=lambda: changed.append(1))
    assert {event.kind for event in events} == {Kind.TROUBLE}
    assert not gate.is_open
    assert not changed


def test_a_change_is_told_and_once_more_a_look_later_and_then_no_more(connection, wall, monkeypatch):
    monkeypatch.setattr("dueline.worker.rate_limiter.WATCH_SECONDS", 0.01)
    gate, told, looks, stopped = a_gate(connection, wall), [], [], threading.Event()
    read = gate.read

    def look():
        looks.append(1)
        if len(looks) == 3:
            control.pause("emails", table=connection.table, now=NOW)
        if len(looks) == 7:
            stopped.set()
        return read()

    monkeypatch.setattr(gate, "read", look)
    gate.watch(stopped, on_change=lambda: told.append(len(looks)))
    assert told == [3, 4]


def test_a_rate_of_0_that_is_set_while_jobs_are_received_has_no_slots_and_is_no_fault(connection, wall):
    set_rate(connection, "0/s")
    gate = a_gate(connection, wall)
    assert (gate.slots(2), gate.is_open) == ([0.0, 0.0], False)


def test_whatever_goes_wrong_where_a_change_is_heeded_it_is_told_and_tried_again(connection, wall, monkeypatch):
    monkeypatch.setattr("dueline.worker.rate_limiter.WATCH_SECONDS", 0.01)
    events, heeded, stopped = Events(), [], threading.Event()
    gate = RateLimiter(connection, wall=wall, report=events)
    control.pause("emails", table=connection.table, now=NOW)

    def heed():
        heeded.append(gate.is_open)
        if len(heeded) < 4:
            raise KeyError("Attributes")
        stopped.set()

    gate.watch(stopped, on_change=heed)
    assert heeded == [False] * 4
    assert [event.reason for event in events] == ["a changed pause or rate was not heeded: KeyError: 'Attributes'"] * 3
