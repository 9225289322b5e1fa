import pytest

from dueline.errors import Unavailable
from dueline.memory import VirtualClock
from dueline.working.claims import Claims
from dueline.working.event import Kind
from tests.builders import NOW, a_message
from tests.work import Events, SharedQueue, a_place


@pytest.fixture
def clock():
    return VirtualClock(NOW)


def claimed(clock, *, number=1, **overrides):
    """Return claims on so many messages, their queue, and the events."""
    from dueline.working.claim import Claim

    queue, events = SharedQueue(clock=clock), Events()
    place = a_place(queue, clock=clock, **overrides)
    queue.send([a_message(body=str(each)) for each in range(number)])
    arrivals = queue.receive(most=10, wait=0)
    claims = [Claim(arrival=each, level=0, received=0.0, visible=30.0) for each in arrivals]
    held = Claims(place, report=events)
    held.add(claims)
    return held, claims, queue, events


def test_a_claim_is_renewed_at_half_of_its_time_and_not_before(clock):
    held, (claim,), queue, _ = claimed(clock)
    clock.sleep(14)
    held.renew()
    assert claim.visible == 30.0
    clock.sleep(1)
    held.renew()
    assert claim.visible == 45.0
    clock.sleep(29)
    assert queue.receive(most=1, wait=0) == []
    assert claim.is_live(clock.monotonic())


def test_ten_are_renewed_in_one_request(clock):
    held, claims, queue, _ = claimed(clock, number=10)
    clock.sleep(20)
    held.renew()
    assert queue.asked[-1] == ("hide", 10)
    assert {claim.visible for claim in claims} == {50.0}


def test_what_is_over_is_not_renewed(clock):
    held, (claim,), queue, _ = claimed(clock)
    held.end(claim)
    clock.sleep(20)
    held.renew()
    assert ("hide", 1) not in queue.asked
    assert held.held == []


def test_no_claim_outlasts_the_longest_run(clock):
    held, (claim,), _, events = claimed(clock, longest_run=60)
    for _ in range(12):
        clock.sleep(5)
        held.renew()
    assert claim.visible == 60.0
    assert claim.lost
    assert [event.kind for event in events] == [Kind.LOST]


def test_a_claim_that_sqs_says_is_lost_is_lost(clock):
    held, (claim,), queue, events = claimed(clock)
    queue.queue.hide([claim.arrival.receipt], [0])
    clock.sleep(20)
    held.renew()
    assert claim.lost
    assert [event.kind for event in events] == [Kind.LOST]
    held.renew()
    assert len(events) == 1


def test_a_claim_is_lost_when_its_time_is_over_though_aws_failed(clock):
    held, (claim,), queue, events = claimed(clock)

    def fail(receipts, seconds):
        raise Unavailable("down")

    queue.hide = fail
    clock.sleep(20)
    held.renew()
    assert [event.kind for event in events] == [Kind.TROUBLE]
    assert claim.is_live(clock.monotonic())
    clock.sleep(10)
    held.renew()
    assert claim.lost
