from datetime import UTC, datetime

import pytest

from dueline.errors import Unavailable
from dueline.testing import VirtualClock
from dueline.worker.claims import Claims
from dueline.worker.limits import RateLimiter
from dueline.worker.prometheus import health_of
from dueline.worker.receiving import ReceiveLoop, Receiver
from tests.builders import NOW, a_message
from tests.work import Events, SharedQueue, a_connection


@pytest.fixture
def levels():
    return SharedQueue(), SharedQueue(), SharedQueue()


def test_claim_counts_from_before_the_request():
    """Whatever visibility timeout the SQS queue itself has by now."""
    queue = SharedQueue(visibility_timeout=5)
    queue.send([a_message()])
    connection = a_connection(queue, visibility_timeout=60)
    before, requests = connection.clock.monotonic(), datetime.now(UTC)
    (claim,) = Receiver(connection, report=Events()).receive(most=10)
    assert before <= claim.received <= connection.clock.monotonic()
    assert claim.visible == claim.received + 60
    (delivery,) = queue.queue.deliveries
    assert (delivery.visible - requests).total_seconds() >= 60


@pytest.mark.parametrize(("timeout", "wait"), [(30, 5), (3600, 5), (12, 2), (5, 1)])
def test_a_long_poll_takes_no_more_than_a_sixth_of_a_claim(timeout, wait):
    class Recorded(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            waits.append((most, wait))
            return []

    waits = []
    Receiver(a_connection(Recorded(), visibility_timeout=timeout), report=Events()).receive(most=7)
    assert waits == [(7, wait)]
    waits.clear()
    # With nothing at any level, the first is waited for.
    Receiver(a_connection(Recorded(), Recorded(), visibility_timeout=timeout), report=Events()).receive(most=1)
    assert waits == [(1, 0), (1, 0), (1, 1)]


def test_the_most_urgent_level_that_has_something_comes_first(levels):
    for level, body in zip(levels[1:], "12", strict=True):
        level.send([a_message(body=body) for _ in range(2)])
    receiver = Receiver(a_connection(*levels), report=Events())
    got = [[(claim.level, claim.arrival.message.body) for claim in receiver.receive(most=10)] for _ in range(2)]
    assert got == [[(1, "1")] * 2, [(2, "2")] * 2]


def test_the_lowest_is_not_starved_by_a_flood_of_the_most_urgent(levels):
    for level in (levels[0], levels[2]):
        for _ in range(10):
            level.send([a_message() for _ in range(10)])
    receiver = Receiver(a_connection(*levels), report=Events())
    first = [claim.level for _ in range(20) for claim in receiver.receive(most=1)]
    assert (first.count(0), first.count(2)) == (19, 1)


class Failing(SharedQueue):
    def receive(self, *, most, wait, hidden=None):
        raise Unavailable("AccessDenied")


def test_failing_level_rests_while_the_others_are_polled():
    """It is queried again after 1, 2, 4 … 20 s; a healthy level is long-polled meanwhile, and nobody backs off."""

    class Broken(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            requests.append(round(clock.monotonic() - started))
            raise Unavailable("AccessDenied")

    class Empty(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            clock.sleep(wait)
            return []

    requests, events, clock = [], Events(), VirtualClock(NOW)
    started = clock.monotonic()
    receiver = Receiver(a_connection(Empty(), Broken(), clock=clock), report=events)
    while clock.monotonic() < started + 60:
        assert receiver.receive(most=1) == []
    assert requests == [0, 1, 3, 7, 15, 31, 51]
    assert [event.reason for event in events] == ["priority 2 was not polled: AccessDenied"] * 7


def test_level_that_works_again_is_polled_as_before():
    faults, clock = [Unavailable("away")], VirtualClock(NOW)

    class Recovering(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            if faults:
                raise faults.pop()
            return super().receive(most=most, wait=0, hidden=hidden)

    levels = Recovering(), SharedQueue()
    for level in levels:
        level.send([a_message() for _ in range(3)])
    receiver = Receiver(a_connection(*levels, clock=clock), report=Events())
    assert [claim.level for claim in receiver.receive(most=1)] == [1]
    clock.sleep(1)
    assert [claim.level for _ in range(3) for claim in receiver.receive(most=1)] == [0, 0, 0]


def test_failure_of_all_levels_raises_and_all_are_queried_again():
    events = Events()
    receiver = Receiver(a_connection(Failing(), Failing()), report=events)
    for _ in range(2):
        with pytest.raises(Unavailable, match="AccessDenied"):
            receiver.receive(most=1)
    assert len(events) == 4


@pytest.mark.parametrize("levels", [1, 2, 5])
def test_worker_is_healthy_while_no_level_answers(levels):
    """In a black hole of the network each request takes a minute: that is no hanging worker, however many levels."""

    class BlackHole(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            clock.sleep(58)
            ages.append(clock.monotonic() - loop.heartbeat)
            raise Unavailable("timed out")

    ages, clock, report = [], VirtualClock(NOW), Events()
    connection = a_connection(*(BlackHole() for _ in range(levels)), clock=clock)
    loop = ReceiveLoop(
        connection,
        claims=Claims(connection, concurrency=10, report=report),
        limiter=RateLimiter(connection, wall=lambda: 0.0, report=report),
        may_receive=lambda: True,
        on_receive=print,
        report=report,
        jitter=lambda: 1.0,
    )
    with pytest.raises(Unavailable):
        loop.receive_once()
    assert [health_of({"emails": age})["healthy"] for age in ages] == [True] * levels
