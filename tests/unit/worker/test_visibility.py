import threading

import pytest

from dueline.errors import Unavailable
from dueline.memory import VirtualClock
from dueline.worker.claim import Claim
from dueline.worker.visibility import VisibilityRenewer
from dueline.worker.watch.event import Kind
from tests.builders import NOW, a_message
from tests.waiting import HANG_SECONDS
from tests.work import Events, SharedQueue, a_claim, a_connection, wait_until


@pytest.fixture
def clock():
    return VirtualClock(NOW)


def claimed(clock, *, number=1, **overrides):
    """Return claims on so many messages, their queue, and the events."""
    queue, events = SharedQueue(clock=clock), Events()
    connection = a_connection(queue, clock=clock, **overrides)
    queue.send([a_message(body=str(each)) for each in range(number)])
    arrivals = queue.receive(most=10, wait=0)
    claims = [Claim(arrival=each, level=0, received=0.0, visible=30.0) for each in arrivals]
    renewer = VisibilityRenewer(connection, report=events)
    renewer.add(claims)
    return renewer, claims, queue, events


def test_a_claim_is_renewed_at_half_of_its_time_and_not_before(clock):
    renewer, (claim,), queue, _ = claimed(clock)
    clock.sleep(14)
    renewer.renew()
    assert claim.visible == 30.0
    clock.sleep(1)
    renewer.renew()
    assert claim.visible == 45.0
    clock.sleep(29)
    assert queue.receive(most=1, wait=0) == []
    assert claim.is_live(clock.monotonic())


def test_ten_are_renewed_in_one_request(clock):
    renewer, claims, queue, _ = claimed(clock, number=10)
    clock.sleep(20)
    renewer.renew()
    assert queue.asked[-1] == ("hide", 10)
    assert {claim.visible for claim in claims} == {50.0}


def test_what_is_over_is_not_renewed(clock):
    renewer, (claim,), queue, _ = claimed(clock)
    renewer.end(claim)
    clock.sleep(20)
    renewer.renew()
    assert ("hide", 1) not in queue.asked
    assert renewer.held == []


def test_no_claim_outlasts_the_longest_run(clock):
    renewer, (claim,), _, events = claimed(clock, longest_run=60)
    claim.begun = 0.0
    for _ in range(12):
        clock.sleep(5)
        renewer.renew()
    assert claim.visible == 60.0
    assert claim.lost
    assert [event.kind for event in events] == [Kind.LOST]


def test_what_waits_is_renewed_beyond_the_longest_run_and_may_then_run_as_long(clock):
    renewer, (claim,), _, _ = claimed(clock, longest_run=60)
    for _ in range(20):
        clock.sleep(10)
        renewer.renew()
    claim.begun = clock.monotonic()
    for _ in range(5):
        clock.sleep(10)
        renewer.renew()
    assert claim.is_live(clock.monotonic())
    assert claim.visible == 260.0


@pytest.mark.parametrize(
    ("begun", "longest_run", "until"),
    [
        (None, 3600, 39_000),
        (None, 40_000, 40_000),
        (50.0, 3600, 3650),
        (39_000.0, 3600, 42_600),
        (10.0, 43_199, 42_600),
    ],
)
def test_no_claim_outlasts_the_12_hours_of_a_receipt(begun, longest_run, until):
    assert a_claim(received=0.0, begun=begun).renewable_until(longest_run) == until


def test_a_claim_that_sqs_says_is_lost_is_lost(clock):
    renewer, (claim,), queue, events = claimed(clock)
    queue.queue.hide([claim.arrival.receipt], [0])
    clock.sleep(20)
    renewer.renew()
    assert claim.lost
    assert [event.kind for event in events] == [Kind.LOST]
    renewer.renew()
    assert len(events) == 1


def test_a_claim_is_lost_when_its_time_is_over_though_aws_failed(clock):
    renewer, (claim,), queue, events = claimed(clock)

    def fail(receipts, seconds):
        raise Unavailable("down")

    queue.hide = fail
    clock.sleep(20)
    renewer.renew()
    assert [event.kind for event in events] == [Kind.TROUBLE]
    assert claim.is_live(clock.monotonic())
    clock.sleep(10)
    renewer.renew()
    assert claim.lost


def test_what_is_about_to_be_acknowledged_is_not_renewed_and_not_told_as_lost(clock):
    renewer, (claim,), queue, events = claimed(clock)
    clock.sleep(20)
    renewer.settle([claim])
    renewer.renew()
    assert ("hide", 1) not in queue.asked
    clock.sleep(20)
    renewer.renew()
    assert events == []


def test_an_acknowledgement_is_not_sent_before_a_renewal_that_is_on_its_way_is_answered(clock):
    renewer, (claim,), queue, _ = claimed(clock)
    hide, asked, answer, settled = queue.hide, threading.Event(), threading.Event(), threading.Event()

    def slow(receipts, seconds):
        asked.set()
        assert answer.wait(HANG_SECONDS)
        return hide(receipts, seconds)

    queue.hide = slow
    clock.sleep(20)
    renewing = threading.Thread(target=renewer.renew, daemon=True)
    renewing.start()
    assert asked.wait(HANG_SECONDS)
    settling = threading.Thread(target=lambda: (renewer.settle([claim]), settled.set()), daemon=True)
    settling.start()
    assert wait_until(lambda: claim.settled)
    assert not settled.wait(0.1)
    answer.set()
    assert settled.wait(HANG_SECONDS)
    assert claim.visible == 50.0


def test_a_claim_that_is_settled_after_it_was_found_to_be_due_is_left_out(clock):
    renewer, claims, queue, _ = claimed(clock, number=3)
    clock.sleep(20)

    def late(call, items):
        some = list(items)
        renewer.settle(claims[:1])
        renewer.end(claims[1])
        return [call(each) for each in some]

    renewer.renew(spread=late)
    assert queue.asked[-1] == ("hide", 1)
    assert [claim.visible for claim in claims] == [30.0, 30.0, 50.0]


def test_a_claim_that_has_lapsed_before_its_turn_or_its_answer_is_not_revived(clock):
    renewer, (claim,), queue, events = claimed(clock)
    hide = queue.hide
    queue.hide = lambda receipts, seconds: clock.sleep(11) or hide(receipts, seconds)
    clock.sleep(20)
    renewer.renew()
    renewer.renew()
    assert (claim.visible, claim.lost) == (30.0, True)
    assert [event.kind for event in events] == [Kind.LOST]

    other_renewer, (other,), queue, _ = claimed(clock)
    other.visible = clock.monotonic() + 10
    other_renewer.renew(spread=lambda call, items: (clock.sleep(10), list(map(call, items)))[1])
    assert ("hide", 1) not in queue.asked


def test_batches_are_renewed_several_at_once_and_nothing_is_left_behind():
    queue, meeting = SharedQueue(visibility_timeout=30), threading.Barrier(2, timeout=HANG_SECONDS)
    before, hide = set(threading.enumerate()), queue.hide
    queue.hide = lambda receipts, seconds: meeting.wait() * 0 or hide(receipts, seconds)
    connection = a_connection(queue, visibility_timeout=30)
    renewer = VisibilityRenewer(connection, report=Events())
    for _ in range(2):
        queue.send([a_message() for _ in range(10)])
    now = connection.clock.monotonic()
    arrivals = [each for _ in range(2) for each in queue.receive(most=10, wait=0, hidden=1000)]
    claims = [Claim(arrival=each, level=0, received=now, visible=now + 14) for each in arrivals]
    renewer.add(claims)
    renewer.start()
    assert wait_until(lambda: all(claim.visible > now + 14 for claim in claims))
    renewer.stop()
    assert wait_until(lambda: set(threading.enumerate()) <= before)
