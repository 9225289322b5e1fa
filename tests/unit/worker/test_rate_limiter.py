import math
from collections import Counter
from dataclasses import replace
from email.utils import format_datetime

import pytest

from dueline.aws.server_clock import ServiceClock
from dueline.core.queue_settings import Rate
from dueline.operations import control
from dueline.testing import VirtualClock
from dueline.worker.limits import RateLimiter
from tests.builders import NOW
from tests.work import a_connection


@pytest.fixture
def wall():
    """The time that all workers of a test share."""
    return VirtualClock(NOW)


@pytest.fixture
def connection(wall):
    return a_connection(clock=wall)


def a_limiter(connection):
    limiter = RateLimiter(connection)
    limiter.read()
    return limiter


def set_rate(connection, text):
    control.set_rate("emails", text and Rate.parse(text), table=connection.table, now=NOW)


def test_paused_queue_requests_nothing(connection):
    control.pause("emails", table=connection.table, now=NOW)
    limiter = a_limiter(connection)
    assert (limiter.is_open, limiter.most()) == (False, 0)
    control.resume("emails", table=connection.table, now=NOW)
    limiter.read()
    assert (limiter.is_open, limiter.most()) == (True, 10)
    set_rate(connection, "0/s")
    limiter.read()
    assert (limiter.slots(2), limiter.is_open, limiter.most()) == ([0.0, 0.0], False, 0)


def test_slots_follow_the_rate(connection, wall):
    """Only jobs that were got are charged."""
    set_rate(connection, "50/s")
    limiter = a_limiter(connection)
    assert all(limiter.most() > 0 for _ in range(100))
    assert limiter.slots(0) == []
    assert limiter.slots(3) == pytest.approx([0.0, 0.02, 0.04])
    assert limiter.slots(2) == pytest.approx([0.06, 0.08])
    wall.sleep(0.1)
    assert limiter.slots(1) == pytest.approx([0.0])
    now = int(wall.now().timestamp())
    assert [row["ttl"] for row in connection.table.all() if "until" in row] == [now + 30 * 86_400]


class Skewed(ServiceClock):
    """The clock of a machine whose own is so far ahead, and that AWS gives the time at odd moments."""

    def __init__(self, wall, *, ahead):
        self.seconds = lambda: wall.now().timestamp() + ahead
        super().__init__(self.seconds)
        self._aws = wall

    def monotonic(self):
        return self._aws.monotonic()

    def request(self):
        self._note_sent()
        date = format_datetime(self._aws.now(), usegmt=True)
        self._note_received({"headers": {"date": date}})


@pytest.mark.parametrize("ahead", [-3600.0, -0.5, 0.5, 0.7, 3600.0])
def test_workers_share_a_rate(connection, wall, ahead):
    """One is slow, and takes a slot every 50 ms; the other takes what it gets."""
    set_rate(connection, "100/s")
    clocks = [Skewed(wall, ahead=ahead), Skewed(wall, ahead=0.0)]
    connections = [replace(connection, clock=clock, behind=clock.behind) for clock in clocks]
    slow, quick = (a_limiter(each) for each in connections)
    started = []
    for turn in range(3000):
        if turn % 77 == 0:
            for clock in clocks:
                clock.request()
        if turn % 5 == 0 and slow.most():
            started += [wall.monotonic() + slot for slot in slow.slots(1)]
        if most := quick.most():
            started += [wall.monotonic() + slot for slot in quick.slots(most)]
        wall.sleep(0.01)
    whole = Counter(int(at - started[0]) // 10 for at in started)
    assert whole[1] == pytest.approx(1000, abs=50)
    assert whole[0] <= 1000 + 50


@pytest.mark.parametrize(("behind", "skew"), [(10.0, 5.0), (math.inf, 0.0)])
def test_slots_are_instants_of_awss_clock(connection, wall, behind, skew):
    set_rate(connection, "1/s")
    a_limiter(replace(connection, behind=lambda: behind)).slots(1)
    until = (wall.now().timestamp() + skew + 1) * 1e6
    assert [row["until"] for row in connection.table.all() if "until" in row] == [until]


def test_low_rate_receives_near_a_slot(connection, wall):
    set_rate(connection, "6/m")
    limiter = a_limiter(connection)
    assert limiter.most() == 1
    limiter.slots(1)
    assert limiter.most() == 0
    wall.sleep(9.6)
    assert limiter.most() == 1


def test_another_rate_begins_again(connection):
    set_rate(connection, "1/h")
    limiter = a_limiter(connection)
    limiter.slots(1)
    control.set_rate("emails", Rate.parse("50/s"), table=connection.table, now=NOW.replace(year=2027))
    limiter.read()
    assert limiter.slots(1) == [0.0]


@pytest.mark.parametrize("rate", ["1/h", "3/h", "5/m"])
def test_idle_workers_take_no_slots_hours_ahead(connection, wall, rate):
    """All look for room before any has taken a slot, as idle ones do: they request messages in turns."""
    set_rate(connection, rate)
    interval = Rate.parse(rate).seconds / Rate.parse(rate).jobs
    limiters, started = [a_limiter(connection) for _ in range(30)], []
    begin = wall.monotonic()
    while wall.monotonic() < begin + 4 * interval:
        requesting = [limiter for limiter in limiters if limiter.most()]
        started += [wall.monotonic() - begin + slot for limiter in requesting for slot in limiter.slots(1)]
        assert all(at <= wall.monotonic() - begin + 2 * interval for at in started)
        wall.sleep(1.5)
    assert started[:4] == pytest.approx([number * interval for number in range(4)], abs=3 * 1.5)


def test_dead_worker_delays_the_turns_by_seconds(connection, wall):
    set_rate(connection, "1/h")
    dead, alive = a_limiter(connection), a_limiter(connection)
    assert (dead.most(), alive.most()) == (1, 0)
    wall.sleep(6)
    assert alive.most() == 1


@pytest.mark.parametrize(("longest_run", "kept"), [(3600, 2), (42_000, 1)])
def test_too_late_slots_are_refused(wall, longest_run, kept):
    connection = a_connection(longest_run=longest_run, clock=wall)
    set_rate(connection, "1/h")
    limiter = a_limiter(connection)
    assert limiter.slots(4) == [number * 3600.0 for number in range(kept)] + [math.inf] * (4 - kept)
    wall.sleep(kept * 3600)
    assert limiter.slots(1) == [0.0]
