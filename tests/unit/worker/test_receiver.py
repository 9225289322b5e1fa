from datetime import UTC, datetime

import pytest

from dueline.errors import Unavailable
from dueline.worker.receiver import Receiver
from tests.builders import a_message
from tests.work import Events, SharedQueue, a_connection


@pytest.fixture
def levels():
    return SharedQueue(), SharedQueue(), SharedQueue()


def test_a_claim_is_counted_from_before_the_request():
    queue = SharedQueue()
    queue.send([a_message()])
    connection = a_connection(queue)
    before = connection.clock.monotonic()
    (claim,) = Receiver(connection, report=Events()).receive(most=10)
    assert before <= claim.received <= connection.clock.monotonic()
    assert claim.visible == claim.received + 30


def test_sqs_hides_a_message_for_as_long_as_its_claim_is_counted_whatever_its_queue_says_by_now():
    queue = SharedQueue(visibility_timeout=5)
    queue.send([a_message()])
    connection = a_connection(queue, visibility_timeout=60)
    before = datetime.now(UTC)
    (claim,) = Receiver(connection, report=Events()).receive(most=10)
    (delivery,) = queue.queue.deliveries
    assert claim.visible == claim.received + 60
    assert (delivery.visible - before).total_seconds() >= 60


@pytest.mark.parametrize(("timeout", "wait"), [(30, 5), (3600, 5), (12, 2), (5, 1)])
def test_a_long_poll_takes_no_more_than_a_sixth_of_a_claim(timeout, wait):
    class Asked(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            waits.append((most, wait))
            return []

    waits = []
    Receiver(a_connection(Asked(), visibility_timeout=timeout), report=Events()).receive(most=7)
    assert waits == [(7, wait)]


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


def test_with_nothing_at_any_level_the_first_is_waited_for(levels):
    class Waiting(SharedQueue):
        def receive(self, *, most, wait, hidden=None):
            waits.append(wait)
            return []

    waits = []
    Receiver(a_connection(Waiting(), Waiting()), report=Events()).receive(most=1)
    assert waits == [0, 0, 1]


class Failing(SharedQueue):
    def receive(self, *, most, wait, hidden=None):
        raise Unavailable("AccessDenied")


def test_a_level_that_fails_keeps_nothing_from_those_below_it_and_is_reported():
    events, levels = Events(), (SharedQueue(), Failing(), SharedQueue())
    levels[2].send([a_message() for _ in range(4)])
    receiver = Receiver(a_connection(*levels), report=events)
    assert [claim.level for _ in range(4) for claim in receiver.receive(most=1)] == [2, 2, 2, 2]
    reasons = [event.reason for event in events]
    assert set(reasons) == {"a level was not polled: AccessDenied"}
    with pytest.raises(Unavailable, match="AccessDenied"):
        receiver.receive(most=1)
