import pytest

from dueline.working.receiver import Receiver
from tests.builders import a_message
from tests.work import SharedQueue, a_place


@pytest.fixture
def levels():
    return SharedQueue(), SharedQueue(), SharedQueue()


def test_a_claim_is_counted_from_before_the_request():
    queue = SharedQueue()
    queue.send([a_message()])
    place = a_place(queue)
    before = place.clock.monotonic()
    (claim,) = Receiver(place).receive(most=10)
    assert before <= claim.received <= place.clock.monotonic()
    assert claim.visible == claim.received + 30


@pytest.mark.parametrize(("timeout", "wait"), [(30, 5), (3600, 5), (12, 2), (5, 1)])
def test_a_long_poll_takes_no_more_than_a_sixth_of_a_claim(timeout, wait):
    class Asked(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            waits.append((most, wait))
            return []

    waits = []
    Receiver(a_place(Asked(), visibility_timeout=timeout)).receive(most=7)
    assert waits == [(7, wait)]


def test_the_most_urgent_level_that_has_something_comes_first(levels):
    for level, body in zip(levels[1:], "12", strict=True):
        level.send([a_message(body=body) for _ in range(2)])
    receiver = Receiver(a_place(*levels))
    got = [[(claim.level, claim.arrival.message.body) for claim in receiver.receive(most=10)] for _ in range(2)]
    assert got == [[(1, "1")] * 2, [(2, "2")] * 2]


def test_the_lowest_is_not_starved_by_a_flood_of_the_most_urgent(levels):
    for level in (levels[0], levels[2]):
        for _ in range(10):
            level.send([a_message() for _ in range(10)])
    receiver = Receiver(a_place(*levels))
    first = [claim.level for _ in range(20) for claim in receiver.receive(most=1)]
    assert (first.count(0), first.count(2)) == (19, 1)


def test_with_nothing_at_any_level_the_first_is_waited_for(levels):
    class Waiting(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            waits.append(wait)
            return []

    waits = []
    Receiver(a_place(Waiting(), Waiting())).receive(most=1)
    assert waits == [0, 0, 1]
